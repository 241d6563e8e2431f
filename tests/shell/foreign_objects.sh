#!/bin/sh
# What belongs to root in an ordinary user's workspace: what POSIX allows on a
# plain directory commits, the rest is refused at the operation, and what may not
# be read hides nothing else.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_root
needs fusermount3 setpriv unshare setfattr getfattr
if [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=1 exec unshare --mount sh -eu "$0"
fi
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null &&
  mount --bind "$TMPDIR/fuse" /dev/fuse || skip "no device nodes here"
cp "$TXFS" txfs-program
chmod 755 txfs-program
TXFS=$PWD/txfs-program
mkdir ws mnt plain
for base in ws plain; do
  mkdir -p $base/data $base/old $base/full/in $base/tmp $base/search/deep $base/shut
  echo kept >$base/data/file
  echo secret >$base/sec
  echo secret >$base/replaced
  echo shared >$base/one
  ln $base/one $base/two
  echo own >$base/search/deep/own
  echo other >$base/search/deep/other
  echo theirs >$base/tmp/theirs
  echo inside >$base/shut/file
  echo open >$base/writable
  chmod 600 $base/sec $base/replaced
  echo same >$base/touched
  chmod 666 $base/writable $base/touched
  touch -d 2001-01-01 $base/touched
  # u::rw-,u:1234:r--,g::rw-,m::rw-,o::rw-
  echo listed >$base/listed
  chmod 666 $base/listed
  setfattr -n system.posix_acl_access -v 0x0200000001000600ffffffff02000400d204000004000600ffffffff10000600ffffffff20000600ffffffff $base/listed
  chmod 1777 $base/tmp
  chmod 700 $base/shut
  chmod 711 $base/search
  mkdir $base/only
  echo in >$base/only/in
  chown 65534:65534 $base $base/only $base/only/in $base/search/deep/own
  chmod 311 $base/only
done
chown -R 65534:65534 "$HOME" mnt
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
as_user sh -c '[ -r /dev/fuse ] && [ -w /dev/fuse ]' ||
  skip "/dev/fuse is not for ordinary users here"

# Each line is done on the plain directory and in the mount, and ends alike.
cat >steps <<'END'
mv data data2
rmdir old
mv -T full empty-now
mv data2 empty-now/data2
rm -f two
mv one one2
rm -f sec
rm -f replaced && echo mine >replaced
echo more >>search/deep/own
echo more >>search/deep/other
cat search/deep/other
ls search
ls only
cat only/in
echo made >only/made
mv shut shut2
ls shut2
rm -f tmp/theirs
mv tmp/theirs tmp/mine
echo more >>writable
touch -d 2001-01-01 writable
touch touched
chmod 644 writable
chmod 755 empty-now
rmdir empty-now
setfattr -n user.note -v noted listed
END
as_user "$TXFS" mount ws mnt
while read -r step; do
  for place in plain mnt; do
    status=0
    # A mount is its user's alone.
    as_user sh -c "cd $place; $step" >"$TMPDIR/$place.out" 2>&1 || status=$?
    echo "$status" >>"$TMPDIR/$place.out"
  done
  diff "$TMPDIR/plain.out" "$TMPDIR/mnt.out" >&2 || fail "$step: ends otherwise in the mount"
done <steps

# 1. What may not be read is named, and the rest is shown.
check_shown() {
  as_user "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || fail "$*: exit code $?: $(cat "$TMPDIR/err")"
  for file in replaced sec; do
    grep -q "^note: $file cannot be read: its content is not shown" "$TMPDIR/err" ||
      fail "$*: nothing is said of $file: $(cat "$TMPDIR/err")"
  done
}
check_all() {
  check_shown "$@"
  grep -qx "+more" "$TMPDIR/out" || fail "$*: the rest is not shown"
  grep -qx "# txfs: deleted, content cannot be read  sec" "$TMPDIR/out"
  grep -qx "# txfs: changed, content cannot be read  replaced" "$TMPDIR/out"
  grep -q "^note: shut2 cannot be listed" "$TMPDIR/err"
  check_shown "$@" --name-status
  grep -qxF "$(printf 'D\tsec')" "$TMPDIR/out"
  grep -qxF "$(printf 'M\treplaced')" "$TMPDIR/out"
  grep -qxF "$(printf 'R100\tdata/\tdata2/')" "$TMPDIR/out"
  grep -qxF "$(printf 'D\told/')" "$TMPDIR/out"
  check_shown "$@" --stat
  grep -q "^ sec *| cannot be read" "$TMPDIR/out"
  grep -q "search/deep/own *|  *1 +" "$TMPDIR/out"
}
check_all "$TXFS" -C mnt diff
check_shown "$TXFS" -C mnt diff --json
equal True "$(json 'any(c["path"] == "sec" for c in d)' <"$TMPDIR/out")" "sec in --json"
as_user "$TXFS" -C mnt status >"$TMPDIR/out"
grep -q "^changes  *[1-9]" "$TMPDIR/out"
contains "$(as_user "$TXFS" -C mnt log --path sec)" unlink
as_user "$TXFS" -C mnt savepoint here
as_user sh -c 'rm -f mnt/writable && echo 12345678 >mnt/writable'
as_user "$TXFS" -C mnt diff --since here >"$TMPDIR/out"
contains "$(cat "$TMPDIR/out")" "+12345678"

# 2. What another transaction makes where it may only be searched is seen.
mkdir mnt2
chown 65534:65534 mnt2
as_user "$TXFS" mount ws mnt2 --name second
as_user cat mnt/only/later 2>/dev/null && fail "it is there already"
as_user sh -c 'echo later >mnt2/only/later'
as_user "$TXFS" -C mnt2 commit -m second >/dev/null
as_user "$TXFS" umount mnt2
equal later "$(as_user cat mnt/only/later)" "what another transaction made"
as_user sh -c 'echo later >plain/only/later'

# 3. All of it commits, can be shown, undone and done again.
kept() { find ws -name '.txfs-vault*'; }
equal "" "$(kept)" "kept in the workspace before the commit"
manifest ws >before
id=$(as_user "$TXFS" -C mnt commit --json -m foreign 2>/dev/null | json 'd["id"]')
as_user sh -c 'rm -f plain/writable && echo 12345678 >plain/writable'
# Without numbers of links: a removed name stays one in the vault.
seen() { manifest "$1" | awk -F '\t' -v OFS='\t' 'NF > 4 { $5 = "" } !/\.txfs-vault/'; }
committed() {
  seen ws >"$TMPDIR/ws.now"
  seen plain >"$TMPDIR/plain.now"
  diff -u "$TMPDIR/plain.now" "$TMPDIR/ws.now" >&2 || fail "the commit is not what a plain directory has"
}
committed
[ -n "$(find ws/touched -newer ws/replaced)" ] || fail "a touch of root's file is not committed"
equal noted "$(getfattr --only-values -n user.note ws/listed)" "an attribute beside a list of root's"
check_all "$TXFS" -C mnt show "$id"
undo=$(as_user "$TXFS" -C mnt undo --json | json 'd["id"]')
manifest ws >"$TMPDIR/now"
diff -u before "$TMPDIR/now" >&2 || fail "the undo left something"
as_user "$TXFS" -C mnt show "$id" >"$TMPDIR/out" 2>&1
as_user "$TXFS" -C mnt undo "$undo" >/dev/null
committed
as_user "$TXFS" -C mnt fsck >/dev/null
as_user "$TXFS" umount mnt
as_user "$TXFS" -C ws gc --keep-commits 0 >/dev/null
equal "" "$(kept)" "left in the workspace by gc"
committed
