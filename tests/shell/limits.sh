#!/bin/sh
# Limits: what they refuse while somebody works, and at the commit, until
# whoever commits accepts it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir -p ws/src ws/node_modules mnt mnt2
for i in $(seq 100); do
  echo "$i" >"ws/src/$i"
  echo "$i" >"ws/node_modules/$i"
done
cat >limits.toml <<'END'
schema = 1

[[limit]]
id = "removals"
of = "base_removed"
max = 90
reason = "enough was removed"
suggest = "ask before you remove more"

[[limit]]
id = "content"
of = "bytes_written"
max = "1 MiB"
reason = "the disk is not only yours"
suggest = "write less"

[[limit]]
id = "made"
of = "inodes_made"
max = 10
window = 3600
errno = "EPERM"
reason = "that is a flood"
suggest = "wait"
END

equal "limits.toml: 0 rules and 3 limits, and their examples hold" \
  "$(txfs policy check limits.toml)" check
sed 's/window = 3600/window = 0/' limits.toml >wrong.toml
refuses 1 'wrong.toml:21: window of [[limit]] is not a valid number of seconds' \
  txfs policy check wrong.toml

txfs mount ws mnt --policy limits.toml
contains "$(txfs -C mnt policy show)" "deny removals ("
contains "$(txfs -C mnt policy show)" "  limit  base_removed: 90"
contains "$(txfs -C mnt policy show)" "  at     operation, within 3600 s"
equal "90 None operation" "$(txfs -C mnt policy show --json |
  json '"{max} {fraction} {at}".format(**[x for x in d if x["id"] == "removals"][0])')" \
  "policy show --json"
contains "$(cat mnt/.txfs/policy.md)" "## removals"
contains "$(cat mnt/.txfs/policy.md)" "## txfs-mass-deletion"

# At the operation.
rm -rf mnt/node_modules 2>"$TMPDIR/err" && fail "all of it could be removed"
contains "$(cat "$TMPDIR/err")" "quota exceeded"
equal 10 "$(find mnt/node_modules -type f | wc -l)" "files that are left"
contains "$(txfs -C mnt log --denied)" "EDQUOT by removals"
contains "$(txfs -C mnt status)" "removals"
txfs -C mnt discard >"$TMPDIR/out"
rm -r mnt/node_modules/1* || fail "a new transaction begins anew"
head -c 2097152 /dev/zero >mnt/big 2>"$TMPDIR/err" && fail "too much was written"
contains "$(cat "$TMPDIR/err")" "quota exceeded"
[ "$(stat -c %s mnt/big)" -le 1048576 ] || fail "big is larger than allowed"
rm mnt/big
for i in 1 2 3 4 5 6 7 8 9; do mkdir "mnt/made$i"; done
mkdir mnt/made10 2>"$TMPDIR/err" && fail "more was made than is allowed"
contains "$(cat "$TMPDIR/err")" "not permitted"
txfs -C mnt discard >"$TMPDIR/out"

# A crash takes nothing from the count.
rm mnt/src/[1-8]?
daemon=$(txfs -C mnt status --json | json 'd["pid"]')
kill -KILL "$daemon"
ended "$daemon" || fail "the daemon does not end"
txfs umount mnt 2>"$TMPDIR/err" || :
txfs mount ws mnt --policy limits.toml
rm -f mnt/node_modules/[1-4]? 2>"$TMPDIR/err" && fail "the count began anew"
contains "$(txfs -C mnt log --denied)" "EDQUOT by removals"
txfs -C mnt discard >"$TMPDIR/out"
txfs umount mnt

# At the commit, by the default policy: more than 50, and more than a third of
# what is not made by tools.
txfs mount ws mnt
rm -r mnt/node_modules
txfs -C mnt commit -m "what tools made" >"$TMPDIR/out" 2>"$TMPDIR/err" ||
  fail "node_modules: $(cat "$TMPDIR/err")"
copy_tree ws before
rm mnt/src/[1-5]?
txfs -C mnt commit --dry-run >"$TMPDIR/out" || fail "fifty are allowed"
rm mnt/src/1
limit="it removes 51 of 101 files and directories, more than the limit txfs-mass-deletion allows"
txfs -C mnt commit --dry-run >"$TMPDIR/out" 2>"$TMPDIR/err" && fail "the plan says nothing"
contains "$(cat "$TMPDIR/err")" "error: nothing would be committed: $limit"
refuses_with_hint 4 "error: nothing was committed: $limit (50, or 33 % of them where that is more)" \
  txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "\`txfs commit --accept txfs-mass-deletion\`"
same_tree before ws
status=0
txfs -C mnt commit --json >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
equal 4 "$status" "exit code with --json"
equal "active txfs-mass-deletion 51 101 False" "$(json '" ".join(str(x) for x in [
  d["state"]] + [d["limits"][0][k] for k in ("id", "count", "total", "accepted")])' <"$TMPDIR/out")" \
  "commit --json"
txfs -C mnt commit --dry-run --accept txfs-mass-deletion >"$TMPDIR/out" 2>&1 ||
  fail "what is accepted stops a plan"
contains "$(cat "$TMPDIR/out")" "that was accepted"
for dry_run in "" --dry-run; do
  # shellcheck disable=SC2086
  refuses_with_hint 2 'there is no limit or rule "removals" on a commit' \
    txfs -C mnt commit $dry_run --accept removals
done
contains "$(txfs -C mnt commit src/1)" "1 change"
# What a hint says is what then works: with all that was asked for.
cat >commits.toml <<'END'
schema = 1

[[limit]]
id = "commits-of-one"
of = "base_removed"
at = "commit"
max = 1
reason = "one at a time"
suggest = "commit each by itself"
END
txfs mount ws mnt2 --name other --policy commits.toml
rm mnt2/src/[3-9]? mnt2/src/100
status=0
txfs -C mnt2 commit --dry-run --accept txfs-mass-deletion src \
  >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
equal 4 "$status" "exit code of a plan with one of two limits accepted"
contains "$(cat "$TMPDIR/err")" "more than the limit commits-of-one allows"
contains "$(cat "$TMPDIR/err")" \
  "\`txfs commit --accept txfs-mass-deletion --accept commits-of-one -- src\`"
txfs -C mnt2 discard >"$TMPDIR/out"
txfs umount mnt2
# Who commits without a mount is asked the same.
rm mnt/src/2
txfs umount mnt
refuses 4 "nothing was committed: it removes 51 of 100" txfs -C ws commit
txfs -C ws commit --accept txfs-mass-deletion >"$TMPDIR/out" 2>"$TMPDIR/err"
contains "$(cat "$TMPDIR/out")" "51 changes"
contains "$(cat "$TMPDIR/err")" "that was accepted"
equal 48 "$(find ws/src -type f | wc -l)" "files that are left"
txfs -C ws undo >"$TMPDIR/out"
equal 99 "$(find ws/src -type f | wc -l)" "files after the undo"
txfs -C ws fsck
