#!/bin/sh
# Rules that come with a workspace: read as a file of its own, never by a link or
# another name, and able to refuse more, not less.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse

rules() {
  printf 'schema = 1\n[[fs]]\nid = "%s"\npath = "kept"\nreason = "r"\nsuggest = "s"\n' "$1"
}
policy=ws/.txfs/policy.toml
fresh() {
  rm -rf ws elsewhere
  mkdir -p ws/.txfs ws/.git/hooks elsewhere mnt
  git init -q ws 2>/dev/null || :
  echo kept >ws/kept
  rules kept >elsewhere/policy.toml
}

# Links, which would have another file read, or let it be changed.
fresh
rmdir ws/.txfs
ln -s ../elsewhere ws/.txfs
refuses_with_hint 1 "is reached through a symbolic link in the workspace, .txfs" txfs mount ws mnt
fresh
ln -s ../../elsewhere/policy.toml $policy
refuses_with_hint 1 "is reached through a symbolic link in the workspace, policy.toml" txfs mount ws mnt
fresh
ln -s /dev/zero $policy
refuses_with_hint 1 "is reached through a symbolic link in the workspace" txfs mount ws mnt
fresh
rules kept >ws/other
ln ws/other $policy
refuses_with_hint 1 "has other names" txfs mount ws mnt

# What is no file never blocks, and what is large is not read.
fresh
mkfifo $policy
refuses_with_hint 1 "is not a regular file" timeout 60 txfs mount ws mnt
if [ "$(id -u)" -eq 0 ]; then
  fresh
  mknod $policy c 1 5 2>/dev/null && refuses_with_hint 1 "is not a regular file" timeout 60 txfs mount ws mnt
fi
fresh
truncate -s 100G $policy
refuses_with_hint 1 "cannot read the policy" timeout 60 txfs mount ws mnt

# It runs nothing, allows nothing, and takes no rule's place: the error names it.
fresh
printf 'schema = 1\n[hook]\ncommand = ["%s/ws/evil"]\n' "$PWD" >$policy
refuses 1 "$PWD/$policy:2: [hook] in a workspace's own rules" txfs mount ws mnt
for line in 'action = "allow"' 'errno = "OK"' 'without = ["txfs-git-hooks"]' 'match = "write other"'; do
  fresh
  { rules kept && echo "$line"; } >$policy
  refuses 1 "$PWD/$policy:" txfs mount ws mnt
done
for id in txfs-git-hooks txfs-mass-deletion txfs-own-names; do
  fresh
  rules $id >$policy
  refuses 1 "$PWD/$policy:" txfs mount ws mnt
  case $id in
    txfs-own-names) expected="is reserved by txfs" ;;
    *) expected="is already used in" ;;
  esac
  contains "$(cat "$TMPDIR/err")" "\"$id\" $expected"
done
fresh
{ rules kept && echo 'action = "hook"'; } >$policy
refuses 1 "$PWD/$policy:" txfs mount ws mnt
for text in 'without = ["txfs-git-hooks"]' '[defaults]
action = "allow"' '[ask]
timeout = 0'; do
  fresh
  printf 'schema = 1\n%s\n' "$text" >$policy
  refuses 1 "$PWD/$policy:" txfs mount ws mnt
done

# Rules that say less than the others, of the same path, change nothing.
fresh
cat >$policy <<'RULES'
schema = 1
[defaults]
action = "audit"
errno = "EDQUOT"
[[fs]]
id = "weaker"
path = "**/hooks/**"
reason = "r"
suggest = "s"
[[fs]]
id = "weaker-still"
path = "**/hooks/**"
action = "ask"
unless = { path = "**" }
reason = "r"
suggest = "s"
RULES
txfs mount ws mnt
echo x >mnt/.git/hooks/pre-commit
refuses 4 "1 change is held for review" txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "(txfs-git-hooks)"
txfs umount mnt
txfs -C ws discard
