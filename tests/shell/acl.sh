#!/bin/bash
# Access control lists and set-user-ID bits, with other users in the mount.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
needs setpriv setfattr getfattr fallocate
chmod 755 "$TMPDIR" .
other() { setpriv --reuid=1000 --regid=1000 --clear-groups "$@"; }
denied() { if other "$@" >/dev/null 2>err; then fail "$*: was allowed"; fi; }

# list USER GROUP MASK OTHER: an access control list with an entry for user 1000;
# the owner may read and write.
list() {
  printf '0x02000000'
  printf '01000600ffffffff02000%s00e803000004000%s00ffffffff10000%s00ffffffff20000%s00ffffffff' "$@"
}
access=system.posix_acl_access
default=system.posix_acl_default
set_list() { setfattr -n "$1" -v "$2" "$3"; }
list_of() { getfattr --absolute-names --only-values -e hex -n "$1" "$2" 2>/dev/null | od -An -tx1 | tr -d ' \n'; }
is_list() { equal "${1#0x}" "$(list_of "$2" "$3")" "the list of $3"; }

mkdir ws ws/dir
for name in closed opened masked plain later; do echo "$name" >ws/$name; done
set_list $access "$(list 0 4 4 4)" ws/closed || skip "no access control lists here"
set_list $access "$(list 4 0 4 0)" ws/opened
set_list $access "$(list 4 4 0 0)" ws/masked
set_list $default "$(list 0 4 4 4)" ws/dir
txfs mount --allow-other ws

# As the base has them.
denied cat ws/closed
equal opened "$(other cat ws/opened)" "what only the list allows"
denied cat ws/masked
other cat ws/plain >/dev/null

# In the transaction.
set_list $access "$(list 0 4 4 4)" ws/plain
denied cat ws/plain
chmod 664 ws/plain
is_list "$(list 0 4 6 4)" $access ws/plain
chmod 644 ws/plain
echo made >ws/dir/made
denied cat ws/dir/made
mkdir ws/dir/sub
is_list "$(list 0 4 4 4)" $default ws/dir/sub
echo more >>ws/opened
equal "opened
more" "$(other cat ws/opened)" "a changed file with a list"
contains "$(txfs -C ws diff --name-status)" plain

txfs -C ws commit -m lists >/dev/null
txfs umount ws
is_list "$(list 0 4 4 4)" $access ws/plain
is_list "$(list 0 4 4 4)" $default ws/dir/sub
is_list "$(list 0 4 4 4)" $access ws/dir/made
is_list "$(list 4 0 4 0)" $access ws/opened
denied cat ws/plain
denied cat ws/dir/made
txfs -C ws undo >/dev/null
equal "" "$(list_of $access ws/plain)" "the list after undo"
other cat ws/plain >/dev/null

# A list in the base, behind the mount, for which the kernel has the answer that
# there is none.
mkdir mnt
txfs mount --allow-other ws mnt
other test -r mnt/later
await_tick
set_list $access "$(list 0 4 4 4)" ws/later
denied cat mnt/later
contains "$(cat err)" Stale
denied cat mnt/later

# Privileges go with the content.
umask 0
for change in append direct punch zero reserve; do
  head -c 8192 /dev/zero >mnt/$change
  chmod 6777 mnt/$change
done
other sh -c 'echo x >>mnt/append'
other dd if=/dev/zero of=mnt/direct bs=4096 count=1 oflag=direct conv=notrunc status=none
other fallocate -p -o 0 -l 4096 mnt/punch
other fallocate -z -o 0 -l 4096 mnt/zero
other fallocate -l 20000 mnt/reserve
for change in append direct punch zero reserve; do
  equal 777 "$(stat -c %a mnt/$change)" "mode after $change"
done
txfs umount mnt
txfs -C ws fsck >/dev/null
