#!/bin/sh
# A daemon that is killed while it makes system calls in its own mount, for those
# who watch it, ends: the mount is dead, and hangs nobody.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

# kill_at_event.py PID DIRECTORY: prints a line when the watch has begun, and kills
# at the first event.
cat >kill_at_event.py <<'END'
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if libc.inotify_add_watch(fd, os.fsencode(sys.argv[2]), 0x300) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("ready", flush=True)
os.read(fd, 1 << 16)
os.kill(int(sys.argv[1]), signal.SIGKILL)
END

mkdir ws mnt ws/d
mkfifo ready
# One round in two or three kills it while a request of its own is served.
for round in 1 2 3 4 5 6; do
  txfs mount ws mnt 2>/dev/null
  python3 -c 'for i in range(900): open(f"mnt/d/{i}", "w").close()'
  daemon=$(txfs -C mnt status --json | json 'd["pid"]')
  python3 kill_at_event.py "$daemon" mnt/d >ready &
  watcher=$!
  read -r line <ready
  equal ready "$line" "the watcher"
  txfs -C mnt discard >/dev/null 2>&1 &
  client=$!
  wait $watcher
  status=0
  timeout -k 1 30 stat mnt/d >/dev/null 2>said || status=$?
  if [ $status -ne 1 ]; then
    umount -f mnt || true # or everything that looks at it hangs
    fail "round $round: stat exited with $status in a dead mount"
  fi
  # Who asks while the connection ends is told so in other words.
  case $(cat said) in
    *"not connected"* | *"connection abort"*) ;;
    *) fail "round $round: $(cat said)" ;;
  esac
  wait $client || true
done
