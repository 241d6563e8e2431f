#!/bin/sh
# What the rules are, what they say of an operation, and whether that is meant.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir -p ws/.git/hooks mnt elsewhere
echo '#!/bin/sh' >ws/.git/hooks/pre-commit
echo A=1 >ws/.env
cat >mine.toml <<'END'
schema = 1

[[fs]]
id = "kept"
path = ["kept/", "also"]
ops = ["remove", "chmod"]
layer = "base"
unless = { exe = "/usr/bin/keeper" }
reason = "it is to stay"
suggest = "leave it"
match = "unlink kept/x"
not_match = "write kept/x"
END

# Wherever it is asked: what would hold there, or what does.
contains "$(cd elsewhere && txfs policy show)" "hold txfs-git-hooks (built-in:"
txfs mount ws mnt --policy mine.toml
shown=$(txfs policy show mnt)
contains "$shown" "deny kept ($PWD/mine.toml:3): it is to stay"
contains "$shown" "  ops    remove, chmod"
contains "$shown" "  paths  kept/, also"
contains "$shown" "  layer  base"
case $shown in */keeper* | *git-core*) fail "a way around is shown" ;; esac
equal "('kept', 'deny', 'EPERM', 3, ['remove', 'chmod'], 'base')" "$(
  txfs -C mnt policy show --json |
    json 'tuple([r for r in d if r["id"] == "kept"][0][k]
      for k in ("id", "action", "errno", "line", "ops", "layer"))'
)" "show --json"
contains "$shown" "  types  symlink"
contains "$(txfs -C mnt status)" " command rules of built-in, $PWD/mine.toml"
equal "['built-in', '$PWD/mine.toml']" "$(txfs -C mnt status --json | json 'd["rules"]["sources"]')" "sources"
equal "True True" "$(txfs -C mnt status --json | json \
  'd["rules"]["count"] > 20, d["rules"]["commands"] > 100' | tr -d '(,)')" "numbers of rules"
contains "$(cat mnt/.txfs/policy.md)" " rules judge commands before they run"
# What is in force, not what the file says by now.
cp mine.toml saved.toml
echo broken >mine.toml
equal "$shown" "$(txfs policy show mnt)" "rules that were read"
mv saved.toml mine.toml

# explain, by the rules of the mount or of a file.
contains "$(txfs -C mnt policy explain rmdir kept)" "* deny kept ($PWD/mine.toml:3)"
contains "$(txfs -C mnt policy explain unlink ./.env)" "* deny txfs-env-kept"
contains "$(txfs -C mnt policy explain rename a .env)" "hold txfs-env-files"
equal allow "$(txfs -C mnt policy explain rename a b)" "what is free"
equal allow "$(txfs policy explain --policy mine.toml unlink .env)" "one file alone"
equal allow "$(txfs -C mnt policy explain --new unlink .env)" "what is new"
equal "('deny', 'kept', [('kept', 'kept/a', True)])" "$(
  txfs -C mnt policy explain --json rename kept/a b |
    json '(d["verdict"], d["decided_by"],
      [(r["id"], r["path"], r["decides"]) for r in d["rules"]])'
)" "explain --json"
# Paths as a shell there takes them.
mkdir -p ws/sub other
contains "$(txfs -C mnt policy explain --type symlink rename a .claude)" "hold txfs-settings-link"
equal allow "$(txfs -C mnt policy explain rename a .claude)" "a file"
contains "$(txfs policy explain unlink mnt/kept/x)" "* deny kept "
contains "$(txfs policy explain unlink "$PWD/mnt/.env")" "* deny txfs-env-kept"
contains "$(txfs policy explain unlink "$PWD/ws/kept/x")" "* deny kept "
contains "$(txfs -C mnt/sub policy explain unlink ../kept/x)" "* deny kept "
contains "$(txfs -C mnt/sub policy explain unlink ../.git/hooks/pre-commit)" "* hold txfs-git-hooks-kept"
equal allow "$(txfs -C mnt/sub policy explain unlink .git/hooks/pre-commit)" "what is below sub"
contains "$(txfs -C mnt/sub policy explain --policy "$PWD/mine.toml" unlink "$PWD/mnt/kept/x")" "* deny kept "
# Limits that it counts towards.
contains "$(txfs -C mnt policy explain unlink a)" "  limit txfs-mass-deletion (built-in:"
contains "$(txfs -C mnt policy explain unlink a)" "): base_removed at commit: 50, or 33 % of them where that is more"
equal "[('txfs-mass-deletion', 'commit', 50)]" "$(txfs -C mnt policy explain --json unlink a |
  json '[(l["id"], l["at"], l["max"]) for l in d["limits"]]')" "limits in explain --json"
equal allow "$(txfs -C mnt policy explain unlink node_modules/a)" "what does not count"
refuses_with_hint 2 'there is no type "link"' txfs -C mnt policy explain --type link unlink a
refuses_with_hint 2 "$PWD/other is outside the workspace $PWD/ws" txfs -C mnt policy explain unlink ../other
refuses_with_hint 2 "outside the workspace" txfs -C mnt policy explain rename a /etc/passwd
refuses_with_hint 2 "no rule applies to $PWD/mnt itself" txfs -C mnt policy explain unlink .
refuses_with_hint 2 'there is no operation "destroy"' txfs -C mnt policy explain destroy a
refuses_with_hint 2 "unlink takes one path" txfs -C mnt policy explain unlink a b

# test, by cases or examples.
contains "$(txfs -C mnt policy test)" " cases, 0 failed"
cat >cases.jsonl <<'END'
{"op": "unlink", "path": "kept/x", "expected": "deny", "rule": "kept"}

{"op": "unlink", "path": "kept/x", "layer": "new", "expected": "allow"}
{"op": "unlink", "path": "kept/x", "exe": "/usr/bin/keeper", "uid": 7, "expected": "allow"}
{"op": "rename", "path": "a", "new_path": "kept/x", "type": "directory", "expected": "deny"}
END
equal "4 cases, 0 failed" "$(txfs policy test --policy mine.toml cases.jsonl)" "cases"
cat >>cases.jsonl <<'END'
{"op": "write", "path": "kept/x", "expected": "deny"}
{"op": "unlink", "path": "kept/x", "expected": "deny", "rule": "other"}
END
status=0
txfs policy test --policy mine.toml cases.jsonl >out || status=$?
equal 1 "$status" "exit code of cases that fail"
equal "cases.jsonl:6: write kept/x: expected deny, got allow
cases.jsonl:7: unlink kept/x: expected deny by other, got deny by kept
6 cases, 2 failed" "$(cat out)" "what failed"
# Limits: by how much was done.
cat >limits.toml <<'END'
schema = 1

[[limit]]
id = "many"
of = "base_removed"
max = 50
fraction = 0.5
unless = { path = "made/**" }
at = "commit"
reason = "r"
suggest = "s"

[[limit]]
id = "much"
of = "bytes_written"
max = "1 KiB"
action = "audit"
reason = "r"
suggest = "s"

[[fs]]
id = "kept"
path = "kept"
reason = "r"
suggest = "s"
END
cat >limits.jsonl <<'END'
{"op": "unlink", "path": "a", "count": 50, "expected": "allow"}
{"op": "unlink", "path": "a", "count": 51, "total": 102, "expected": "allow"}
{"op": "unlink", "path": "a", "count": 51, "total": 101, "expected": "deny", "rule": "many"}
{"op": "unlink", "path": "a", "expected": "allow"}
{"op": "unlink", "path": "made/a", "count": 51, "total": 51, "expected": "allow"}
{"op": "unlink", "path": "a", "layer": "new", "count": 51, "total": 51, "expected": "allow"}
{"op": "unlink", "path": "kept", "count": 51, "total": 51, "expected": "deny", "rule": "kept"}
{"op": "write", "path": "a", "count": 1025, "expected": "audit", "rule": "much"}
{"op": "write", "path": "a", "count": 1024, "expected": "allow"}
END
equal "9 cases, 0 failed" "$(txfs policy test --policy limits.toml limits.jsonl)" "limits"
cat >limits.jsonl <<'END'
{"op": "unlink", "path": "a", "count": 60, "total": 60, "expected": "allow"}
{"op": "unlink", "path": "a", "count": 60, "expected": "deny"}
END
status=0
txfs policy test --policy limits.toml limits.jsonl >out || status=$?
equal 1 "$status" "exit code of limits that fail"
equal "limits.jsonl:1: unlink a: expected allow, got deny by many
limits.jsonl:2: unlink a: expected deny; limit many needs total, which is not given
2 cases, 2 failed" "$(cat out)" "what failed of limits"

for wrong in 'nonsense' '[]' '{"op": "write"}' \
  '{"op": "write", "path": "/a", "expected": "deny"}' \
  '{"op": "write", "path": "a", "expected": "maybe"}' \
  '{"op": "write", "path": "a", "expected": "deny", "pth": "b"}' \
  '{"op": "destroy", "path": "a", "expected": "deny"}' \
  '{"op": "write", "path": "a", "expected": "deny", "layer": "old"}' \
  '{"op": "write", "path": "a", "expected": "deny", "uid": -1}' \
  '{"op": "write", "path": "a", "expected": "deny", "uid": 4294967296}' \
  '{"op": "write", "path": "a", "expected": "deny", "count": "1"}' \
  '{"op": "write", "path": "a", "expected": "deny", "total": -1}' \
  '{"op": "write", "path": "a", "expected": "deny", "type": "link"}' \
  '{"op": "write", "path": 1, "expected": "deny"}' \
  '{"op": "write", "path": "../a", "expected": "deny"}' \
  '{"op": "write", "path": "a/", "expected": "deny"}' \
  '{"op": "write", "path": "a\u0000", "expected": "deny"}' \
  '{"op": "rename", "path": "a", "new_path": "a/./b", "expected": "deny"}'; do
  printf '\n%s\n' "$wrong" >wrong.jsonl
  refuses 1 "wrong.jsonl:2: " txfs -C mnt policy test "$PWD/wrong.jsonl"
done
refuses_with_hint 1 "cannot read the cases" txfs policy test none

: >empty.jsonl
refuses_with_hint 1 "has no cases" txfs -C mnt policy test "$PWD/empty.jsonl"
status=0
echo nonsense | txfs policy test --policy mine.toml /dev/stdin 2>err || status=$?
equal 1 "$status" "exit code of nonsense in a pipe"
contains "$(cat err)" "/dev/stdin:1: "
equal "4 cases, 0 failed" "$(
  head -n 5 cases.jsonl | txfs policy test --policy mine.toml /dev/stdin
)" "cases in a pipe"

# lint
txfs policy lint mine.toml
equal "" "$(txfs -C mnt policy lint)" "warnings of what is in force"
cat >>mine.toml <<'END'
[[fs]]
id = "again"
path = "kept/"
ops = ["make"]
action = "audit"
reason = "r"
suggest = "s"
END
status=0
txfs policy lint mine.toml >out || status=$?
equal 1 "$status" "exit code of warnings"
contains "$(cat out)" "$PWD/mine.toml:13: rule again has no examples"
for max in 9 10; do
  printf '[[limit]]\nid = "l%s"\nof = "inodes_made"\nmax = %s\nreason = "r"\nsuggest = "s"\n' \
    "$max" "$max"
done >>mine.toml
txfs policy lint mine.toml >out || status=$?
contains "$(cat out)" "$PWD/mine.toml:26: limit l10 has no effect: l9 ($PWD/mine.toml:20) is at least as strict"
txfs policy lint "$TXFS_SOURCE_DIR/policy/default.toml"
txfs umount mnt
equal None "$(txfs -C ws status --json | json 'd["rules"]')" "rules where nothing is mounted"
contains "$(txfs -C ws policy show)" "txfs-env-files"
