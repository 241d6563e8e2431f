#!/bin/sh
# Whatever leads git to settings or hooks that nobody looked at is held.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git

export GIT_CONFIG_GLOBAL=/dev/null
mkdir ws mnt
git init -q --template= ws
txfs mount ws mnt

# held: what a commit would hold, as RULE:PATH.
held() {
  txfs -C mnt commit --dry-run --json 2>/dev/null | json '" ".join(
    sorted(x["rule"] + ":" + x["path"] for x in d["held"]))'
}
# repository DIRECTORY: without settings.
repository() {
  mkdir -p "$1/refs/heads" "$1/objects"
  echo 'ref: refs/heads/main' >"$1/HEAD"
}
evil='[core]
	worktree = .
	fsmonitor = evil'

# A configuration that begins like a branch.
{
  echo abcdefabcdefabcdefabcdefabcdefabcdefabcdefab
  cat ws/.git/config
  echo "$evil"
} >config
cat config >mnt/.git/config
equal "txfs-git-config:.git/config" "$(held)" "a configuration like a branch"
contains "$(txfs -C mnt diff --held 2>&1)" "    core.fsmonitor = evil"
txfs -C mnt discard >/dev/null

# A repository without the name.
repository mnt/docs
printf '[core]\n\trepositoryformatversion = 0\n\tbare = true\n' >mnt/docs/config
echo x >mnt/config
ln -s x mnt/docs/refs/config
equal "" "$(held)" "a repository without programs"
echo "$evil" >mnt/docs/config
equal "txfs-git-bare:docs/config" "$(held)" "a bare repository"
rm mnt/docs/HEAD
equal "" "$(held)" "settings beside no HEAD"
txfs -C mnt commit >/dev/null
repository mnt/docs
equal "txfs-git-bare:docs/HEAD" "$(held)" "a HEAD beside settings"
contains "$(txfs -C mnt diff --held 2>&1)" "    core.fsmonitor = evil"
rm mnt/docs/HEAD
mv mnt/docs mnt/moved
repository mnt/moved
equal "txfs-git-bare:moved/config" "$(held)" "a HEAD in a moved directory"
txfs -C mnt discard >/dev/null

# Another file that becomes one is new, a repository that moves is not.
cat config >ws/plain
mkdir -p ws/plains ws/venv/lib/site-packages
cat config >ws/plains/config
echo import evil >ws/venv/plain
mkdir -p mnt/moved/.git
mv mnt/plain mnt/moved/.git/config
mv mnt/plains mnt/moved/plains.git
mv mnt/venv/plain mnt/venv/lib/site-packages/x.pth
equal "txfs-git-config:moved/.git/config txfs-git-config:moved/plains.git/config\
 txfs-python-startup:venv/lib/site-packages/x.pth" "$(held)" "other files that become settings"
txfs -C mnt commit --accept txfs-git-config --accept txfs-python-startup >/dev/null 2>&1 || fail "not accepted"
mv mnt/moved mnt/again
equal "" "$(held)" "a moved repository"
txfs -C mnt commit >/dev/null
rm -r mnt/again
txfs -C mnt commit >/dev/null

# Files that lead elsewhere.
repository mnt/shared
echo ../docs >mnt/shared/commondir
mkdir -p mnt/nested/.git mnt/file mnt/deep mnt/.git/worktrees/a/b
echo ../../docs >mnt/nested/.git/commondir
printf 'gitdir: ../docs\0/../.git/modules/x\n' >mnt/file/.git
echo 'gitdir: ../.git/worktrees/a/b' >mnt/deep/.git
echo ../../../../docs >mnt/.git/worktrees/a/b/commondir
equal "txfs-git-bare:shared/commondir txfs-git-file:.git/worktrees/a/b/commondir txfs-git-file:deep/.git\
 txfs-git-file:file/.git txfs-git-file:nested/.git/commondir" "$(held)" "files that lead elsewhere"
txfs -C mnt discard >/dev/null

# Where the base's configuration leads git.
mkdir ws/.githooks ws/scripts
echo check >ws/.githooks/pre-commit
git -C ws config core.hooksPath .githooks
git -C ws config include.path ../.gitconfig-project
echo evil >>mnt/.githooks/pre-commit
echo evil >mnt/.githooks/post-commit
echo x >mnt/scripts/pre-commit
printf '[user]\n\tname = A\n' >mnt/.gitconfig-project
equal "txfs-git-hooks:.githooks/post-commit txfs-git-hooks:.githooks/pre-commit" "$(held)" "core.hooksPath"
rm mnt/.githooks/post-commit mnt/.githooks/pre-commit
echo "$evil" >mnt/.gitconfig-project
equal "txfs-git-config:.gitconfig-project txfs-git-hooks-kept:.githooks/pre-commit" "$(held)" "include.path"
txfs -C mnt commit --without-held >/dev/null 2>&1 || fail "commit --without-held"
[ ! -e ws/.gitconfig-project ] && [ -e ws/.githooks/pre-commit ] || fail "where git looks was not held"
txfs -C mnt discard >/dev/null
git -C ws config --unset core.hooksPath
git -C ws config --unset include.path

# git's own.
(
  cd mnt
  git config user.name A
  git config user.email a@example.org
  git commit -q --allow-empty -m one
  git branch config
  git init -q --template= lib
)
txfs umount mnt
txfs -C ws commit --on-conflict=mine >/dev/null
git -C ws worktree add -q tree
txfs mount ws mnt
echo x >mnt/tree/x
equal "" "$(held)" "git's own files"
txfs umount mnt
