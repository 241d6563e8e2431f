#!/bin/sh
# Names of transactions, -t, and what is meant without it; also where one is
# mounted over the workspace itself.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir ma mb mc other

for name in '' -x 'a b' a/b "$(printf %065d 0)" 0123456789ab; do
  refuses_with_hint 2 "" txfs mount ws ma "--name=$name"
done
longest=$(printf %064d 0)
txfs mount ws ma --name "$longest"
txfs umount ma
txfs -C ws -t "$longest" discard >/dev/null
txfs mount ws ma --name a.B_1-x
txfs umount ma

# One: no need to choose. From elsewhere, by all ways.
for name in a b; do
  txfs mount ws "m$name" --name $name
  echo $name >"m$name/$name"
done
id_of() { txfs -C ws -t "$1" status --json | json 'd["id"]'; }
a=$(id_of a) b=$(id_of b)
equal 12 "${#a}" "length of an id"
equal "$a" "$(id_of "$a")" "by id"
tail=$a
while [ "$(id_of "${tail%?}" 2>/dev/null)" = "$a" ]; do tail=${tail%?}; done
equal "$a" "$(id_of "$tail")" "by the beginning of an id"
refuses_with_hint 2 "several ids begin with" txfs -C ws -t "${tail%?}" status
refuses_with_hint 1 "$a" txfs -C ws -t nonsense status
refuses_with_hint 2 "-t" txfs -C ws -t '' status
refuses_with_hint 2 "a ($a)" txfs -C ws status
contains "$(cat "$TMPDIR/err")" "txfs -t"
contains "$(cat "$TMPDIR/err")" "b ($b)"
refuses 2 "--name" txfs -t a mount ws mc

# Inside a mount, that one; -t reaches the others from there, paths included.
equal "$a" "$(txfs -C ma/docs status --json | json 'd["id"]')" "inside a"
equal "$b" "$(txfs -C ma/docs -t b status --json | json 'd["id"]')" "b from inside a"
contains "$(cd ma && txfs diff -t b b)" "+b"
equal "" "$(cd ma && txfs diff -t b a)" "a path of a in b"
contains "$(txfs -t b -C ma log)" "create  b"
equal "$PWD/mb" "$(txfs enter -t b ws -- pwd)" "enter"
equal b "$(txfs -C ma -t b enter -- cat b)" "enter from another"

# The one without a name is meant where none is chosen.
txfs mount ws mc
equal "" "$(txfs -C ws status --json | json 'd["name"]')" "the unnamed one"
refuses_with_hint 6 "$PWD/mc" txfs mount ws other
refuses_with_hint 6 "$PWD/ma" txfs mount ws other --name a
refuses_with_hint 6 "$PWD/ma" txfs mount ws ma --name c
txfs umount mc

# --- over the workspace itself -----------------------------------------------------
echo c-old >mc/.keep
txfs umount ma
txfs mount ws --name a
equal a "$(cat ws/a)" "a over the workspace"
refuses_with_hint 6 "$PWD/ws" txfs mount ws
refuses_with_hint 6 "$PWD/ws" txfs mount ws mc --name a
txfs mount ws mc --name c
[ ! -e mc/a ] || fail "the base of c is what a shows"
echo c >mc/c
[ ! -e ws/c ] || fail "c shows in a"
equal "$a" "$(txfs -C ws status --json | json 'd["id"]')" "inside a, over the workspace"
for t in b c; do contains "$(txfs -C ws -t $t diff --name-status)" "$t"; done
txfs umount mb
contains "$(txfs -C ws -t b diff)" "+b"
equal "[('a', 'running'), ('a.B_1-x', 'none'), ('b', 'none'), ('c', 'running')]" \
  "$(txfs -C ws list --json | json 'sorted((t["name"], t["daemon"]) for t in d if t["name"] and t["state"] == "active")')" \
  "the list from inside"
txfs -C ws -t b commit >/dev/null
equal b "$(cat ws/b)" "what was committed beneath a"
equal b "$(cat mc/b)" "and is seen in c"
txfs -C ws -t c commit >/dev/null
equal c "$(cat ws/c)" "what c committed from its own mount"
txfs -C ws -t c umount
if mountpoint -q mc; then fail "c is still mounted"; fi
# As root and as nobody in particular: to the place it is mounted at.
txfs umount -t a -C ws
equal c "$(cat ws/c)" "the workspace itself"
[ ! -e ws/a ] || fail "a was not committed"
refuses 1 "not mounted" txfs -C ws -t a umount

# mount(8)'s helper knows the name, too.
ln -s "$TXFS" mount.fuse.txfs
if [ "$(id -u)" -eq 0 ]; then
  ./mount.fuse.txfs "$PWD/ws" "$PWD/ma" -o name=a,fsname=strange
  equal a "$(cat ma/a)" "resumed by mount(8)"
  contains "$(txfs -C ma -t b status 2>&1 || true)" "no open transaction"
  umount ma
fi

# One store for all, elsewhere.
mkdir ws2 store
txfs --store store mount ws2 ma --name one
txfs mount ws2 mb --name two
echo 1 >ma/1
echo 2 >mb/2
equal 2 "$(ls store/txn | wc -l)" "transactions in the store"
refuses 1 "are in $PWD/store" txfs --store other mount ws2 mc --name three
txfs --store store -t one commit >/dev/null
txfs -C ws2 -t two commit >/dev/null
equal "1 2 " "$(ls ws2 | tr "\n" " ")" "both committed"
equal "1 2 " "$(ls ma | tr "\n" " ")" "and seen"
txfs umount ma
txfs umount mb
# Over the workspace, the daemon hands it out.
txfs mount ws2 --name one
echo 3 >ws2/3
txfs mount ws2 mb --name two
[ ! -e mb/3 ] || fail "one shows in two"
txfs umount mb
txfs umount ws2
