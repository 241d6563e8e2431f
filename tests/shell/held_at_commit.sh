#!/bin/sh
# Rules at the commit: what they hold, what lets it pass, and what stays.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git

export GIT_CONFIG_GLOBAL=/dev/null
mkdir -p ws/.github/workflows ws/src mnt
git init -q --template= ws
echo 'on: push' >ws/.github/workflows/ci.yml
echo 'int main;' >ws/src/main.c
echo A=1 >ws/.env
copy_tree ws before

# held: what a commit would hold, as RULE:PATH.
held() {
  txfs -C mnt commit --dry-run --json 2>/dev/null | json '" ".join(
    sorted(x["rule"] + ":" + x["path"] for x in d["held"] if not x["accepted"]))'
}

# Allowed, seen, and held with the lines that matter.
txfs mount ws mnt
printf 'jobs:\n  evil: yes\n' >>mnt/.github/workflows/ci.yml
mkdir mnt/.vscode
echo '{"run": "evil"}' >mnt/.vscode/tasks.json
echo 'int more;' >>mnt/src/main.c
equal "" "$(txfs -C mnt log --denied)" "what was refused"
contains "$(txfs -C mnt log)" txfs-ci
refuses_with_hint 4 "error: nothing was committed: 2 changes are held for review" txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "held: .github/workflows/ci.yml: it runs on other machines"
contains "$(cat "$TMPDIR/err")" "(txfs-ci)"
contains "$(cat "$TMPDIR/err")" "      evil: yes"
contains "$(cat "$TMPDIR/err")" '    {"run": "evil"}'
contains "$(cat "$TMPDIR/err")" "\`txfs commit --accept txfs-ci --accept txfs-editor-tasks\`"
contains "$(cat "$TMPDIR/err")" "\`txfs commit --without-held\`"
same_tree before ws
equal "txfs-ci:.github/workflows/ci.yml txfs-editor-tasks:.vscode/tasks.json" "$(held)" "held"
equal "M	.github/workflows/ci.yml
A	.vscode/tasks.json" "$(txfs -C mnt diff --held --name-status 2>"$TMPDIR/err")" "diff --held"
contains "$(txfs -C mnt diff --held 2>/dev/null)" "+  evil: yes"
refuses 2 "no rule holds a change at src" txfs -C mnt commit --accept ./src
refuses 2 'there is no limit or rule "txfs-env-kept" on a commit' txfs -C mnt commit --accept txfs-env-kept
refuses 2 "--held does not go with --since" txfs -C mnt diff --held --since x
refuses 2 "--on-conflict works only for a commit of everything" \
  txfs -C mnt commit --without-held --on-conflict=mine

# One of two is not enough; a part has nothing to do with the rest.
refuses 4 "1 change is held for review" txfs -C mnt commit --accept txfs-ci
refuses 4 "1 change is held for review" txfs -C mnt/.github commit --accept ./workflows
same_tree before ws
contains "$(txfs -C mnt commit src 2>"$TMPDIR/err")" "1 change"
[ "$(cat ws/src/main.c)" = "int main;
int more;" ] || fail "the part is not committed"

# Everything else, and then the rest.
echo 'int most;' >>mnt/src/main.c
echo new >mnt/.vscode/extensions.json
contains "$(txfs -C mnt commit --without-held 2>"$TMPDIR/err")" "committed"
contains "$(cat "$TMPDIR/err")" "note: 2 changes are held for review and in the transaction"
equal new "$(cat ws/.vscode/extensions.json)" "a file beside a held one"
[ ! -e ws/.vscode/tasks.json ] || fail "a held file is in the base"
equal 'on: push' "$(cat ws/.github/workflows/ci.yml)" "a held change in the base"
equal "txfs-ci:.github/workflows/ci.yml txfs-editor-tasks:.vscode/tasks.json" "$(held)" "held afterwards"
contains "$(txfs -C mnt commit --without-held 2>/dev/null)" "nothing to commit"
txfs -C mnt commit --accept .github --accept .vscode/tasks.json >"$TMPDIR/out" 2>"$TMPDIR/err" ||
  fail "what is accepted is held: $(cat "$TMPDIR/err")"
contains "$(cat "$TMPDIR/err")" "accepted 2 changes that rules hold"
contains "$(cat ws/.github/workflows/ci.yml)" evil
same_tree mnt ws

# Not by an agent in the mount.
echo evil >mnt/.envrc
for directory in mnt mnt/src; do
  (cd $directory && refuses_with_hint 1 "a process in the mount, or started from there, cannot accept"     txfs commit --accept txfs-editor-tasks)
done
(cd mnt && refuses_with_hint 1 "cannot accept" sh -c 'cd / && txfs -C "$0" commit --accept .envrc; exit $?' "$PWD")
(cd mnt && txfs commit --dry-run --accept .envrc >"$TMPDIR/out" 2>&1) || fail "an agent cannot look"
[ ! -e ws/.envrc ] || fail "an agent accepted its own change"
rm mnt/.envrc

# Not held: what is empty, equal or gone.
rm mnt/.vscode/tasks.json
equal "txfs-editor-tasks:.vscode/tasks.json" "$(held)" "a removed file"
cat ws/.vscode/tasks.json >mnt/.vscode/tasks.json
: >mnt/.mcp.json
mkdir -p mnt/.devcontainer mnt/.claude/hooks
echo x >mnt/.envrc && rm mnt/.envrc
ln -s src mnt/.zed && rm mnt/.zed
equal "" "$(held)" "what is empty, equal or gone"
txfs -C mnt discard >/dev/null

# Whichever way it comes.
python3 - <<'END'
import os
os.chdir("mnt")
os.mkdir("d")
open("d/tasks.json", "w").write("x")
os.rename("d/tasks.json", "d/launch.json")
os.rename(".vscode", "old")
os.rename("d", ".vscode")
open("w", "w").write("x")
os.replace("w", ".github/workflows/ci.yml")
os.symlink("src", ".claude")
os.link("src/main.c", ".envrc")
END
equal "txfs-ci:.github/workflows/ci.yml txfs-editor-tasks:.envrc txfs-editor-tasks:.vscode/launch.json\
 txfs-editor-tasks:.vscode/tasks.json txfs-settings-link:.claude" "$(held)" "other ways"
txfs -C mnt discard >/dev/null
mv mnt/.github mnt/.circleci
equal "txfs-ci:.circleci/workflows/ci.yml" "$(held)" "a moved directory"
txfs -C mnt commit --without-held >/dev/null 2>&1
[ -e ws/.github/workflows/ci.yml ] && [ ! -e ws/.circleci ] || fail "a held directory was moved"
txfs -C mnt discard >/dev/null
truncate -s 0 mnt/.env
equal "txfs-env-files:.env" "$(held)" "a file that loses its content"
txfs -C mnt discard >/dev/null

# git's own settings are not held, programs are.
(
  cd mnt
  git config user.name A
  git remote add origin https://example.org/a.git
  git config branch.main.remote origin
  git init -q --template= lib
)
equal "" "$(held)" "settings of git"
git -C mnt config core.fsmonitor ./evil
git -C mnt/lib config alias.x '!evil'
mkdir -p mnt/.git/hooks
echo x >mnt/.git/hooks/pre-commit.sample
printf '#!/bin/sh\nevil\n' >mnt/.git/hooks/pre-commit
equal "txfs-git-config:.git/config txfs-git-config:lib/.git/config txfs-git-hooks:.git/hooks/pre-commit" \
  "$(held)" "programs of git"
contains "$(txfs -C mnt diff --held 2>&1)" "    core.fsmonitor = ./evil"
contains "$(txfs -C mnt diff --held 2>&1)" "    evil"
txfs -C mnt commit 2>"$TMPDIR/err" && fail "nothing is held"
contains "$(cat "$TMPDIR/err")" "    core.fsmonitor = ./evil"
! grep -q repositoryformat "$TMPDIR/err" || fail "harmless settings are shown"
txfs umount mnt

# Where nothing is mounted, and in a run.
refuses 4 "3 changes are held for review" txfs -C ws commit
contains "$(txfs -C ws diff --held --name-status 2>/dev/null)" ".git/hooks/pre-commit"
txfs -C ws discard >/dev/null
if txfs -C ws run -- true 2>/dev/null; then
  status=0
  txfs -C ws run --json "$PWD/report" -- sh -c 'echo evil >.envrc; echo ok >src/ok' 2>"$TMPDIR/err" || status=$?
  equal 4 "$status" "exit code of a run"
  contains "$(cat "$TMPDIR/err")" "held: .envrc:"
  contains "$(cat "$TMPDIR/err")" "diff --held"
  equal "kept .envrc" "$(json 'd["outcome"] + " " + d["held"][0]["path"]' <report)" "report"
  name=$(json 'd["name"]' <report)
  txfs -C ws -t "$name" commit --without-held >/dev/null 2>&1 || fail "commit --without-held after a run"
  [ -e ws/src/ok ] && [ ! -e ws/.envrc ] || fail "what a run left"
  txfs -C ws -t "$name" commit --accept txfs-editor-tasks >/dev/null 2>&1 || fail "commit --accept after a run"
  equal evil "$(cat ws/.envrc)" "what was accepted after a run"
fi
txfs -C ws fsck

# Where the mount hides the workspace, its user is in it.
txfs mount ws
(cd ws && echo over >.envrc && txfs commit --accept txfs-editor-tasks >"$TMPDIR/out" 2>&1) ||
  fail "the user of a workspace cannot accept: $(cat "$TMPDIR/out")"
txfs umount ws

# A rule of one's own, and what is no rule.
cat >own.toml <<'END'
schema = 1
[[fs]]
id = "deploy"
path = "/deploy/**"
at = "commit"
reason = "these scripts run on the servers"
suggest = "say why"
match = ["write deploy/x"]
not_match = ["write x"]
END
contains "$(txfs policy check own.toml)" "1 rule"
for key in 'action = "deny"' 'exe = "/usr/bin/git"' 'errno = "EROFS"' 'unless = { uid = 1 }'; do
  sed "s|^at = .*|&\n$key|" own.toml >wrong.toml
  refuses 1 'with at = "commit"' txfs policy check wrong.toml
done
sed 's/"commit"/"night"/' own.toml >wrong.toml
refuses 1 'expected operation or commit' txfs policy check wrong.toml
txfs mount ws mnt --no-default-policy --policy own.toml
mkdir mnt/deploy
for i in $(seq 600); do echo "$i" >"mnt/deploy/$i"; done
contains "$(txfs -C mnt policy show)" "hold deploy"
contains "$(cat mnt/.txfs/policy.md)" "A user must accept the change before it is committed"
equal hold "$(txfs -C mnt policy explain --json write deploy/1 | json 'd["verdict"]')" explain
refuses 4 "600 changes are held for review" txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "550 more changes (deploy)"
txfs -C mnt commit --accept deploy >/dev/null 2>"$TMPDIR/err" || fail "many are not accepted"
contains "$(cat "$TMPDIR/err")" "accepted 600 changes"
txfs umount mnt
