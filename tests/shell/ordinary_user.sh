#!/bin/sh
# The main job without root, through fusermount3.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3 setpriv unshare
if [ "$(id -u)" -eq 0 ] && [ -z "${IN_NAMESPACE-}" ]; then
  # /dev/fuse is only for root on some machines: in a mount namespace of its own
  # the test has one that is for all.
  IN_NAMESPACE=1 exec unshare --mount sh -eu "$0"
fi
if [ "$(id -u)" -eq 0 ]; then
  mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null &&
    mount --bind "$TMPDIR/fuse" /dev/fuse || skip "no device nodes here"
  user="setpriv --reuid=65534 --regid=65534 --clear-groups"
  chmod 755 "$TMPDIR"
  chown -R 65534:65534 "$HOME" .
  cp "$TXFS" txfs-program
  chmod 755 txfs-program
  TXFS=$PWD/txfs-program
else
  user=""
fi
as_user() { $user "$@"; }
# Not in the user's home. The state of root's.
txfs_of_root() { XDG_STATE_HOME=$TMPDIR/root-state "$TXFS" "$@"; }
# What belongs to others, in a directory of the user's.
if [ -n "$user" ]; then
  mkdir foreign
  echo of-root >foreign/file
  echo for-all >foreign/writable
  chmod 666 foreign/writable
  mkdir foreign/dir
  chown 65534:65534 foreign
fi
as_user sh -c '[ -r /dev/fuse ] && [ -w /dev/fuse ]' ||
  skip "/dev/fuse is not for ordinary users here"

# Root acts on a user's workspace only as that user, and not by itself: not a
# byte of what the user made is read with root's rights.
if [ -n "$user" ]; then
  mkdir stores stores/whole stores/part stores/mnt stores/roots
  chown 65534:65534 stores stores/whole stores/part stores/mnt
  as_user "$TXFS" mount stores/part stores/mnt
  as_user touch stores/mnt/new
  as_user "$TXFS" umount stores/mnt
  for ws in whole part; do
    for command in "-C stores/$ws status" "-C stores/$ws list" "-C stores/$ws commit" \
      "-C stores/$ws gc" "-C stores/$ws undo" "mount stores/$ws stores/mnt" "-C stores/$ws fsck"; do
      # shellcheck disable=SC2086 # words
      refuses_with_hint 1 "" txfs_of_root $command
    done
    refuses_with_hint 1 "belongs to nobody, not to root" txfs_of_root mount stores/$ws stores/mnt
    contains "$(cat "$TMPDIR/err")" "--as-owner"
  done
  [ ! -e "$TMPDIR/root-state/txfs/workspaces" ] || fail "root has a record of it"
  # Under sudo the home may be that user's: root makes nothing there, where that
  # user could not use it.
  mkdir home-of-user
  chown 65534:65534 home-of-user
  for command in "mount stores/roots stores/mnt" "-C stores/roots list" "gc --gone"; do
    # shellcheck disable=SC2086 # words
    HOME=$PWD/home-of-user XDG_STATE_HOME='' "$TXFS" $command >"$TMPDIR/out" 2>&1 || true
  done
  equal "" "$(find home-of-user -mindepth 1)" "what root made in the home of a user"
  # The home of that user is where the test has one.
  sed "s|^nobody:.*|nobody:x:65534:65534::$HOME:/bin/sh|" /etc/passwd >passwd
  grep -q "^nobody:.*$HOME" passwd || echo "nobody:x:65534:65534::$HOME:/bin/sh" >>passwd
  mount --bind passwd /etc/passwd
  contains "$(txfs_of_root --as-owner -C stores/part list)" active
  txfs_of_root --as-owner -C stores/part commit -m by-root
  equal 65534 "$(stat -c %u stores/part/new)" "owner of what root committed as the owner"
  contains "$(as_user "$TXFS" -C stores/part list)" by-root
  equal "" "$(find "$HOME" stores -newer passwd ! -uid 65534 ! -path stores/roots)" "what root left"
  txfs_of_root --as-owner mount stores/part stores/mnt
  as_user touch stores/mnt/again
  refuses_with_hint 1 "" txfs_of_root umount stores/mnt
  txfs_of_root --as-owner umount stores/mnt
  umount /etc/passwd
  as_user "$TXFS" -C stores/part discard
  refuses_with_hint 2 "only root" as_user "$TXFS" --as-owner -C stores/roots list
  refuses_with_hint 1 "belongs to root" as_user "$TXFS" mount stores/roots stores/mnt
fi

# A mount that root made for all is root's to command.
if [ -n "$user" ]; then
  txfs_of_root mount --allow-other stores/roots stores/mnt
  as_user touch stores/mnt/by-user 2>/dev/null && fail "the mode is not heeded"
  as_user grep -q txfs-env-kept stores/mnt/.txfs/policy.md
  for file in status.json last_denial.json denials.jsonl; do
    as_user cat "stores/mnt/.txfs/$file" 2>/dev/null && fail "others may read $file"
    cat "stores/mnt/.txfs/$file" >/dev/null
  done
  refuses_with_hint 1 "" as_user "$TXFS" -C stores/mnt status
  refuses_with_hint 1 "$PWD/stores/mnt" as_user "$TXFS" umount stores/mnt
  txfs_of_root umount stores/mnt
fi

# What the user may not look into can be renamed where that is allowed.
if [ -n "$user" ]; then
  as_user mkdir stores/shut
  mkdir -m 700 stores/shut/dir
  echo A=1 >stores/shut/dir/.env
  as_user "$TXFS" mount stores/shut stores/mnt
  as_user mv stores/mnt/dir stores/mnt/moved
  as_user "$TXFS" umount stores/mnt
fi

# fusermount3 looks for mounts in /etc/mtab, which a container may lack.
if [ -n "$user" ]; then
  as_user mkdir stores/mtab
  as_user "$TXFS" mount stores/mtab stores/mnt
  cp -a /etc etc
  rm etc/mtab
  mount --bind etc /etc
  refuses_with_hint 1 "/etc/mtab: No such file" \
    as_user "$TXFS" umount stores/mnt
  umount /etc
  as_user "$TXFS" umount stores/mnt
fi

as_user sh -eu <<'END'
mkdir ws mnt
echo base >ws/file
"$TXFS" mount ws mnt
echo changed >mnt/file
[ "$(cat ws/file)" = base ]
"$TXFS" -C mnt commit -m x
[ "$(cat ws/file)" = changed ]
echo again >mnt/file
"$TXFS" -C mnt discard
[ "$(cat mnt/file)" = changed ]
# fusermount3 may not look into a mount that is its user's alone.
mkdir mnt/inner other
status=0
"$TXFS" mount other mnt/inner 2>err || status=$?
[ $status -eq 1 ]
grep -q "$PWD/mnt/inner" err
grep -q '^hint: ' err
"$TXFS" umount mnt

# What its owner may not read is said to be missing in a diff, and nothing else
# is.
mkdir -p shut/dir
echo secret >shut/file
echo old >shut/seen
touch shut/dir/in
chmod 000 shut/file shut/dir
"$TXFS" mount shut mnt
rm -f mnt/file
mv mnt/dir mnt/moved
echo new >mnt/seen
"$TXFS" -C mnt diff >out 2>err
grep -qx "+new" out
grep -q "^note: file cannot be read" err
grep -q "^note: moved cannot be listed" err
"$TXFS" -C mnt diff --name-status >out
grep -qxF "$(printf 'D\tfile')" out
grep -qxF "$(printf 'R100\tdir/\tmoved/')" out
"$TXFS" -C mnt diff --json >out
"$TXFS" -C mnt diff --stat | grep -q "seen | 2 "
id=$("$TXFS" -C mnt commit --json -m shut | sed -n 's/.*"id": "\([^"]*\)".*/\1/p')
"$TXFS" -C mnt show "$id" >out 2>err
grep -qx "+new" out
grep -q "^note: file cannot be read" err
"$TXFS" -C mnt undo
[ "$(stat -c %a shut/file)" = 0 ]
[ "$(cat shut/seen)" = old ]
# Nor may it be searched, or was made so; and what no commit could keep is
# refused where it is written.
mkdir shut/listed
echo in >shut/listed/in
echo kept >shut/append
chmod 644 shut/listed
chmod 200 shut/append
mv mnt/listed mnt/moved
mkdir mnt/closed
echo in >mnt/closed/in
chmod 000 mnt/closed
echo newer >mnt/seen
status=0
cat shut/seen 2>err >>mnt/append || status=$?
[ $status -ne 0 ]
grep -q "Permission denied" err
"$TXFS" -C mnt diff >out 2>err
grep -qx "+newer" out
grep -q "^note: moved cannot be listed" err
"$TXFS" -C mnt status >out
id=$("$TXFS" -C mnt commit --json -m closed | sed -n 's/.*"id": "\([^"]*\)".*/\1/p')
"$TXFS" -C mnt show "$id" >out 2>err
grep -qx "+newer" out
grep -q "^note: moved cannot be listed" err
grep -q "^note: closed cannot be listed" err
echo instead >mnt/append
"$TXFS" -C mnt commit -m instead
"$TXFS" umount mnt
chmod u+rwx shut/dir shut/moved shut/closed shut/append
[ "$(cat shut/append)" = instead ]

# Directories that deny their owner, as package caches have them.
mkdir -p cache/mod/deep cache/gone/deep
echo 1 >cache/mod/deep/f
echo 2 >cache/gone/deep/f
chmod -R a-w cache/mod cache/gone
"$TXFS" mount cache mnt
mv mnt/mod mnt/mod2
chmod -R u+w mnt/gone
rm -r mnt/gone
"$TXFS" -C mnt commit -m cache
[ "$(cat cache/mod2/deep/f)" = 1 ]
[ "$(stat -c %a cache/mod2)" = 555 ]
[ ! -e cache/gone ]
[ ! -e cache/mod ]
"$TXFS" umount mnt
chmod -R u+w cache

# And directories that a transaction made so: nobody may look into them when the
# commit is done, and it is done all the same, can be taken back and done again.
mkdir -p denied/old denied/quiet
echo 1 >denied/old/f
echo 2 >denied/quiet/f
cp -a denied before
id_of() { sed -n 's/.*"id": "\([^"]*\)".*/\1/p'; }
for mode in 0 300 400; do
  "$TXFS" mount denied mnt
  mkdir -p mnt/new/deep mnt/alone
  echo new >mnt/new/f
  echo deep >mnt/new/deep/f
  echo changed >mnt/old/f
  echo made >mnt/old/g
  chmod $mode mnt/new/deep mnt/new mnt/alone mnt/old mnt/quiet
  "$TXFS" -C denied commit -m denied >/dev/null
  "$TXFS" umount mnt
  for dir in new alone old quiet; do
    [ "$(stat -c %a denied/$dir)" = $mode ]
  done
  "$TXFS" -C denied fsck >/dev/null
  undo=$("$TXFS" -C denied undo --json | id_of)
  diff -r before/old denied/old
  [ "$(cd before && stat -c '%n %a %y' ./* ./*/*)" = "$(cd denied && stat -c '%n %a %y' ./* ./*/*)" ]
  undo=$("$TXFS" -C denied undo "$undo" --json | id_of)
  [ "$(stat -c %a denied/new)" = $mode ]
  chmod 700 denied/old
  [ "$(cat denied/old/f denied/old/g)" = "$(printf 'changed\nmade')" ]
  chmod 700 denied/new denied/new/deep
  [ "$(cat denied/new/f denied/new/deep/f)" = "$(printf 'new\ndeep')" ]
  # Who works in it after all, and hides that, loses nothing.
  echo later >denied/new/deep/later
  chmod $mode denied/old denied/new/deep denied/new
  status=0
  "$TXFS" -C denied undo "$undo" 2>err || status=$?
  [ $status -eq 3 ]
  grep -q new/deep/later err
  [ "$(stat -c %a denied/new)" = $mode ]
  chmod 700 denied/*/
  chmod 700 denied/new/deep
  rm -rf denied
  cp -a before denied
done

# What may be listed and not looked into.
mkdir -p listed/dir
echo 1 >listed/dir/f
chmod 400 listed/dir
"$TXFS" mount listed mnt
[ "$(ls mnt/dir)" = f ]
status=0
cat mnt/dir/f 2>err || status=$?
[ $status -eq 1 ]
grep -q "Permission denied" err
"$TXFS" umount mnt
chmod 700 listed/dir
# Another name of a file in there is left alone when one goes, with its mode.
mkdir listed/other
ln listed/dir/f listed/other/f
chmod 400 listed/dir
"$TXFS" mount listed mnt
rm mnt/other/f
"$TXFS" -C mnt commit -m one-name
"$TXFS" umount mnt
[ "$(stat -c %a listed/dir)" = 400 ]
chmod 700 listed/dir
[ "$(cat listed/dir/f)" = 1 ]

# Files of others: moved, and written to where they may be, as without txfs.
if [ -d foreign ]; then
  "$TXFS" mount foreign mnt
  mv mnt/file mnt/file2
  echo more >>mnt/writable
  "$TXFS" -C mnt commit -m foreign
  [ "$(cat foreign/file2)" = of-root ]
  [ "$(tail -n 1 foreign/writable)" = more ]
  [ "$(stat -c %u foreign/writable)" = 0 ]
  # The kernel lets the owner of its parent rename it, and so does a commit.
  mv mnt/dir mnt/dir2
  "$TXFS" -C mnt commit -m dir
  [ -d foreign/dir2 ]
  "$TXFS" umount mnt
fi
END
