#!/bin/sh
# What the rules say of a command before it runs, and where it would run.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs python3 shfmt

mkdir plain home
HOME=$PWD/home
export HOME
cd plain

# judge TEXT: verdict, class and rule.
judge() {
  txfs policy explain --json "$@" | json '(d["verdict"], d["class"], d["decided_by"])'
}
equal "('ask', 'irreversible', 'txfs-cmd-git-push-force')" "$(judge -- 'git push -f')" "text"
equal "('ask', 'irreversible', 'txfs-cmd-git-push-force')" "$(judge -- git push -f)" "arguments"
equal "('allow', 'undoable', 'txfs-cmd-reads')" "$(judge -- ls -l)" "a program that reads"
equal "('ask', 'undoable', 'txfs-cmd-remove-tree')" "$(judge -- rm -rf build)" "no transaction"
equal "('allow', 'undoable', 'txfs-cmd-remove-tree')" "$(judge --confined -- rm -rf build)" "--confined"
equal "('ask', 'irreversible', 'txfs-cmd-git-push-force')" "$(judge --confined -- 'git push -f')" "it leaves the machine"
equal "('allow', 'unknown', None)" "$(judge -- 'echo "')" "what is no shell text"
equal "('allow', 'undoable', None)" "$(judge -- '')" "nothing"
equal "('allow', 'undoable', 'txfs-cmd-reads')" "$(cd "$HOME" && judge -- ls)" "in a home"
# One argument is text, several are words, in which nothing is expanded.
equal "('allow', 'undoable', 'txfs-cmd-reads')" "$(judge -- echo '$(rm -rf /)')" "words"
equal "('deny', 'confined', 'txfs-cmd-remove-everything')" "$(judge -- 'echo $(rm -rf /)')" "a substitution"

equal "(['sudo', 'rm', '-r', '/srv/x'], ['rm', '-r', '/srv/x'], ['sudo'], [('/srv/x', 'outside', 2)])" "$(
  txfs policy explain --json -- 'D=/srv; sudo rm -r $D/x' |
    json '(d["parts"][0]["argv"], d["parts"][1]["argv"], d["parts"][1]["via"],
      [(p["path"], p["place"], p["argument"]) for p in d["parts"][1]["paths"]])'
)" "parts"
shown=$(txfs policy explain -- 'cd src && sudo rm -rf /etc/x')
contains "$shown" "ask (confined)"
contains "$shown" "sudo > rm -rf /etc/x"
contains "$shown" "* ask txfs-cmd-remove-outside (built-in:"
contains "$shown" "instead: remove files in the workspace"
contains "$(txfs policy explain -- 'echo "')" "unknown: the text cannot be parsed"

# What could not be known: the program, an argument, and what is read at runtime.
unknown() {
  txfs policy explain --json -- "$1" | json '(d["unknown"], [p["unknown_arguments"] for p in d["parts"]])'
}
equal "([], [[]])" "$(unknown 'rm -r build')" "all is known"
equal "(['the program \$TOOL is not known'], [[0, 2]])" "$(unknown '$TOOL -x "$FILE"')" "program and argument"
equal "([], [[2]])" "$(unknown 'rm -r "$DIR"')" "an argument"
equal "(['the script on the standard input of sh is not known'], [[], []])" "$(unknown 'gen | sh')" "a script"
contains "$(unknown 'echo "')" "'the text cannot be parsed: "
# Code of another language is no shell text: what is found in it is a guess.
for code in "python3 -c 'import os; os.system(\"git push -f\")'" "perl -e 'system(\"git push -f\")'" \
  "node -e 'require(\"child_process\").execSync(\"git push -f\")'"; do
  equal "[(False, [], 'code', False), (True, ['code'], 'none', True)] ['git', 'push', '-f']" "$(
    txfs policy explain --json -- "$code" |
      json 'str([(p["guess"], p["via"], p["script"], p["decides"]) for p in d["parts"]]) + " " + str(d["parts"][1]["argv"])'
  )" "$code"
done
equal "[False, False]" "$(txfs policy explain --json -- "sh -c 'git push -f'" |
  json '[p["guess"] for p in d["parts"]]')" "shell text is read, and not guessed"

# Rules of a file.
cat >rules.toml <<'END'
schema = 1

[[exec]]
id = "deploy"
program = "deploy"
any_arg = "--prod"
action = "deny"
reason = "only the release does it"
suggest = "deploy to staging"
match = ["deploy --prod", "cd x && ./deploy --prod"]
not_match = "deploy --staging"
END
equal "rules.toml: 0 rules and 1 command rule, and their examples hold" \
  "$(txfs policy check rules.toml)" "check"
equal "3 cases, 0 failed" "$(txfs policy test --policy rules.toml)" "test"
contains "$(txfs policy explain --policy rules.toml -- ./deploy --prod)" "deny (irreversible)"
# Each rule that matches has its place. The first of those that say the most decides.
cat >>rules.toml <<'END'

[[exec]]
id = "any-deploy"
program = "deploy"
action = "ask"
reason = "it is slow"
suggest = "wait"
END
rules() {
  txfs policy explain --json --policy rules.toml -- "$@" | json '(d["decided_by"], d["reason"], d["suggest"],
    [(r["id"], r["action"], r["verdict"], r["file"], r["line"], r["decides"]) for r in d["parts"][0]["rules"]],
    [p["decides"] for p in d["parts"]])'
}
equal "('deploy', 'only the release does it', 'deploy to staging', [('deploy', 'deny', 'deny', '$PWD/rules.toml', 3, True), \
('any-deploy', 'ask', 'ask', '$PWD/rules.toml', 13, False)], [True])" "$(rules ./deploy --prod)" "two rules"
equal "('any-deploy', 'it is slow', 'wait', [('any-deploy', 'ask', 'ask', '$PWD/rules.toml', 13, True)], [True, False])" \
  "$(rules './deploy x; other')" "one rule, and a part that does not decide"
equal "(None, None, None, [], [False])" "$(rules other)" "no rule"
equal "built-in" "$(txfs policy explain --json -- git push -f | json 'd["parts"][0]["rules"][0]["file"]')" "a built-in rule"
sed -i 's/"deploy --prod", /"deploy", /' rules.toml
refuses 1 'rules.toml:10: match of [[exec]] has "deploy"' txfs policy check rules.toml
# It is judged, and not run.
txfs policy explain -- 'touch made' >/dev/null
[ ! -e made ] || fail "explain ran the command"

refuses 2 "explain takes OP and PATH" txfs policy explain
refuses 2 "explain takes OP and PATH" txfs policy explain unlink
refuses 2 "explain takes OP and PATH" txfs policy explain unlink a -- ls
refuses 2 "explain takes OP and PATH" txfs policy explain --confined unlink a
contains "$(txfs policy explain unlink a)" "txfs-mass-deletion"

# In a mount, the transaction takes back what is undoable.
if [ -r /dev/fuse ] && [ -w /dev/fuse ]; then
  mkdir ../ws ../mnt
  txfs mount ../ws ../mnt
  cd ../mnt
  equal "('allow', 'undoable', 'txfs-cmd-git-reset')" "$(judge -- 'git reset --hard')" "in a mount"
  equal "('ask', 'confined', 'txfs-cmd-remove-outside')" "$(judge -- 'rm -rf ~/x')" "outside of it"
  cd ..
  txfs umount mnt
fi

# After a run, the workspace has no open transaction.
needs bwrap
mkdir "$TMPDIR/ended"
txfs -C "$TMPDIR/ended" run -- touch file 2>/dev/null
contains "$(txfs -C "$TMPDIR/ended" policy explain -- 'git push --force')" ask
