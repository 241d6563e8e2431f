#!/bin/bash
# What a mount tells those who work in it: .txfs, found by name and listed
# nowhere.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git
make_workspace
mkdir mnt
cat >rules.toml <<'TOML'
schema = 1
[[fs]]
id = "keep-readme"
path = "docs/README"
unless = { exe = "/usr/bin/secret-way" }
reason = "people read it"
suggest = "write a file beside it"
match = ["write docs/README"]
TOML
txfs mount --policy rules.toml ws mnt

lists_nothing() {
  find mnt -name .txfs >found
  ls -A mnt >>found
  grep -q txfs found && fail "listed: $(cat found)"
  return 0
}

lists_nothing
equal "denials.jsonl last_denial.json policy.md status.json" \
  "$(find mnt/.txfs -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ' | sed 's/ $//')" "its files"
lists_nothing
git -C mnt init -q
contains "$(git -C mnt status --porcelain --ignored)" docs/
git -C mnt status --porcelain --ignored | grep -q '\.txfs' && fail "git sees it"

# The rules in words: what, why and what instead, and no way around.
words=$(cat mnt/.txfs/policy.md)
contains "$words" '## keep-readme'
contains "$words" 'docs/README'
contains "$words" 'Why: people read it.'
contains "$words" 'Instead: write a file beside it.'
contains "$words" '## txfs-git-hooks'
case $words in *secret-way*) fail "an exception is told" ;; esac

# What was refused, each time as it is then.
equal null "$(cat mnt/.txfs/last_denial.json)" "the last denial before any"
equal "" "$(cat mnt/.txfs/denials.jsonl)" "denials before any"
exec 7<mnt/.txfs/denials.jsonl
refused() { if "$@" 2>err; then fail "$*: was allowed"; fi; }
refused bash -c 'echo >mnt/docs/README'
contains "$(cat err)" "Operation not permitted"
equal 'keep-readme people read it' \
  "$(json '" ".join([d["rule"], d["reason"]])' <mnt/.txfs/last_denial.json)" "the last denial"
refused rm mnt/docs/README
equal unlink "$(json 'd["op"]' <mnt/.txfs/last_denial.json)" "the last denial of two"
equal 2 "$(wc -l <mnt/.txfs/denials.jsonl)" "denials"
equal "keep-readme 2" \
  "$(json '"%s %d" % (d["denied"][0]["rule"], d["denied"][0]["count"])' <mnt/.txfs/status.json)" "status"
equal "" "$(cat <&7)" "what was open before"

# Nobody changes it, and it goes with no command.
for attempt in 'rm -rf mnt/.txfs' 'echo x >mnt/.txfs/policy.md' 'echo x >mnt/.txfs/new' \
  'mv mnt/docs mnt/.txfs/docs' 'mv mnt/.txfs mnt/other' 'mkdir mnt/.txfs' 'rmdir mnt/.txfs' \
  'ln mnt/.txfs/policy.md mnt/link' 'truncate -s 0 mnt/.txfs/status.json'; do
  refused bash -c "$attempt"
done
cp mnt/.txfs/policy.md copy
equal "$words" "$(cat copy)" "a copy"
lists_nothing

# Other rules, other words.
sed -i 's/people read it/many read it/' rules.toml
txfs policy reload mnt
contains "$(cat mnt/.txfs/policy.md)" 'Why: many read it.'
txfs -C mnt discard
equal null "$(cat mnt/.txfs/last_denial.json)" "the last denial after a discard"
exec 7<&-
txfs umount mnt
