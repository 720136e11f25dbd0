#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cli.sh UNISCOPE SRCROOT MANDIR: the command line as a user meets it: help, exit codes, messages.
# Files appear whole or not at all. TAP.
set -u
U=$1 SRC=$2 MAN=$3
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0
mkfifo "$T/fifo"
check() { # DESCRIPTION COMMAND...: ok when the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$T/log" 2>&1; then echo "ok $n - $what"; else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/log"
	fi
}
# exits STATUS COMMAND...: the status is just that, stdout stays empty, stderr is one line.
exits() {
	want=$1
	shift
	"$@" >"$T/out" 2>"$T/err" </dev/null
	got=$?
	cat "$T/err"
	[ "$got" = "$want" ] && [ ! -s "$T/out" ] && [ "$(wc -l <"$T/err")" = 1 ]
}
says() { # TEXT COMMAND...: its output (both) holds TEXT
	text=$1
	shift
	"$@" >"$T/both" 2>&1
	cat "$T/both"
	grep -qF -- "$text" "$T/both"
}

offered() { "$U" __complete "$@" | cut -f1; } # what completion offers there
commands=$(offered '' | grep -vxE -e '-.*|help')
compat=$(offered compat '' | grep -v '^-')
check "lists its commands" test "$(echo "$commands" | wc -l)" -ge 8 -a "$(echo "$compat" | wc -l)" -ge 11
for c in $commands $compat; do
	check "$c --help works" "$U" "$c" --help
	name=$c page=$c
	[ "$c" != strace ] || page=compat
	! echo "$compat" | grep -qx "$c" || name="compat $c"
	check "$c --help shows how to call it" says "usage: uniscope $name" "$U" "$c" --help
	parts=
	! echo trace uk-trace compat | grep -qwF -e "$c" || parts=$(offered "$c" '' | grep -vx -e --help)
	for o in $parts $(offered "$c" -- | grep -vx -e --help); do
		esc=$(echo "$o" | sed 's/-/\\-/g')
		grep -qF -- "$esc" "$MAN/uniscope-$page.1" || echo "$c: $o is not in the man page" >>"$T/missing"
	done
	esc=$(echo "$name" | sed 's/-/\\-/g')
	sed -n '/^.SH COMMANDS/,/^.SH OPTIONS/p' "$MAN/uniscope.1" | grep -qxF -e ".B $esc" &&
		grep -qF "uniscope\\-$(echo "$page" | sed 's/-/\\-/g') (1)" "$MAN/uniscope.1" || echo "$c is not in uniscope(1)" >>"$T/unlisted"
done
check "uniscope(1) has each command" sh -c "[ ! -e '$T/unlisted' ] || { cat '$T/unlisted'; false; }"
keys=$(sed -n '/^.B kvm:pid=N/,/^.TP/s/^.BR* \([a-z]*\)\( [,.]\)*$/\1/p' "$MAN/uniscope.1")
for k in $keys; do
	"$U" stacks "kvm:pid=1,$k=auto" 2>&1 | grep "unknown key"
done >"$T/keys"
check "and keys of kvm: that there are" test -n "$keys" -a ! -s "$T/keys"
check "each option is in its man page" sh -c "[ ! -e '$T/missing' ] || { cat '$T/missing'; false; }"
check "man pages have no empty @OPTIONS@" sh -c "! grep -l '@[A-Z]*@' '$MAN'/*.1"

check "an unknown command of trace is named" sh -c "'$U' trace foo 2>&1 | grep -q \"unknown command 'foo'\""
check "no arguments: usage, exit 2" sh -c "'$U' >/dev/null 2>&1; test \$? = 2"
# On a terminal, with these variables set: has it colours?
coloured() { # VARIABLE=VALUE...
	env -u NO_COLOR TERM=xterm "$@" python3 -c 'import os, pty, sys
sys.exit(pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 4096)) != 0)' "$U" report "$SRC/tests/golden/shop.folded" >"$T/coloured" &&
		grep -q http_parse "$T/coloured" && grep -q "$(printf '\033\[')" "$T/coloured"
}
plain() { ! coloured "$@" && grep -q http_parse "$T/coloured"; }
check "colours on a terminal" coloured
check "also if NO_COLOR is empty" coloured NO_COLOR=
check "none with NO_COLOR" plain NO_COLOR=1
check "whatever it is" plain NO_COLOR=x
check "none on a terminal that has none" plain TERM=dumb
check "none in a pipe" sh -c '"$1" report "$2" | cat >"$3" && ! grep -q "$(printf "\033")" "$3" && grep -q http_parse "$3"' sh "$U" "$SRC/tests/golden/shop.folded" "$T/coloured"
check "--version" says "uniscope 0." "$U" --version
check "--version names the commit" sh -c "'$U' --version | grep -qxE 'uniscope [0-9]+[.][0-9]+[.][0-9]+ [(]([0-9a-f]{12}[+]?|unknown)[)]'"
check "unknown command: exit 2" exits 2 "$U" frobnicate
check "a command that was meant" says "did you mean 'record'?" "$U" recrod
check "a command of trace that was meant" says "did you mean 'findings'?" "$U" trace finding
check "an option that was meant" says "did you mean --frequency?" "$U" record --frequncy 9 x
check "and it is meant once" sh -c '[ "$(grep -o "did you mean" "$1" | wc -l)" = 1 ]' - "$T/both"
check "an option that was begun" says "did you mean --duration?" "$U" record --dur=9 x
check "help has groups" sh -c '"$1" --help | grep -xE "[a-z ]+:" | tr "\n" " " | grep -qx "daily: trace: exchange: front ends of older tools: "' - "$U"
check "and a full list behind them" sh -c '"$1" help --all | grep -qE "^  trace findings  +find errors" && ! "$1" help | grep -q "trace findings"' - "$U"
hinted() { # HINT COMMAND...: works, with that line on stderr
	hint=$1
	shift
	"$@" >"$T/out" 2>"$T/err" && [ -s "$T/out" ] && [ "$(head -1 "$T/err")" = "uniscope: $hint" ] || { cat "$T/err"; return 1; }
}
printf 'main;a;b 10\nmain;a 5\nmain;c 85\n' >"$T/in.folded"
check "an old name is understood" hinted '--functions is an old name: use --max' "$U" report --functions 5 "$T/in.folded"
check "an old letter as well" hinted '-f is an old letter of --input-format, and means something else in other commands: use --input-format' \
	sh -c '"$1" import -f folded "$2/in.folded" -o "$2/letter.uniscope" && ls "$2/letter.uniscope"' - "$U" "$T"
printf 'function,tid,latency_us,latency_us_self\r\nf,1,5,5\r\n' >"$T/trace.csv"
ln -s "$(realpath "$U")" "$T/summarize-trace.awk"
same_front() { # the front end under each of its names
	"$U" compat summarize-trace "$T/trace.csv" >"$T/want" && grep -q '^f,1,' "$T/want" &&
		"$U" summarize-trace "$T/trace.csv" | cmp - "$T/want" &&
		"$U" compat summarize-trace.awk "$T/trace.csv" | cmp - "$T/want" && "$T/summarize-trace.awk" "$T/trace.csv" | cmp - "$T/want"
}
check "a front end by compat, as before, by its file's name, by a link" same_front
check "a link completes" sh -c '"$1" __complete --ta | grep -q "^--table"' - "$T/summarize-trace.awk"
nothing_near() {
	says 'unknown command' "$U" "$1" && ! says 'did you mean' "$U" "$1"
}
check "nothing near is no guess" nothing_near frobnicate
check "unknown option: exit 2" exits 2 "$U" record --frobnicate x
check "option without its value: exit 2" exits 2 "$U" record x -F
check "not a number: exit 2" exits 2 "$U" record x -F 9x
check "missing operand: exit 2" exits 2 "$U" record
check "too many operands: exit 2" exits 2 "$U" report a b
check "record without a target: exit 2" exits 2 "$U" record
check "record --all and a target: exit 2" exits 2 "$U" record --all a
check "an unknown method: exit 2" exits 2 "$U" record kvm:pid=1 --method magic
check "bpf is for kvm: targets: exit 2" exits 2 "$U" record gdb:unix=/nonexistent --method bpf
check "several targets, none there: exit 1" sh -c '"$1" record no-such-guest nor-such; [ $? = 1 ]' sh "$U"
check "and each is said" says "nor-such: left out: no guest named nor-such" "$U" record no-such-guest nor-such
check "--save-replay of several: exit 2" exits 2 "$U" record a b --save-replay "$T/r"
for v in '-d -1' '-d 1e9' '-F -1' '-F 1e9' '-F 100000.5' '--wait=-1'; do
	# shellcheck disable=SC2086
	check "record $v: exit 2" exits 2 "$U" record gdb:unix=/nonexistent $v
	check "and what may be given" grep -Eq '(between 0|above 0) and (at most )?10+ (s|Hz)' "$T/err"
done
check "no samples without --exits" says 'needs --exits' "$U" record gdb:unix=/nonexistent -F 0
check "top has its ranges, too" says 'between 0.1 and 3600' "$U" top gdb:unix=/nonexistent -i -1
check "inf is no number" says 'takes a number' "$U" record gdb:unix=/nonexistent -d inf
check "1e1 is one" says '/nonexistent' "$U" record gdb:unix=/nonexistent -d 1e1
check "pauses are not aggregated" says 'needs the host' "$U" record kvm:pid=1 --aggregate --method pause
check "frequency out of range: exit 2" exits 2 "$U" record gdb:unix=/nonexistent -F 0
check "target without keys: exit 2" exits 2 "$U" record kvm:pid
check "empty target: exit 2" exits 2 "$U" record ''
check "a console that cannot be written is named" says "cannot write $T/none/c.log" \
	"$U" run --console "$T/none/c.log" -o "$T/r.uniscope" "$U"
check "unknown scheme: exit 2" exits 2 "$U" record vmware:pid=1
check "unknown scheme names the known ones" says "kvm:" "$U" record vmware:pid=1
check "unknown key: exit 2" exits 2 "$U" stacks kvm:frob=1
check "no such process: exit 1" exits 1 "$U" stacks kvm:pid=999999999
check "no such socket: exit 1" exits 1 "$U" stacks gdb:unix=/nonexistent/sock
check "a name nobody has: exit 1" exits 1 "$U" record no-such-guest-name
check "no such session: exit 1" exits 1 "$U" report "$T/nothing.uniscope"
for where in tcp:127.0.0.1:1 127.0.0.1:1 :1; do
	check "gdb's words for a stub: $where" says 'at tcp port 127.0.0.1:1 ' "$U" uk-trace fetch -r $where -o "$T/none" "$U"
done
check "or a socket" says 'at unix socket /nonexistent/s ' "$U" uk-trace fetch -r /nonexistent/s -o "$T/none" "$U"
check "the largest number of nodes" says 'no-such-guest is no file' "$U" serve -p 0 --nodes 4294967295 no-such-guest
check "one more: exit 2" exits 2 "$U" serve -p 0 --nodes 4294967296 no-such-guest
check "no such image: exit 1" exits 1 "$U" run "$T/nothing.elf"

printf 'main;a;b 10\nmain;a 5\nmain;c 85\n' >"$T/in.folded"
check "report reads folded stacks" says "c" "$U" report "$T/in.folded"
check "export folded again" "$U" export "$T/in.folded" -f folded -o "$T/out.folded"
check "folded round trip is equal" sh -c "sort '$T/in.folded' | cmp - '$T/out.folded'"
check "export svg" "$U" export "$T/in.folded" -o "$T/out.svg"
check "svg has the title grammar" grep -qF "c (85 samples, 85.00%)" "$T/out.svg"
check "the longest end of a name says the format" sh -c '"$1" export "$2/in.folded" -o "$2/n.speedscope.json" &&
	grep -q speedscope.app/file-format-schema "$2/n.speedscope.json" && "$1" export "$2/in.folded" -o "$2/n.json" &&
	grep -q uniscope-profile "$2/n.json"' sh "$U" "$T"
check "unknown format: exit 2" exits 2 "$U" export "$T/in.folded" -f frob
check "unknown svg option: exit 2" exits 2 "$U" export "$T/in.folded" -f svg -O frob=1
check "svg in an encoding that its text is not in: exit 2" exits 2 "$U" export "$T/in.folded" -f svg -O encoding=utf-16
check "unwritable output: exit 1" exits 1 "$U" export "$T/in.folded" -f svg -o /nonexistent/x.svg
check "a failed export leaves nothing" sh -c "! '$U' export '$T/in.folded' -f svg -O width=x -o '$T/none.svg' 2>/dev/null && ! ls '$T'/none* 2>/dev/null"
for c in 'ls --json' doctor --version --help 'record --help' "export $T/in.folded -f folded" \
	"report $T/in.folded" __complete '__complete record' '__man-options record'; do
	check "$c to a full disk says why" sh -c "'$U' $c 2>&1 >/dev/full | grep -q 'No space left'"
done
check "export to a full disk fails" sh -c "! '$U' export '$T/in.folded' -f folded >/dev/full 2>/dev/null"
check "import makes a session" "$U" import "$T/in.folded" -o "$T/imp.uniscope"
check "the session says who made it, and how" sh -c "grep -F 'import $T/in.folded -o $T/imp.uniscope' '$T/imp.uniscope/session.json' && grep -E '\"uniscope\": *\"0\.' '$T/imp.uniscope/session.json'"
check "import refuses to overwrite" exits 1 "$U" import "$T/in.folded" -o "$T/imp.uniscope"
check "and names --overwrite" says --overwrite "$U" import "$T/in.folded" -o "$T/imp.uniscope"
check "import --overwrite replaces" "$U" import --overwrite "$T/in.folded" -o "$T/imp.uniscope"
check "an imported session reports" says "85" "$U" report "$T/imp.uniscope"
check "an imported session exports the same" sh -c "'$U' export '$T/imp.uniscope' -f folded | cmp - '$T/out.folded'"
check "a vCPU that is not there: exit 1" exits 1 "$U" report --vcpu 7 "$T/imp.uniscope"
check "it says which are there" says "this session has 1 vCPU (0)" "$U" export --vcpu 7 "$T/imp.uniscope" -f folded
check "--vcpu beyond all numbers: exit 1" exits 1 "$U" export --vcpu 18446744073709551615 "$T/imp.uniscope" -f folded
check "--vcpu 0 is there" "$U" report --vcpu 0 "$T/imp.uniscope"
check "--diff of a session: exit 2" exits 2 "$U" report --diff "$T/imp.uniscope"
cp -r "$T/imp.uniscope" "$T/nameless.uniscope"
for f in "$T/nameless.uniscope"/symbols/*.usym; do truncate -s 20 "$f"; done
check "damaged symbols: a note, and the samples" says "addresses stay without names" "$U" report "$T/nameless.uniscope"
check "damaged symbols: no failure" "$U" export "$T/nameless.uniscope" -f folded
good=$(echo "$T/imp.uniscope"/symbols/*.usym)
check "damaged symbols: names from elsewhere" sh -c "'$U' export -s '$good' '$T/nameless.uniscope' -f folded | cmp - '$T/out.folded'"
cp -r "$T/imp.uniscope" "$T/torn.uniscope"
truncate -s 100 "$T/torn.uniscope/guest-0/samples-vcpu0"
check "a torn stream is reported, with a note" says "3 of 3 samples could not be read: the stream is damaged (1 torn packets)" "$U" report "$T/torn.uniscope"
rm "$T/torn.uniscope/guest-0/samples-vcpu0"
check "a lost stream is exported, with a note" says "3 of 3 samples could not be read" "$U" export "$T/torn.uniscope" -f folded
check "a device is no report" exits 1 timeout 10 "$U" report /dev/zero
check "a device is no image" exits 1 timeout 10 "$U" report -s /dev/zero "$T/in.folded"
check "standard input may be a pipe" sh -c "cat '$T/in.folded' | '$U' report /dev/stdin"
printf 'garbage\nmore garbage\n' >"$T/bad"
check "garbage in: exit 1" exits 1 "$U" report "$T/bad"
mkdir "$T/precious"
echo keep >"$T/precious/file"
check "a folder that is no session is never replaced" exits 1 "$U" import --overwrite "$T/in.folded" -o "$T/precious"
check "its content is still there" test -f "$T/precious/file"
check "doctor" sh -c "'$U' doctor | grep -q replay"
check "doctor tells whether QEMU takes plugins" sh -c "'$U' doctor | grep -q 'exact .*takes plugins' &&
	mkdir '$T/bin' && sed s/qemu_plugin_register_vcpu/gone/g \"\$(command -v qemu-system-x86_64)\" \
		>'$T/bin/qemu-system-x86_64' && chmod +x '$T/bin/qemu-system-x86_64' &&
	PATH='$T/bin' '$U' doctor | grep -q 'built without plugins'"
check "doctor tells what the sampler in the kernel needs, thing by thing" sh -c "'$U' doctor --json |
	python3 -c 'import json, sys
ways = {w[\"name\"]: w for w in json.load(sys.stdin)[\"ways\"]}
bpf = {c[\"name\"]: c for c in ways[\"kvm-bpf\"][\"checks\"]}
assert \"capabilities\" in bpf and bpf[\"capabilities\"][\"text\"]
assert ways[\"kvm-bpf\"][\"ok\"] == all(c[\"ok\"] for c in bpf.values())'"
check "kvm: of a process that is no VMM says so" sh -c "'$U' record kvm:pid=\$\$ -d 1 -o '$T/no' 2>&1 |
	grep 'is no VMM: it holds no KVM VM'"
check "trace record of a process without the tracer does not ask for its image" sh -c "sleep 100 & p=\$!
	'$U' trace record proc:pid=\$p -d 1 -o '$T/no' 2>'$T/err'
	kill \$p; grep 'has no symbol uni_trace_head' '$T/err' && ! grep -e '--image' '$T/err'"
check "gdb: without a socket names it, not the image" sh -c "'$U' record 'gdb:unix=$T/absent' -d 1 \
	-o '$T/no' 2>&1 | grep 'there is no unix socket $T/absent' | grep -v -e '--image'"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$T/dead"
for key in qmp unix; do
	check "gdb:$key= of a socket that its VMM has left says so" sh -c "'$U' record 'gdb:$key=$T/dead' -d 1 -o '$T/no' 2>&1 |
		grep 'does not tell which image it runs (no process that can be seen listens at unix socket $T/dead)'"
done
check "doctor of a process that is no VMM" exits 1 "$U" doctor kvm:pid=$$
check "ls --json is JSON" sh -c "'$U' ls --json | python3 -m json.tool"
# A process that looks like a nameless QEMU.
cp "$(readlink -f /proc/$$/exe)" "$T/qemu-system-x86_64"
"$T/qemu-system-x86_64" -c 'read -r line; :' vm -kernel /none/shop-cli.elf \
	-gdb "unix:$T/gdb.sock,server=on,wait=off" <"$T/fifo" 9>&- &
vm=$!
exec 9>"$T/fifo"
check "ls shows a nameless guest by its image" says "$vm " sh -c "'$U' ls | grep ' shop-cli '"
check "and that name is a target" says "$T/gdb.sock" "$U" record shop-cli -d 1 -o "$T/s.uniscope"
exec 9>&-
wait "$vm"
plain() { "$U" doctor >"$T/doctor" && [ -s "$T/doctor" ] && ! grep "$(printf '\033')" "$T/doctor"; }
check "no colour in a pipe" plain
# No output over what it is made of, by whatever name, and not into the folder of a session.
mkdir "$T/own" "$T/own/s.uniscope"
printf 'main;work 3\nmain;rest 4\n' >"$T/own/in.folded"
cp "$T/own/in.folded" "$T/own/kept"
cp "$T/own/in.folded" "$T/own/s.uniscope/session.json"
ln "$T/own/in.folded" "$T/own/hard"
ln -s in.folded "$T/own/soft"
kept() { # COMMAND...: refused as a wrong use, and the input is what it was
	exits 2 "$@" && grep -q 'which is read: give it another name' "$T/err" &&
		cmp "$T/own/in.folded" "$T/own/kept" && cmp "$T/own/s.uniscope/session.json" "$T/own/kept"
}
for out in in.folded hard soft ../own/in.folded; do
	check "report --html $out is not written over its input" kept "$U" report --html "$T/own/$out" "$T/own/in.folded"
	check "export -o $out neither" kept "$U" export -f svg -o "$T/own/$out" "$T/own/in.folded"
done
check "nor over what --before names" kept "$U" export -f svg -o "$T/own/soft" --before "$T/own/in.folded" "$T/own/kept"
check "nor over --beside" kept "$U" report --html "$T/own/hard" --beside "$T/own/in.folded" "$T/own/kept"
check "nor over the symbols" kept "$U" export -f svg -o "$T/own/in.folded" -s "$T/own/in.folded" "$T/own/kept"
check "nor over a file of a session" kept "$U" export -f svg -o "$T/own/s.uniscope/session.json" "$T/own/s.uniscope"
check "nor with symbolize" kept "$U" symbolize -o "$T/own/soft" "$T/own/kept" "$T/own/in.folded"
check "nor with trace replay" kept "$U" trace replay -o "$T/own/s.uniscope/session.json" "$T/own/s.uniscope"
check "import neither" kept "$U" import --overwrite -o "$T/own/in.folded" "$T/own/in.folded"
check "another file may be there" "$U" export -f svg -o "$T/own/kept" "$T/own/in.folded"
# --open starts another program, which a command without rights cannot: a child does.
full=$(readlink -f "$U")
mkdir "$T/bin" "$T/none"
printf '#!/bin/sh\necho "$*" >"%s/opened"\nexit 0\n' "$T" >"$T/bin/xdg-open"
printf '#!/bin/sh\necho no such browser >&2\nexit 3\n' >"$T/none/xdg-open"
chmod +x "$T/bin/xdg-open" "$T/none/xdg-open"
opens() { # PATH-OF-PROGRAMS ARGUMENT WORDS...: it was started with that; all lines are here once the browser's child is gone
	rm -f "$T/opened"
	said=$(cd "$T/own" && PATH=$1 "$full" report --open in.folded 2>&1)
	status=$?
	echo "$status: $said, $(cat "$T/opened" 2>&1)"
	[ "$2" = "$(cat "$T/opened" 2>/dev/null)" ] && [ -s "$T/own/in.folded.html" ] && [ "$status" = "$3" ] &&
		echo "$said" | grep -qF -- "$4" && ! echo "$said" | grep 'no such browser'
}
check "report --open opens the page" opens "$T/bin:$PATH" ./in.folded.html 0 'opening in.folded.html'
check "says if there is no browser" opens "$T/none:$PATH" '' 0 'no browser: open in.folded.html in one'
check "says if there is no xdg-open" opens "$T/own" '' 1 'is written, but cannot be opened: xdg-open'
check "and wants a file" exits 2 "$U" report --open --html - "$T/own/in.folded"
rm "$T/own/in.folded.html"
check "a device is none" "$U" export -f folded -o /dev/null "$T/own/in.folded"

# A message says what an import could not keep.
awk 'BEGIN { printf "main;work 3\nf0"; for (i = 1; i < 5000; i++) printf ";f%d", i; print " 5" }' >"$T/deep.folded"
check "stacks that are cut are counted" says '1 stack has more than 4096 frames' "$U" report "$T/deep.folded"
check "and which is the first" grep -q 'the first is stack 2' "$T/both"
printf 'a;b 3\na;b 900000000000000000\n' >"$T/large.folded"
check "a number that is too large is told as that" says 'a number of more than 15 digits' "$U" report "$T/large.folded"
check "not as a line that is none" sh -c "! grep -q 'are not folded' '$T/both'"

# --min is for the tree, and for a table of all functions; --max alone limits the table otherwise.
printf 'main;big 99\nmain;small 1\n' >"$T/min.folded"
check "a table of some functions has small ones" says '  small' "$U" report --min 50 "$T/min.folded"
check "a table of all has the large ones" says '  big' "$U" report -n 0 --min 50 "$T/min.folded"
check "and no small ones" sh -c "! grep -q '  small' '$T/both'"

# A refusal says what to do next, with options that exist.
printf 'PERFILE2 and more' >"$T/perf.data"
check "perf's own file: perf script" says 'perf script -i FILE' "$U" import -o "$T/no.uniscope" "$T/perf.data"
printf 'no format at all\n' >"$T/none.txt"
named() { # COMMAND ARGUMENT...: it refuses, and each option that its message names is in its help
	! "$U" "$@" >"$T/out" 2>"$T/err" && cat "$T/err" && grep -oE -e ' --[a-z-]+' "$T/err" >"$T/options" || return 1
	while read -r option; do
		"$U" "$1" --help | grep -qE -e "^ .* $option( |\$)" || { echo "$1 has no $option"; return 1; }
	done <"$T/options"
}
check "import names options that it has" named import -o "$T/no.uniscope" "$T/none.txt"
check "report too" named report "$T/none.txt"
check "export too" named export -f svg "$T/none.txt"
check "serve too" named serve "$T/none.txt"
check "diff too" named diff "$T/none.txt" "$T/none.txt"
printf '\012\004\100\001\120\002' >"$T/t.pftrace"
check "a Perfetto trace is no empty profile" says 'a Perfetto trace begins like one' "$U" import -f pprof -o "$T/no.uniscope" "$T/t.pftrace"
check "serve looks at a file before it serves" sh -c '! timeout 20 "$1" serve "$2" >"$3" 2>&1 && ! grep serving "$3" &&
	grep "is no session" "$3"' sh "$U" "$T/none.txt" "$T/served"
mkdir "$T/none.uniscope"
check "and at a folder" sh -c '! timeout 20 "$1" serve "$2" >"$3" 2>&1 && ! grep serving "$3" &&
	grep "is no session that can be read: cannot open session.json" "$3"' sh "$U" "$T/none.uniscope" "$T/served"
check "findings of samples: there is no trace" says 'holds samples and no trace' "$U" trace findings "$T/imp.uniscope"
check "record -- without a command: exit 2" exits 2 "$U" record 1 -d 2 --
check "and says what is missing" says 'give the command to run behind --' "$U" record 1 -d 2 --
check "--follow and a command: exit 2" exits 2 "$U" record web1 --follow -- sleep 1

# The guide's commands are as they stand there: each command, and each of its options, exists.
guide() {
	"$U" guide >"$T/guide" && [ "$(grep -c '^     uniscope ' "$T/guide")" -ge 18 ] || return 1
	sed -n 's/^     uniscope //p' "$T/guide" | sed 's/ -- .*//; s/   .*//; s/\\$//' | while read -r words; do
		set -- $words
		name=$1
		shift
		[ "$name" != trace ] || {
			name="trace $1"
			shift
		}
		"$U" $name --help >"$T/help" || exit 1
		for word in "$@"; do
			case $word in
			-*) grep -qE -e "(^|[ ,])$word([ ,=[]|\$)" "$T/help" || {
				echo "$name has no $word"
				exit 1
			} ;;
			esac
		done
	done
}
check "the guide's commands and their options exist" guide
check "it has two pages, no wider than a terminal" sh -c '[ "$(wc -l <"$1")" -le 66 ] && ! grep ".\{97\}" "$1"' sh "$T/guide"

echo "1..$n"
