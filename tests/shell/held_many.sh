#!/bin/sh
# What many held changes of one rule must not hide: those of another.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git

export GIT_CONFIG_GLOBAL=/dev/null
mkdir -p ws/.github/workflows mnt
git init -q --template= ws
mkdir ws/.git/hooks
echo v1 >ws/.github/workflows/ci.yml
echo check >ws/.git/hooks/pre-commit
txfs mount ws mnt
mkdir mnt/.circleci
for i in $(seq 300); do echo x >"mnt/.circleci/a$i.yml"; done
{
  for i in $(seq 9); do echo "# $i"; done
  printf 'evil%200s-o evil\n' ''
} >mnt/.git/hooks/post-commit
git -C mnt config alias.x '!evil'
refuses_with_hint 4 "302 changes are held for review" txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "held: .git/hooks/post-commit:"
contains "$(cat "$TMPDIR/err")" "alias.x = !evil"
contains "$(cat "$TMPDIR/err")" "held: 250 more changes (txfs-ci)"
contains "$(cat "$TMPDIR/err")" "--accept txfs-ci --accept txfs-git-config --accept txfs-git-hooks\`"
equal "txfs-ci 250 0" "$(txfs -C mnt commit --dry-run --json 2>/dev/null | json \
  '" ".join(str(x) for r in d["held_more"] for x in r.values())')" "what is not listed"

# All of it, the hook whole, and no blanks that push something out of sight.
equal 300 "$(txfs -C mnt diff --held 2>"$TMPDIR/err" | grep -c '^+++ b/.circleci/')" "files of the patch"
contains "$(cat "$TMPDIR/err")" "    evil [200 blanks] -o evil"
equal 302 "$(grep -c '^held: ' "$TMPDIR/err")" "lines of diff --held"
refuses 4 "2 changes are held for review" txfs -C mnt commit --accept txfs-ci
txfs -C mnt commit --without-held --accept txfs-ci >/dev/null 2>"$TMPDIR/err" || fail "$(cat "$TMPDIR/err")"
contains "$(cat "$TMPDIR/err")" "accepted 300 changes"
[ ! -e ws/.git/hooks/post-commit ] || fail "a hook was not held"
txfs -C mnt discard >/dev/null

# Hints lead to what works.
txfs umount mnt >/dev/null
for i in $(seq 400); do echo "$i" >"ws/src$i"; done
txfs mount ws mnt >/dev/null
rm mnt/src*
echo x >mnt/.envrc
refuses_with_hint 4 "1 change is held" txfs -C mnt commit
contains "$(cat "$TMPDIR/err")" "\`txfs commit --accept txfs-mass-deletion --accept txfs-editor-tasks\`"
refuses_with_hint 4 "mass-deletion" txfs -C mnt commit --without-held
contains "$(cat "$TMPDIR/err")" "run \`txfs commit --without-held --accept txfs-mass-deletion\`"
txfs -C mnt discard >/dev/null
rm ws/src*
echo base >ws/both
echo mine >mnt/both
echo theirs >ws/both
echo x >mnt/.envrc
refuses_with_hint 3 "1 path of the workspace changed" txfs -C mnt commit --without-held
contains "$(cat "$TMPDIR/err")" "leave --without-held out"
refuses_with_hint 4 "1 change is held" txfs -C mnt commit --on-conflict=mine
contains "$(cat "$TMPDIR/err")" "--on-conflict=mine --accept txfs-editor-tasks\`"
case $(cat "$TMPDIR/err") in *"everything else"*) fail "the hint leaves out what cannot be" ;; esac
txfs -C mnt discard >/dev/null

# What no text says.
printf 'a\0b' >mnt/.envrc
truncate -s 2M mnt/.vimrc
txfs -C mnt commit 2>"$TMPDIR/err" && fail "no text is not held"
contains "$(cat "$TMPDIR/err")" "    (3 bytes, no text)"
contains "$(cat "$TMPDIR/err")" "    (2097152 bytes: too large to be shown)"
txfs -C mnt discard >/dev/null

# A held removal is held, also where something else is in its place.
mv mnt/.github mnt/d
mkdir -p mnt/.github/workflows
echo evil >mnt/.github/workflows/ci.yml
mv mnt/.git/hooks mnt/.git/old
mkdir mnt/.git/hooks
printf '#!/bin/sh\nexit 0\n' >mnt/.git/hooks/pre-commit
echo new >mnt/new
txfs -C mnt commit --without-held >/dev/null 2>&1 || fail "commit --without-held"
equal v1 "$(cat ws/.github/workflows/ci.yml)" "a replaced definition"
equal check "$(cat ws/.git/hooks/pre-commit)" "a replaced hook"
equal new "$(cat ws/new)" "what is not held"
txfs umount mnt
