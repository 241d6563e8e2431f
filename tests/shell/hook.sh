#!/bin/sh
# Rules that have a program asked; and the two that the documentation shows.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 setsid

mkdir -p ws/db ws/many mnt
for n in 1 2 3 4; do
  echo old >ws/db/$n.sql
  echo old >ws/many/$n
done
echo '{}' >ws/package-lock.json

# policy COMMAND [TIMEOUT]: rules that have it asked; put in force, if mounted.
policy() {
  cat >policy.toml <<END
schema = 1

[hook]
command = $1
timeout = ${2-60}

[[fs]]
id = "hooked"
path = ["db/**", "many/", "package-lock.json"]
action = "hook"
reason = "a program knows"
suggest = "leave it"
END
  if mountpoint -q mnt; then txfs -C mnt policy reload >/dev/null; fi
}
in_log() { grep -qF -- "$1" "$XDG_STATE_HOME"/txfs/log/*.log || fail "not in the log: $1"; }
denied() { contains "$(txfs -C mnt log --denied | tail -3)" "$1"; }
refused() { "$@" 2>/dev/null && fail "not refused: $*" || :; }
await_question() { until [ "$(txfs -C mnt pending --json | json 'len(d)')" = 1 ]; do :; done; }
question() { txfs -C mnt pending --json | json 'd[0]["id"]'; }

# What is no hook is said at load.
policy '["hook.sh"]'
refuses 1 'policy.toml:4: command of [hook] does not name a program' txfs policy check policy.toml
policy '["/bin/cat"]'
sed -i 's/^timeout.*/on_error = "allow"/' policy.toml
refuses 1 'policy.toml:5: on_error of [hook] is "allow"' txfs policy check policy.toml
sed -i '/^\[hook\]/,/^$/d' policy.toml
refuses 1 'action of hooked is "hook", but no file has a [hook]' txfs policy check policy.toml
policy '["/bin/cat"]'
refuses 1 "[hook] is already set in" txfs mount ws mnt --policy policy.toml --policy policy.toml
mkdir -p ws/.txfs
cp policy.toml ws/.txfs/policy.toml
refuses 1 "ws/.txfs/policy.toml:3: [hook] in a workspace's own rules" txfs mount ws mnt
rm ws/.txfs/policy.toml

# Nor do rules in the workspace that were named run one, nor does the program lie
# there, or an argument, or a link on the way to it, wherever the mount is.
cp policy.toml ws/named.toml
refuses 1 "ws/named.toml:3: [hook] in a workspace's own rules" txfs mount ws mnt --policy ws/named.toml
rm ws/named.toml
cp /bin/cat ws/tool
ln -s /bin ws/bin
for command in "\"$PWD/ws/tool\"" "\"/bin/sh\", \"$PWD/ws/tool\"" "\"$PWD/ws/bin/cat\""; do
  policy "[$command]"
  for mountpoint in mnt ws; do
    refuses_with_hint 1 "lies in the" txfs mount ws $mountpoint --policy policy.toml
  done
done
rm ws/tool ws/bin

# A hook cannot lie in a mount, where the sources may.
cp -r "$TXFS_SOURCE_DIR/docs/examples" "$TMPDIR"
examples=$TMPDIR/examples

# The one in shell.
policy "[\"/bin/sh\", \"$examples/hook.sh\"]"
txfs mount ws mnt --no-default-policy --policy policy.toml
setsid sh -c 'echo new >mnt/many/free' &
await_question
equal hooked "$(txfs -C mnt pending --json | json 'd[0]["rule"]')" "rule that asks"
txfs -C mnt approve "$(question)"
wait $!
equal new "$(cat mnt/many/free)" "content after an approval"
refused rm mnt/db/1.sql
denied "unlink  db/1.sql  EPERM by hooked"
denied "reason: a program knows"
in_log "unlink db/1.sql refused by hooked: the hook's answer was no"
mkdir mnt/db/new
setsid chmod 600 mnt/db/2.sql &
await_question
txfs -C mnt approve "$(question)"
wait $!
equal 600 "$(stat -c %a mnt/db/2.sql)" "mode after an approval"

# The one in Python.
policy "[\"$PYTHON\", \"$examples/hook.py\"]"
rm mnt/db/1.sql
refused sh -c 'echo x >>mnt/package-lock.json'
in_log "the hook's answer was no: npm writes this file"
# A program that lies in the mount is told of as none, whatever it is called.
cp "$(realpath /bin/sh)" mnt/npm
refused mnt/npm -c 'echo x >>mnt/package-lock.json'
rm mnt/npm
setsid mv mnt/many mnt/db/moved &
await_question
contains "$(txfs -C mnt pending)" "remove  many/4  (base)"
txfs -C mnt approve "$(question)"
wait $!
[ -e mnt/db/moved/4 ] || fail "what was approved was not done"
odd=$(printf 'mnt/db/odd\377\n"id":7,')
echo x >"$odd"
[ -e "$odd" ] || fail "an odd name"

# What the kernel writes back of a mapping is asked about as well; nobody knows
# who stored it, and nobody is waited for.
cat >noting.py <<'END'
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    with open(sys.argv[1], "a") as notes:
        print(line, end="", file=notes)
    with open(sys.argv[2]) as verdict:
        print(json.dumps({"id": question["id"], "verdict": verdict.read().strip()}), flush=True)
END
policy "[\"$PYTHON\", \"$PWD/noting.py\", \"$PWD/notes\", \"$PWD/verdict\"]"
# store NAME TEXT: through a mapping, and to the disk.
store() {
  python3 -c '
import mmap, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
    mapping[:3] = sys.argv[2].encode()
    mapping.flush()' "mnt/db/$1" "$2"
}
echo allow >verdict
store 3.sql NEW
equal NEW "$(cat mnt/db/3.sql)" "what was stored and allowed"
note() { tail -1 notes | json "$1"; }
equal 'hooked write db/3.sql content base' \
  "$(note '" ".join([d["rule"], d["op"], d["path"], d["names"][0]["effect"], d["names"][0]["layer"]])')" "question"
equal '["", null, null]' "$(note '__import__("json").dumps([d["exe"], d["pid"], d["uid"]])')" "who stored it"
notes=$(wc -l <notes)
for verdict in deny ask; do
  echo $verdict >verdict
  refused store 3.sql BAD
  denied "write  db/3.sql  EPERM by hooked"
  # The kernel is told to forget it by a thread of its own.
  until [ "$(cat mnt/db/3.sql)" = NEW ]; do :; done
done
[ "$(wc -l <notes)" -gt $((notes + 1)) ] || fail "not asked about each"
equal "[]" "$(txfs -C mnt pending --json)" "what waits of a write-back"
# The kernel sends a large file in many parts at once: none is too many.
echo allow >verdict
head -c 32M /dev/zero >ws/db/large
python3 -c '
import mmap
with open("mnt/db/large", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
    for page in range(0, len(mapping), 4096): mapping[page] = 65
    mapping.flush()'
equal 8192 "$(tr -cd A <mnt/db/large | wc -c)" "pages that were stored"
in_log "a write-back by the kernel cannot wait for an answer"

# What fails, refuses: a crash, silence, nonsense; and not for ever.
policy '["/bin/sh", "-c", "read -r line; [ -e '"$PWD"'/crash ] && exit 3; read -r line"]' 0.05
touch crash
refused touch mnt/db/new
in_log "the hook ended before it answered"
rm crash
refused touch mnt/db/new
in_log "the hook did not answer in time"
policy '["/bin/sh", "-c", "read -r line; echo {}; read -r line"]'
refused touch mnt/db/new
in_log "the hook's answer is not valid: {}"
# Nor is an answer that comes before its question.
cat >early <<'END'
read -r line
id=${line##*\"id\":}
id=${id%%[!0-9]*}
printf '{"id":%s,"verdict":"allow"}\n{"id":%s,"verdict":"allow"}\n' "$id" $((id + 1))
read -r line
END
policy "[\"/bin/sh\", \"$PWD/early\"]"
touch mnt/db/new
refused touch mnt/db/newer
in_log "the hook answered before it was asked"
# What it says besides is in the log, but does not fill it.
cat >loud <<'END'
while read -r line; do
  id=${line##*\"id\":}
  id=${id%%[!0-9]*}
  head -c 1M /dev/zero | tr '\0' W >&2
  printf '{"id":%s,"verdict":"allow"}\n' "$id"
done
END
policy "[\"/bin/sh\", \"$PWD/loud\"]"
touch mnt/db/newer # two questions
in_log "hook: WWW"
logged=$(cat "$XDG_STATE_HOME"/txfs/log/*.log | tr -cd W | wc -c)
[ "$logged" -le 10000 ] || fail "$logged bytes of the hook's words in the log"
sed -i 's|^command.*|command = ["/nonexistent"]|' policy.toml
refuses_with_hint 1 "cannot run the hook /nonexistent" txfs -C mnt policy reload
# Nor one that can be changed by those whom it is for, however it is named.
ln -s "$PWD/mnt/db/hook" link
sed -i 's|^command.*|command = ["/bin/sh", "'"$PWD"'/link"]|' policy.toml
echo x >ws/db/hook
refuses_with_hint 1 "lies in the mount at $PWD/mnt" txfs -C mnt policy reload
# One that waits for the directory that the operation has locked is killed, and
# nobody waits for it.
policy "[\"/usr/bin/env\", \"sh\", \"-c\", \"read -r line; cat $PWD/mnt/db/unknown; echo {}\"]" 0.5
refused touch mnt/db/new
in_log "the hook did not answer in time"
policy "[\"/bin/sh\", \"$examples/hook.sh\"]"
echo x >mnt/db/after 2>/dev/null &
await_question
kill $! 2>/dev/null || :
wait $! 2>/dev/null || :
equal "" "$(cat mnt/db/after)" "what was asked about when a signal came"
equal "[]" "$(txfs -C mnt pending --json)" "questions after the signal"

# It has none of the daemon's descriptors, and goes with the mount.
policy "[\"/bin/sh\", \"-c\", \"ls -l /proc/self/fd >$PWD/fds; exec sh $examples/hook.sh hook-of-test\"]"
refused rm mnt/db/3.sql
equal 3 "$(grep -c -e ' [012] -> ' fds)" "descriptors"
! grep -q -e fuse -e lock -e .mdb fds || fail "has a descriptor of the daemon"
hook=$(pgrep -f hook-of-test)
txfs umount mnt
ended "$hook" || fail "the hook outlives the mount"
txfs -C ws fsck
