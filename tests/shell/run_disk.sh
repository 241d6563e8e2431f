#!/bin/sh
# --disk and --files of txfs run: what exceeds them is refused (EDQUOT), ends the
# run and is rolled back; as root and as an ordinary user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap fusermount3 python3 setpriv unshare fallocate
needs_root
alone
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
cp "$TXFS" txfs-program
chmod 755 txfs-program "$TMPDIR"
TXFS=$PWD/txfs-program
err=$PWD/err

as() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }
act() { as "$TXFS" -C ws "$@"; }

# run CODE LINE OPTION...: `txfs run` ends with CODE, and the last line that is said begins with LINE.
run() {
  code=$1 line=$2
  shift 2
  status=0
  act run "$@" >/dev/null 2>"$err" || status=$?
  [ "$status" -eq "$code" ] ||
    fail "$*: expected exit code $code, got $status: $(cat "$err")"
  said=$(grep -v "^hint: " "$err" | tail -n 1)
  case $said in
    "$line"*) ;;
    *) fail "$*: expected '$line', got: $(cat "$err")" ;;
  esac
}

cat >writes.py <<'END'
# writes.py HOW: 3 MiB, and prints how it ended.
import mmap, os, sys, errno
how = sys.argv[1]
fd = os.open("large", os.O_RDWR | os.O_CREAT)
piece = b"x" * 65536
try:
    if how == "mapping":
        os.ftruncate(fd, 3 << 20)
        with mmap.mmap(fd, 3 << 20) as memory:
            for at in range(0, 3 << 20, len(piece)):
                memory[at:at + len(piece)] = piece
            memory.flush()
    else:
        for at in range(0, 3 << 20, len(piece)):
            os.pwrite(fd, piece, 0 if how == "again" else at)
except OSError as error:
    with open("/dev/stderr", "w") as out:
        print(errno.errorcode[error.errno], file=out)
os._exit(0)
END

check_disk() {
  uid=$1
  rm -rf ws
  mkdir ws
  echo before >ws/file
  cp writes.py ws
  chown -R "$uid:$uid" ws "$HOME"
  cp -a ws expected
  disk="rolled back: disk limit of 2.0 MiB exceeded after "
  files="rolled back: limit of 10 new files exceeded after "

  # What keeps to its limits, to the byte.
  run 0 "committed 2 changes in " --disk 2M --files 1 --json "$HOME/report" -- sh -c '
    head -c 1048576 /dev/zero >new; head -c 1048576 /dev/zero >file; truncate -s 1G file'
  equal daemon "$(json 'd["limits_by"]' <"$HOME/report")" "what enforces the limits"
  rm "$HOME/report"
  equal "1048576 1073741824" "$(stat -c %s ws/new ws/file | xargs)" "sizes"
  rm ws/new
  cp -a expected/. ws

  # What writes more is told so, and the run fails whatever its exit code is.
  for how in once again mapping; do
    run 123 "$disk" --disk 2M -- sh -c "echo after >file; python3 writes.py $how"
    same_tree expected ws
  done
  run 123 "$disk" --disk 2M -- sh -c 'dd if=/dev/zero of=large bs=1M count=3'
  contains "$(cat "$err")" "Disk quota exceeded"
  run 123 "$disk" --disk 2M -- fallocate -l 3M large
  run 123 "$disk" --disk 2M -- python3 -c '
import os
for i in range(40): os.setxattr("file", "user.%d" % i, b"x" * 60000)'
  # Several at a time, which have ended with the run.
  run 123 "$disk" --disk 2M -- sh -c 'trap "" TERM
    for i in 1 2 3 4; do
      setsid sh -c "trap \"\" TERM; while :; do head -c 100000 /dev/zero >large-$i; done" &
    done 2>/dev/null
    wait; sleep 1000'
  same_tree expected ws
  # What is refused is all that is missing.
  run 123 "kept 1 change: disk limit of 2.0 MiB exceeded after " --disk 2M --keep --name kept -- \
    sh -c 'for i in 1 2 3; do head -c 1048576 /dev/zero; done >large; sleep 1000'
  act -t kept diff --json >diff.json
  equal True "$(json 'd[0]["new"]["size"] <= 2 << 20 and d[0]["new"]["size"] > 1 << 20' <diff.json)" \
    "size of what was written"
  act -t kept discard >/dev/null

  # Files.
  run 0 "committed 10 changes in " --files 10 -- sh -c 'for i in 0 1 2 3 4 5 6 7 8 9; do echo >new-$i; done'
  rm ws/new-*
  run 123 "$files" --files 10 -- sh -c 'i=0; while :; do i=$((i + 1)); mkdir d-$i; done 2>/dev/null'
  run 123 "$files" --files 10 -- sh -c 'for i in $(seq 11); do : >f; rm f; done; exit 0'
  same_tree expected ws

  # The private home has the same limits for itself.
  run 0 "committed 1 change in " --disk 2M -- sh -c '
    head -c 2097152 /dev/zero >~/large; head -c 2097152 /dev/zero >large'
  rm ws/large
  run 123 "$disk" --disk 2M -- sh -c 'head -c 3M /dev/zero >~/large; exit 0'
  run 123 "$files" --files 10 -- sh -c 'cd; mkdir -p a/b/c/d/e/f/g/h/i/j/k; exit 0'
  run 0 "nothing changed in " --disk 2M -- sh -c 'head -c 3M /dev/zero >/tmp/large'
  same_tree expected ws

  # A validator has what the command has left.
  run 5 "rolled back: " --disk 2M --validate 'head -c 1M /dev/zero >more; true' -- \
    sh -c 'head -c 1500000 /dev/zero >large'
  contains "$(cat "$err")" "disk limit of 2.0 MiB exceeded"
  run 0 "nothing changed in " --disk 2M --validate 'head -c 1M /dev/zero >more' -- true
  same_tree expected ws

  # In a mount that stays, what was there does not count, and the limit ends with the run.
  act mount >/dev/null
  as sh -c 'head -c 3M /dev/zero >ws/outside'
  run 123 "$disk" --disk 2M -- sh -c 'head -c 3M /dev/zero >large'
  run 0 "committed 1 change in " --disk 2M -- sh -c 'head -c 1M /dev/zero >large'
  as sh -c 'head -c 5M /dev/zero >ws/large; : >ws/more'
  equal "3145728 5242880" "$(as stat -c %s ws/outside ws/large | xargs)" "sizes after the runs"
  # Also if the supervisor dies.
  mkfifo -m 666 pipe
  setpriv --reuid="$uid" --regid="$uid" --clear-groups "$TXFS" -C ws run --disk 2M --files 1 -- \
    sh -c 'echo ready; exec sleep 1000' >pipe 2>"$err" &
  supervisor=$!
  read -r _ <pipe
  kill -9 "$supervisor"
  wait "$supervisor" || true
  rm pipe
  while act list --json | grep -q '"outcome": "running"'; do
    sleep 0.02
  done
  run 0 "" --keep -- true
  as sh -c 'head -c 5M /dev/zero >ws/large; : >ws/a; : >ws/b'
  act discard >/dev/null
  act umount >/dev/null
  rm -f ws/large
  same_tree expected ws
  rm -rf expected
}

for user in $(some 0 65534); do check_disk "$user"; done

uid=0
for option in "--disk 0" "--disk 12Q" "--disk 9999T" "--files 0" "--files many"; do
  # shellcheck disable=SC2086 # two words
  status=0
  # shellcheck disable=SC2086
  act run $option -- touch never >/dev/null 2>"$err" || status=$?
  equal 125 "$status" "exit code of $option"
  [ ! -e ws/never ] || fail "$option ran"
done
