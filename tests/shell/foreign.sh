#!/bin/sh
# A store is only what this user made on this machine: what a repository ships,
# what a copy has, what others put in the way is ignored, and said to be.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git
mkdir mnt
ignored="note: ignoring the foreign store $PWD"

# foreign_store WORKSPACE: a store, not recorded, lies in it; what is open there
# would run programs.
foreign_store() {
  mkdir made
  git -C made init -q
  echo base >made/file
  txfs mount --no-default-policy made mnt
  echo 'touch "$TMPDIR/pwned"' >mnt/.git/hooks/post-commit
  chmod 755 mnt/.git/hooks/post-commit
  git -C mnt config core.fsmonitor "touch $TMPDIR/pwned; false"
  echo shipped >mnt/shipped
  txfs umount mnt
  cp -a "$(store_of made)" "$1/.txfs"
  rm -rf made
}

# 1. A repository ships one. git would track it: it is content like any other.
mkdir -p origin
git -C origin init -q
echo base >origin/file
foreign_store origin
git -C origin add -f .
git -C origin commit -qm all
git clone -q origin clone
find clone/.txfs -type d -exec chmod 700 {} +
(
  cd clone
  status=0
  txfs list >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  equal 1 "$status" "exit code of a list"
  equal "" "$(cat "$TMPDIR/out")" "a list"
)
contains "$(head -n 1 "$TMPDIR/err")" "$ignored/clone/.txfs"
txfs mount clone mnt 2>"$TMPDIR/err"
contains "$(head -n 1 "$TMPDIR/err")" "$ignored/clone/.txfs"
(cd mnt && git status --short >/dev/null && echo x >>file && git add file && git commit -qm mine)
[ ! -e "$TMPDIR/pwned" ] || fail "a program of the repository ran"
[ ! -e mnt/shipped ] || fail "what the store had open is shown"
[ ! -e mnt/.txfs/FORMAT ] || fail "the store is shown"
equal 1 "$(txfs -C clone list --json 2>/dev/null | json 'len(d)')" "transactions"
txfs -C mnt commit -m work >/dev/null
[ -e clone/.txfs/FORMAT ] || fail "the repository's .txfs was touched"
txfs umount mnt

# 2. What lies in its place, leads elsewhere, or is no file: nothing there is
# opened, followed or deleted.
mkdir -p victim/deep
echo precious >victim/deep/file
cp -a victim victim.before
trap_store() {
  mkdir -p trap
  foreign_store trap
  printf %s "$PWD/victim" >trap/.txfs/workspace
  rm -rf trap/.txfs/trash
  ln -s "$PWD/victim" trap/.txfs/trash
  for name in lock commit.lock workspace.new intent history/0.new; do
    rm -rf "trap/.txfs/$name"
    ln -s "$PWD/victim/deep/file" "trap/.txfs/$name"
  done
  mkfifo trap/.txfs/reserved
}
trap_store
for command in list status diff log commit discard undo gc fsck umount "show 0" savepoint rollback adopt \
  "adopt --yes" "enter -- true" umount; do
  # shellcheck disable=SC2086 # words
  timeout 100 txfs -C trap $command >"$TMPDIR/out" 2>"$TMPDIR/err" || [ $? -lt 124 ] ||
    fail "$command: $(cat "$TMPDIR/err")"
done
same_tree victim.before victim manifest_with_times
txfs -C trap list --json >"$TMPDIR/out" 2>/dev/null || :

# A copy has nothing of the original's, whose work goes on.
mkdir ws
echo 1 >ws/a
txfs mount ws mnt
echo work >mnt/b
cp -a ws copy
for command in discard commit undo list "umount"; do
  refuses 1 "" txfs -C copy "$command"
done
equal work "$(cat mnt/b)" "the original's work"
txfs umount mnt

# A workspace that is moved keeps what is open, and its history.
txfs -C ws commit -m one >/dev/null
txfs mount ws mnt
echo open >mnt/c
txfs umount mnt
mv ws moved
mkdir ws
refuses 1 "is not inside a txfs workspace" txfs -C ws list
equal "committed active" \
  "$(txfs -C moved list --json | json '" ".join(t["state"] for t in d)')" "a moved workspace"
txfs mount moved mnt
equal open "$(cat mnt/c)" "what was open"
txfs umount mnt
txfs -C moved fsck >/dev/null
# And to another filesystem by one word; what is behind it, here a copy, has other
# inode numbers.
cp -a moved elsewhere
rm -rf moved
refuses_with_hint 1 "no foreign store" txfs adopt elsewhere
contains "$(cat "$TMPDIR/err")" "$PWD/moved"
said=$(txfs adopt elsewhere --from moved)
contains "$said" "nothing is adopted yet"
contains "$said" "committed, \"one\""
txfs adopt elsewhere --from moved --yes >/dev/null
equal "committed active" \
  "$(txfs -C elsewhere list --json | json '" ".join(t["state"] for t in d)')" "a workspace that was adopted"
txfs -C elsewhere commit >/dev/null
equal open "$(cat elsewhere/c)" "what was adopted"
txfs -C elsewhere fsck >/dev/null
refuses_with_hint 1 "no foreign store" txfs adopt elsewhere

# adopt: the policy in force judges, a commit that was interrupted is not finished.
foreign_store ws
echo intent >ws/.txfs/intent
said=$(txfs adopt ws 2>"$TMPDIR/err")
contains "$(cat "$TMPDIR/err")" "a commit was interrupted"
contains "$said" "shipped"
contains "$said" "refused: .git/hooks/post-commit by txfs-git-hooks"
contains "$said" "nothing is adopted yet"
equal 0 "$(txfs -C ws list --json 2>/dev/null | json 'len(d)')" "transactions before --yes"
contains "$(txfs adopt --yes ws 2>/dev/null)" "adopted 1 transaction"
txfs mount ws mnt
equal shipped "$(cat mnt/shipped)" "what was adopted"
[ ! -e mnt/.git/hooks/post-commit ] || fail "what is refused was taken over"
txfs umount mnt
[ -e ws/.txfs/intent ] || fail "the foreign store was written to"
txfs -C ws fsck >/dev/null 2>&1

# 5. A store above, in a directory that everybody can write to.
mkdir -p open/below
foreign_store open
chmod 1777 open
refuses 1 "is not inside a txfs workspace" txfs -C open/below list
txfs mount open mnt
txfs umount mnt
refuses 1 "is not inside a txfs workspace" txfs -C open/below list
chmod 755 open
equal 1 "$(txfs -C open/below list --json 2>/dev/null | json 'len(d)')" "transactions, found from below"

# What decides for txfs is not in reach of who works in a mount.
mkdir -p home/.local/state home/.config
refuses_with_hint 1 "which controls txfs" env XDG_STATE_HOME="$PWD/home/.local/state" txfs mount home mnt
refuses_with_hint 1 "which controls txfs" env XDG_CONFIG_HOME="$PWD/home/.config" txfs mount home mnt

# Nor is the store of another workspace, whichever of them was first.
mkdir outer inner
txfs mount inner mnt --store outer/store
txfs umount mnt
refuses_with_hint 1 "lies inside the workspace or the mountpoint" txfs mount outer mnt
txfs -C inner discard >/dev/null
rm -r outer/store
txfs mount outer mnt
txfs umount mnt
mkdir late
refuses_with_hint 1 "lies inside the workspace $PWD/outer" txfs mount late mnt --store outer/late

# The state directory is private, or is not used.
mkdir shared own
chmod 777 shared
refuses_with_hint 1 "is writable by other users" env XDG_STATE_HOME="$PWD/shared/state" txfs mount own mnt
mkdir -m 755 loose loose/txfs
XDG_STATE_HOME=$PWD/loose txfs mount own mnt
txfs umount mnt
equal 700 "$(stat -c %a loose/txfs)" "mode of the state directory"

# The rest needs other users, and filesystems of its own.
[ "$(id -u)" -eq 0 ] || exit 0
chown 12 loose/txfs
refuses_with_hint 1 "belongs to" env XDG_STATE_HOME="$PWD/loose" txfs mount own mnt
chown 12 own
refuses_with_hint 1 "belongs to" txfs mount own mnt
refuses_with_hint 1 "--as-owner" txfs -C own list

# What is adopted becomes the adopter's: no owner, privilege or device of the
# other's comes with it, nor by a savepoint.
needs setpriv
mkdir evil
echo base >evil/file
echo base >evil/kept
chmod 4755 evil/kept
txfs mount --no-default-policy evil mnt
chown 12:12 mnt
mkdir mnt/dir
cp /bin/true mnt/dir/tool
chown -R 12:12 mnt/dir
chmod 6755 mnt/dir/tool
chown 12 mnt/file
mknod mnt/disk b 8 0
txfs -C mnt savepoint before >/dev/null
echo more >mnt/more
txfs umount mnt
for who in same cloned user; do
  mkdir $who
  cp -p evil/file evil/kept $who
  cp -a "$(store_of evil)" $who/.txfs
done
printf %s "$PWD/same" >same/.txfs/workspace
chown -R 65534:65534 user
chmod 4755 user/kept
adopt_as() {
  if [ "$1" = user ]; then
    shift
    mkdir -p nobody
    chown 65534 nobody
    setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_STATE_HOME="$PWD/nobody/state" "$@"
  else
    shift
    "$@"
  fi
}
for who in same cloned user; do
  said=$(adopt_as $who txfs adopt $who 2>/dev/null)
  contains "$said" "refused: disk by txfs-adopt"
  contains "$said" "will belong to you"
  adopt_as $who txfs adopt --yes $who >/dev/null 2>&1
  refuses 1 "no savepoint" adopt_as $who txfs -C $who rollback before
  adopt_as $who txfs -C $who commit >/dev/null 2>&1 || fail "$who: a commit of what was adopted"
  owner=0
  [ $who != user ] || owner=65534
  equal $owner "$(find $who -path $who/.txfs -prune -o -printf '%U\n' | sort -u)" "owners, $who"
  equal "$(printf '755 dir/tool\n4755 kept')" "$(cd $who && stat -c '%a %n' dir/tool kept)" "modes, $who"
  [ ! -e $who/disk ] || fail "a device was adopted"
  equal more "$(cat $who/more)" "what was adopted"
done

needs mkfs.ext4
truncate -s 64M image
mkfs.ext4 -q image
mkdir first second
unshare -m sh -eu -c '
  mount -o loop image first 2>/dev/null || exit 77
  mkdir first/ws
  echo 1 >first/ws/a
  txfs mount first/ws mnt
  echo work >mnt/b
  sync
  cp image clone.image
  mount -o loop clone.image second
  for command in discard commit list status; do
    ! txfs -C second/ws $command >out 2>err || exit 1
    grep -q "is not inside a txfs workspace" err
  done
  test "$(cat mnt/b)" = work
  txfs umount mnt
  umount second first
' 2>"$TMPDIR/err" || [ $? -eq 77 ] || fail "a cloned filesystem: $(cat "$TMPDIR/err")"
