#!/bin/sh
# `txfs log`: every mutation, who did it and how it ended.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt
txfs mount ws mnt
mkdir mnt/d
printf hello >mnt/d/f
mv mnt/d/f mnt/d/g
rm mnt/d/g
chmod 600 mnt/docs/README
rmdir mnt/docs 2>/dev/null && fail "a directory went with what is in it"

log=$(txfs -C mnt log)
for word in mkdir create write rename unlink chmod d/f d/g docs/README; do
  contains "$log" "$word"
done
txfs -C mnt log --json >lines
python3 - lines <<'END'
import json, os, sys
entries = [json.loads(line) for line in open(sys.argv[1])]
ops = [e["op"] for e in entries]
assert ops[:2] == ["mkdir", "create"], ops
write = next(e for e in entries if e["op"] == "write")
assert write["path"] == "d/f", write
rename = next(e for e in entries if e["op"] == "rename")
assert rename["path"] == "d/f" and rename["new_path"] == "d/g", rename
rm = next(e for e in entries if e["op"] == "unlink")
assert os.path.basename(rm["exe"]) == "rm", rm
assert rm["uid"] == os.getuid() and rm["pid"] > 0, rm
refused = [e for e in entries if e["path"] == "docs"]
assert refused and refused[0]["result"] not in (0, "ok", "OK"), refused
END
equal 1 "$(txfs -C mnt log --json -n 1 | wc -l)" "lines of log -n 1"
equal 1 "$(txfs -C mnt log --json --op rename | wc -l)" "lines of log --op rename"
txfs -C mnt log --json --path docs |
  python3 -c 'import json, sys
for line in sys.stdin: assert json.loads(line)["path"].startswith("docs")'
txfs -C mnt log --json --follow >followed &
follower=$!
echo more >mnt/followed
tries=0
until grep -q '"followed"' followed; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || fail "log --follow said nothing"
  txfs -C mnt status >/dev/null
done
kill "$follower"
wait "$follower" 2>/dev/null || true
txfs umount mnt
contains "$(txfs -C ws log)" followed

# What one process writes again and again is told together, with how often.
txfs mount ws mnt
store=$(txfs -C mnt status --json | json 'd["store"]')
# Without the ring, which grows with the load.
size() { du -cB1 "$store"/txn/*/db "$store"/txn/*/spool | awk 'END { print $1 }'; }
before=$(size)
python3 - mnt/again <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
for i in range(20000):
    os.pwrite(fd, b"%d" % (i % 10), 0)
END
txfs -C mnt log --json --path again --op write >lines
python3 - lines <<'END'
import json, sys
counts = [json.loads(line)["count"] for line in open(sys.argv[1])]
assert sum(counts) == 20000, sum(counts)
assert len(counts) < 2000, len(counts)
END
contains "$(txfs -C mnt log --path again)" " times since "
# A row for each would take 10 MiB.
[ $(($(size) - before)) -lt 4000000 ] || fail "the store takes $(size) bytes"
txfs -C mnt fsck >/dev/null
txfs umount mnt
