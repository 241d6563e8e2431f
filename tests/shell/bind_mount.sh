#!/bin/bash
# A bind mount inside the workspace: through the mount of txfs, link, rename,
# rmdir and unlink fail as on the plain directory, and what succeeds commits.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 unshare
needs_root
if [ -z "${IN_NAMESPACE-}" ]; then
  IN_NAMESPACE=1 exec unshare --mount bash -eu "$0"
fi
mkdir -p ws/d ws/bound/d ws/twice outside/d mnt ws/other
for file in ws/f ws/d/f ws/bound/f ws/bound/d/f ws/over outside/f; do echo "$file" >"$file"; done
mount --bind ws/bound ws/twice
mount --bind outside ws/other
mount --bind ws/d/f ws/over
cat >try.py <<'P'
import errno, os, sys
os.chdir(sys.argv[1])
for call in ("rename f twice/g", "rename f other/g", "rename twice/f g", "rename other/f g",
             "rename d twice/e", "rename twice/d e", "rename bound/f twice/g",
             "link f twice/g", "link twice/f g", "link f other/g", "link over g",
             "rename twice away", "rename other away", "rename over away", "rename f over",
             "rename d twice", "rmdir twice", "rmdir other", "unlink over"):
    name, *paths = call.split()
    try:
        getattr(os, name)(*paths)
        print(call, "OK")
    except OSError as error:
        print(call, errno.errorcode[error.errno])
P
python3 try.py ws >plain
! grep -q OK plain || fail "a plain directory allows $(grep OK plain)"
txfs mount ws mnt >/dev/null
python3 try.py mnt >mounted
equal "$(cat plain)" "$(cat mounted)" "errors of the mount"
equal "" "$(txfs -C mnt diff --name-status)" "changes"

# mv copies, as on the plain directory.
mv mnt/f mnt/twice/g
mkdir mnt/twice/new
mv mnt/twice/f mnt/twice/new/f
mv mnt/other/d mnt/other/e
txfs -C mnt commit -m moves >/dev/null
equal "ws/f ws/bound/f" "$(cat ws/bound/g) $(cat ws/bound/new/f)" "what was committed"
[ ! -e ws/f ] && [ -d outside/e ] || fail "the moves were not committed"

txfs umount mnt >/dev/null
umount ws/twice ws/other ws/over
