#!/bin/sh
# txfs run: whatever a command does in the private home, of the home itself
# nothing changes but what is kept.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap
alone
mkdir ws

# make_home: files of the user's, and what is kept: a directory and a file.
make_home() {
  chmod -R u+rwX "$HOME" 2>/dev/null || :
  find "$HOME" -mindepth 1 -maxdepth 1 ! -name .local -exec rm -rf {} +
  mkdir -p "$HOME/pics/deep" "$HOME/kd/sub" "$HOME/.config/mine" "$HOME/vict"
  echo orig >"$HOME/.bashrc"
  echo private >"$HOME/pics/deep/one"
  echo victim >"$HOME/vict/file"
  echo mine >"$HOME/.config/mine/set"
  echo kept >"$HOME/kd/sub/file"
  echo '{}' >"$HOME/.tool.json"
  ln "$HOME/.bashrc" "$HOME/kd/linked"
  ln "$HOME/pics/deep/one" "$HOME/kd/sub/linked"
}
# rest: what must never change, with inode numbers. Links outside count, though
# one in what is kept may go.
rest() {
  (
    cd "$HOME"
    find . \( -path ./kd -o -path ./.local -o -path ./.tool.json -o -path ./new \
      -o -path ./.config/mine \) -prune -o ! -path . \
      -printf '%P\t%y\t%m\t%i\t%l\n' | LC_ALL=C sort
    cat .bashrc pics/deep/one vict/file
  )
}
# keeps WHAT COMMAND [OPTION...]: the rest of the home is as before, whatever
# became of the command.
keeps() {
  what=$1 command=$2
  shift 2
  make_home
  before=$(rest)
  txfs -C ws run --json "$TMPDIR/report" --rw "$HOME/kd" --rw "$HOME/.tool.json" --rw "$HOME/new/place" \
    --rw "$HOME/.config/mine" "$@" -- sh -c "$command" >"$TMPDIR/out" 2>"$TMPDIR/err" || :
  equal "$before" "$(rest)" "the home after $what"
}
# held PATH: it was said why the path is not kept.
held() {
  contains "$(grep 'because the change is also one outside' "$TMPDIR/err" || cat "$TMPDIR/err")" "$1"
}
kept() { equal "$2" "$(cat "$HOME/$1" 2>&1)" "content of $1 after $what"; }

keeps "what is named, and no more" 'echo more >~/kd/other; echo lost >>~/.bashrc; echo lost >~/new-file'
kept kd/other more
equal "['kd/other'] ['.bashrc', 'new-file']" "$(json 'str(d["home_kept"]) + " " + str(sorted(d["home_not_kept"]))' <"$TMPDIR/report")" \
  "what the report says of the home"
keeps "a new hard link" 'ln ~/.bashrc ~/kd/x; echo evil >>~/kd/x; echo more >~/kd/other; exit 1'
held /kd/x
[ ! -e "$HOME/kd/x" ] || fail "the link was kept"
kept kd/other more
keeps "a hard link of what is not changed" 'ln ~/.bashrc ~/kd/x; echo more >~/kd/other'
[ ! -e "$HOME/kd/x" ] || fail "the link was kept"
kept kd/other more
keeps "a hard link to a kept file" 'ln ~/kd/sub/file ~/outside; echo evil >>~/outside'
kept kd/sub/file kept
keeps "a hard link over a kept file" 'ln -f ~/.bashrc ~/.tool.json; echo evil >>~/.tool.json; echo more >~/kd/other'
held /.tool.json
kept .tool.json '{}'
kept kd/other more
keeps "a hard link that was there" 'echo evil >>~/kd/linked; echo evil >>~/kd/sub/linked; echo more >~/kd/other'
held /kd/linked
kept kd/linked orig
kept kd/other more
keeps "the mode of a hard link that was there" 'chmod 777 ~/kd/linked'
keeps "a hard link that was there and went" 'echo evil >>~/kd/linked; rm ~/kd/linked'
keeps "a hard link that was there and moved" 'mv ~/kd/linked ~/kd/moved; echo evil >>~/kd/moved'
keeps "a removed hard link" 'rm ~/kd/sub/linked; echo more >~/kd/other'
[ ! -e "$HOME/kd/sub/linked" ] || fail "a removal was not kept"
kept kd/other more
keeps "a directory moved to what is kept" 'mv ~/pics ~/kd/; echo more >~/kd/pics/new; echo more >~/kd/other; exit 1'
held /kd/pics
[ ! -e "$HOME/kd/pics" ] || fail "the directory was kept"
kept kd/other more
keeps "a directory moved into a new one" 'mkdir ~/kd/a; mv ~/pics ~/kd/a/b; echo more >~/kd/a/other; rm ~/kd/a/b/deep/one'
kept kd/a/other more
keeps "a directory moved over what is kept" 'rm -r ~/kd; mv ~/vict ~/kd'
kept kd/sub/file kept
keeps "a directory exchanged with what is kept" 'mv ~/kd ~/tmp; mv ~/vict ~/kd; mv ~/tmp ~/vict'
kept kd/sub/file kept
keeps "a file moved to what is kept" 'mv ~/vict/file ~/kd/sub/file; echo >>~/kd/sub/file'
kept kd/sub/file kept
keeps "a move out of what is kept" 'mv ~/kd/sub ~/sub; echo more >~/kd/other'
kept kd/sub/file kept
kept kd/other more
keeps "a timeout" 'mv ~/pics ~/kd/; sleep 600' --timeout 500ms
keeps "a directory above, replaced" 'mv ~/.config ~/c; mkdir -p ~/.config/mine; echo evil >~/.config/mine/set'
kept .config/mine/set mine
keeps "a directory above, removed" 'rm -r ~/.config; mkdir -p ~/.config/mine; echo evil >~/.config/mine/set'
kept .config/mine/set mine
keeps "a link above" 'mv ~/.config ~/c; ln -s ~/pics ~/.config; mkdir ~/pics/mine; echo evil >~/pics/mine/set'
contains "$(cat "$TMPDIR/err")" "/.config is a link now, and is not kept"
keeps "a link instead of what is kept" 'mv ~/kd ~/pics/; ln -s ~/pics ~/kd; echo evil >~/kd/deep/one'
kept kd/sub/file kept
keeps "a link on the way within what is kept" 'rm -r ~/kd/sub; ln -s ~/pics/deep ~/kd/sub; echo more >~/kd/other' \
  --rw "$HOME/kd/sub/file"
[ ! -L "$HOME/kd/sub" ] || fail "the link was kept"
kept kd/other more
keeps "a new place" 'mkdir -p ~/new/place ~/new/beside; echo it >~/new/place/file; echo more >~/new/beside/file'
kept new/place/file it
[ ! -e "$HOME/new/beside" ] || fail "what is beside a new place was kept"
keeps "a new place made of another" 'mv ~/pics ~/new; mkdir ~/new/place; echo it >~/new/place/file'
[ ! -e "$HOME/new" ] || fail "another directory was moved above a new place"
keeps "a moved directory above" 'chmod 777 ~ ~/.config; echo it >~/.config/mine/set'
kept .config/mine/set it
keeps "moves within what is kept" 'mv ~/kd/sub ~/kd/moved; ln ~/kd/moved/file ~/kd/second; echo it >>~/kd/second'
kept kd/moved/file "kept
it"

# Random commands: what they are is said if one fails.
command -v shuf >/dev/null || skip "shuf is not installed"
things="kd kd/sub kd/sub/file kd/linked .bashrc pics pics/deep pics/deep/one vict vict/file .config .config/mine new .tool.json kd/n vict/n"
seed=${SEED:-$$}
for round in $(seq "${ROUNDS:-12}"); do
  commands=$(awk -v seed="$seed$round" -v things="$things" 'BEGIN {
    srand(seed); n = split(things, t, " ")
    split("mv|mv -T|mv --exchange|ln|ln -f|rm -r|echo evil >>|chmod 700|mkdir -p|ln -sfn|cp -r", op, "|")
    for (i = 0; i < 8; i++) {
      o = op[1 + int(rand() * 11)]; a = t[1 + int(rand() * n)]; b = t[1 + int(rand() * n)]
      one = o ~ /^(rm|echo|chmod|mkdir)/
      printf "%s ~/%s%s\n", o, a, one ? "" : " ~/" b
    }
  }')
  keeps "these commands (SEED=$seed, round $round): $commands" "$commands"
done
