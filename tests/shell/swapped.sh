#!/bin/sh
# What root's mount for all shows of a base in which others move and close files:
# nothing that the asking user may not read.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs setpriv
needs_fuse
needs_root
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

rounds=8
mkdir ws m
chmod 755 .
for i in $(seq $rounds); do
  echo public >ws/x$i
  echo SECRET >ws/s$i
  echo public >ws/c$i
  echo public >ws/w$i
  chmod 666 ws/w$i
  echo public >ws/o$i
  echo SECRET >ws/p$i
  chmod 600 ws/s$i ws/p$i
  mkdir ws/d$i ws/e$i
  echo public >ws/d$i/f
  echo SECRET >ws/e$i/f
  echo SECRET >ws/e$i/SECRET
  chmod 700 ws/e$i
done
"$TXFS" mount --allow-other ws m

# never_shows COMMAND...: what the user sees with it has no secret in it.
never_shows() {
  as_user "$@" >"$TMPDIR/seen" 2>&1 || :
  if grep -qx SECRET "$TMPDIR/seen"; then
    fail "$*: $(cat "$TMPDIR/seen")"
  fi
}
# becomes PART COMMAND...: the kernel has heard of it before long.
becomes() {
  part=$1
  shift
  tries=0
  until "$@" 2>&1 | grep -qF -- "$part"; do
    tries=$((tries + 1))
    [ $tries -lt 2000 ] || fail "$*: no '$part': $("$@" 2>&1)"
  done
}

for i in $(seq $rounds); do
  # Another file has its name.
  as_user stat m/x$i >stat
  mv ws/x$i ws/x$i.old
  mv ws/s$i ws/x$i
  for _ in 1 2 3; do never_shows cat m/x$i; done
  becomes 'Permission denied' as_user cat m/x$i
  becomes SECRET cat m/x$i

  # The same file is closed, and written to. What is opened before the kernel
  # has heard of it stays open, as with any chmod.
  as_user stat m/c$i >stat
  chmod 600 ws/c$i
  echo SECRET >ws/c$i
  as_user cat m/c$i >stat 2>&1 || :
  becomes 'Permission denied' as_user cat m/c$i
  becomes SECRET cat m/c$i

  # To change it first does not open it.
  as_user stat m/w$i >stat
  chmod 600 ws/w$i
  echo SECRET >ws/w$i
  as_user sh -c "echo more >>m/w$i" || :
  for _ in 1 2 3; do never_shows cat m/w$i; done

  # Another directory has its name.
  as_user stat m/d$i/f >stat
  mv ws/d$i ws/d$i.old
  mv ws/e$i ws/d$i
  for _ in 1 2 3; do
    never_shows cat m/d$i/f
    never_shows ls m/d$i
    never_shows cat m/d$i/SECRET
  done
  becomes SECRET sh -c "cat m/d$i/SECRET 2>stat"

  # Who has it open keeps what was opened, or nothing.
  mkfifo -m 666 opened go
  as_user sh -c "exec 3<m/o$i; echo >opened; read -r _ <go
    for _ in 1 2 3 4 5; do cat <&3; cat m/o$i; cat <&3; done" \
    >seen 2>&1 &
  read -r _ <opened
  mv ws/o$i ws/o$i.old
  mv ws/p$i ws/o$i
  echo >go
  wait $! || :
  grep -q SECRET seen && fail "an open file became another one: $(cat seen)"
  rm opened go
done
"$TXFS" umount m
