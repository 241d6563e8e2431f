#!/bin/sh
# What sandboxes of agents make in a workspace and remove again is not refused:
# seen with Claude Code 2.1.332, Codex 0.169.0 and Gemini CLI 0.61.0 (./dev agents).
# They cover it with mounts, so that nothing is written there.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git python3

files=".bash_profile .bashrc .claude/agents .claude/commands .claude/hooks .claude/launch.json .claude/loop.md
  .claude/output-styles .claude/routines .claude/scheduled_tasks.json .claude/settings.json
  .claude/settings.local.json .claude/skills .claude/workflows .geminiignore .git/config.lock .git/hooks .gitconfig
  .gitignore .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc"
directories=".agents .aws .claude .codex .git"

# In the current directory.
come() {
  for directory in $directories; do
    [ -e "$directory" ] || mkdir "$directory"
  done
  for file in $files; do
    : >"$file"
    chmod 444 "$file"
  done
}
go() {
  for file in $files; do
    rm -f "$file"
  done
  for directory in $directories; do
    # .git of a repository is not empty.
    rmdir "$directory" 2>/dev/null || [ "$directory" = .git ]
  done
}

mkdir plain repository mnt
git init -q --template= repository
(cd repository && echo text >file && git add file && git commit -qm base)
for ws in plain repository; do
  txfs mount "$ws" mnt >/dev/null 2>&1
  (cd mnt && come)
  txfs -C mnt commit --dry-run >/dev/null || fail "placeholders in $ws are held"
  # One that gets content is none.
  for file in .claude/settings.json .mcp.json .claude/settings.local.json; do
    chmod 644 "mnt/$file" && echo '{}' >"mnt/$file"
  done
  refuses 4 "3 changes are held for review" txfs -C mnt commit
  (cd mnt && go)
  equal "" "$(txfs -C mnt diff --name-status)" "what is left in $ws"
  txfs -C mnt discard
  # Of a sandbox that was killed.
  (cd mnt && come)
  equal "" "$(txfs -C mnt log --denied)" "what was refused in $ws"
  txfs -C mnt commit -m placeholders >/dev/null
  txfs umount mnt
  for file in $files; do
    [ -f "$ws/$file" ] && [ ! -s "$ws/$file" ] || fail "$file is not in $ws"
  done
done

# bwrap itself makes the mount points.
command -v bwrap >/dev/null || { echo "LEFT OUT: bwrap is not installed" && exit 0; }
if ! bwrap --ro-bind / / true 2>"$TMPDIR/err"; then
  echo "LEFT OUT: bwrap does not work here: $(cat "$TMPDIR/err")"
  exit 0
fi
mkdir fresh
git init -q --template= fresh
txfs mount fresh mnt
for _ in 1 2; do
  bwrap --ro-bind / / --dev /dev --bind "$PWD/mnt" "$PWD/mnt" \
    --ro-bind /dev/null "$PWD/mnt/.mcp.json" --ro-bind /dev/null "$PWD/mnt/.gitconfig" \
    --tmpfs "$PWD/mnt/.vscode" --ro-bind /dev/null "$PWD/mnt/.claude/settings.json" \
    sh -ec 'cd mnt; echo work >>file; [ ! -s .mcp.json ]' || fail "bwrap in a mount"
done
equal "" "$(txfs -C mnt log --denied)" "what was refused to bwrap"
contains "$(txfs -C mnt commit)" "committed"
equal "work
work" "$(cat fresh/file)" "the work in bwrap"
[ ! -s fresh/.mcp.json ] && [ ! -s fresh/.claude/settings.json ] || fail "placeholders have content"
txfs umount mnt
