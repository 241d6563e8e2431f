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
