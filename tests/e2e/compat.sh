#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compat.sh UNISCOPE BUILD SRCROOT: the front ends for scripts of older tools, on lab guests. They are uniprof, symbolize, xenctx,
# generate-flame-graph and run --xl, with an `xl` of ours that boots under QEMU. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
case $BUILD in
/*) ;;
*) BUILD=$PWD/$BUILD ;;
esac
cd "$T" || exit 1
grammar="python3 $SRC/tests/e2e/uniprof_text.py"

# Every line of what uniprof writes is one of its grammar; N traces or more; the outermost frame.
traces() { # WAY
	timeout 60 "$U" uniprof "$(method "$1")" -F 50 -T "$seconds" -q raw "$target" 2>err || {
		cat err
		return 1
	}
	$grammar raw raw 3 || return 1
	nm -n "$elf" >syms
	"$U" symbolize syms raw >named 2>err || return 1
	$grammar named named 3 lab_entry || return 1
	[ "$(grep -c '^1$' raw)" -gt 0 ] && grep -q '^function_[0-9]+0x' named
}

# The names that uniprof writes itself are those that symbolize puts there.
resolves() { # WAY OPTION
	timeout 60 "$U" uniprof "$(method "$1")" -F 50 -T "$seconds" -q "$2" "$3" - "$target" >online 2>err || {
		cat err
		return 1
	}
	$grammar named online 3 lab_entry && grep -q '^function_[0-9]+0x' online
}

# A reader that has seen enough ends it at once, and the guest runs on.
pipe_closes() {
	begin=$(date +%s)
	timeout 60 "$U" uniprof -F 50 -T 50 -q - "$target" 2>err | head -n 5 >few
	[ $(($(date +%s) - begin)) -lt 45 ] && [ "$(wc -l <few)" = 5 ] && kill -0 "$guest"
}

# Ctrl-C ends it cleanly: what was traced is there.
interrupted() {
	rm -f part part.tmp-*
	"$U" uniprof -F 20 -T 0 part "$target" 2>err &
	tracer=$!
	wait_for 40 has_traces 2 # its name until it is whole
	kill -INT $tracer
	wait $tracer
	$grammar raw part 2
}
has_traces() { # AT-LEAST
	[ "$(cat part.tmp-* | grep -c '^1$')" -ge "$1" ]
}

missed() { # a rate that nobody can keep up with
	timeout 60 "$U" uniprof --method pause -F 20000 -T 1 -M -q raw "$target" 2>err || return 1
	$grammar raw raw 1 && grep -qE "^we're falling behind by [0-9]+\.[0-9]{9}!$" err &&
		grep -qE '^Missed [0-9]+ deadlines$' err && ! grep -q Missed raw
}

views() { # ACCEL
	timeout 60 "$U" xenctx -a "$target" >ctx 2>err || {
		cat err
		return 1
	}
	cat ctx
	grep -qE '^rip: [0-9a-f]{16} [a-z_0-9]+' ctx && grep -qE '^flags: [0-9a-f]{8} .*n?z' ctx &&
		grep -qE '^rax: [0-9a-f]{16}	rcx: [0-9a-f]{16}	rdx: [0-9a-f]{16}$' ctx &&
		grep -qE '^rbp: [0-9a-f]{16}	 r8: [0-9a-f]{16}	 r9: [0-9a-f]{16}$' ctx &&
		grep -qE '^ cs: [0-9a-f]{4}	 ss: [0-9a-f-]{4}	 ds: [0-9a-f-]{4}	 es: [0-9a-f-]{4}$' ctx &&
		grep -qE '^ fs: [0-9a-f-]{4} @ [0-9a-f]{16}' ctx && grep -qE '^ gs: [0-9a-f-]{4} @ [0-9a-f]{16}' ctx &&
		grep -qE '^cr3: [0-9a-f]{16}$' ctx || return 1
	python3 - "$elf" ctx <<'EOF'
import re, subprocess, sys
elf, text = sys.argv[1], open(sys.argv[2]).read()
pc = int(re.search(r"^rip: (\w+)", text, re.M).group(1), 16)
assert "Code (instr addr %08x)\n" % pc in text
code = re.search(r"^Code .*\n(.*)\n", text, re.M).group(1).split()
assert len(code) == 32 and re.fullmatch("<..>", code[21]), code
# The code is the image's.
out = subprocess.run(["objdump", "-s", "--start-address=%#x" % pc, "--stop-address=%#x" % (pc + 11), elf],
    capture_output=True, text=True, check=True).stdout
want = "".join("".join(line.split()[1:5]) for line in out.splitlines() if re.match(r" [0-9a-f]{8,} ", line))
got = "".join(c.strip("<>") for c in code[21:])
assert want.startswith(got[:16]), (want, got)
trace = text[text.index("Call Trace:\n"):].splitlines()[1:]
assert re.fullmatch(r" {20}\[<%016x>\] \S+ <--" % pc, trace[0]), trace[0]
stack = text[text.index("Stack:\n"):text.index("Call Trace:")].split()[1:]
sp = int(re.search(r"^rsp: (\w+)", text, re.M).group(1), 16)
for line in trace[1:]:
    m = re.fullmatch(r"(\w{16}):   \[<(\w{16})>\] \S+", line)
    assert m, line
    at = (int(m.group(1), 16) - sp) // 8
    assert at >= len(stack) or stack[at] == m.group(2), (line, at)
assert trace[-1].split()[-1].startswith("lab_entry+0x"), trace[-1]
EOF
}

all_vcpus() {
	timeout 60 "$U" xenctx -C -f "$target" >ctx 2>err || return 1
	[ "$(grep -c '^vcpu[01]:$' ctx)" = 2 ] && [ "$(grep -c '^rip: ' ctx)" = 2 ] &&
		grep -q 'lab_ap_entry+0x' ctx && grep -q 'lab_entry+0x' ctx
}

stack_trace() {
	timeout 60 "$U" xenctx -S "$target" 1 >ctx 2>err || return 1
	cat ctx
	grep -q '^Stack:$' ctx && grep -q '^Stack Trace:$' ctx && grep -qE '^ {18}\* \[<' ctx && ! grep -q '^Call Trace' ctx &&
		[ "$(grep -cE '^[0-9a-f]{16}:   (\[<|  )[0-9a-f]{16}' ctx)" -gt 4 ] &&
		grep -qE '\[<[0-9a-f]{16}>\] cpu1_work\+0x' ctx || return
	# With frame pointers: a line on the left from each saved one to the next, to the caller above it.
	timeout 60 "$U" xenctx -f -S "$target" 1 >ctx 2>err || return 1
	cat ctx
	grep -A1 -E '^[0-9a-f]{16}: \|-- [0-9a-f]{16}$' ctx >pairs
	grep -qE '^[0-9a-f]{16}: \| \[<[0-9a-f]{16}>\] ap_work\+0x' pairs
}

# 4 bytes a line, which is a whole word, two lines, each with its address and as characters; nothing else.
dumps() {
	base=$(nm "$elf" | awk '$3 == "app_main" { print $1 }') # aligned, as objdump shows it
	timeout 60 "$U" xenctx -t -D -b 4 -l 2 -m "0x$base" "$target" >ctx 2>err || return 1
	cat ctx
	want=$(objdump -s --start-address="0x$base" "$elf" |
		awk '/^Contents/ { getline; print substr($2 $3, 1, 16); exit }' | sed -E 's/(..)(..)(..)(..)(..)(..)(..)(..)/\8\7\6\5\4\3\2\1/')
	grep -q "^Memory (address $base):$" ctx && grep -qE "^$base: $want  .{8}$" ctx &&
		[ "$(sed -n '/^Memory/,/^$/p' ctx | grep -c '^[0-9a-f]*:')" = 2 ] && ! grep -q '^rip' ctx &&
		! grep -q '^Stack' ctx || return
	timeout 60 "$U" xenctx -t -D -b 5 -l 2 "$target" >ctx 2>err || return 1
	[ "$(sed -n '/^Stack/,/^$/p' ctx | grep -cE '^[0-9a-f]{16}: [0-9a-f]{16}  .{8}$')" = 2 ]
}

# Memory as a stack: of its words those are shown that look like code, and nothing of a vCPU.
as_stack() {
	timeout 60 "$U" xenctx "$target" 1 >ctx 2>err || return 1
	sp=$(sed -n 's/^rsp: //p' ctx)
	timeout 60 "$U" xenctx -d "0x$sp" "$target" 1 >ctx 2>err || return 1
	cat ctx
	grep -q '^Stack:$' ctx && grep -qE '^[0-9a-f]{16}:   \[<[0-9a-f]{16}>\] ap_work\+0x[0-9a-f]+ \?$' ctx &&
		! grep -q -e '^rip' -e '^Code' -e '<--' ctx || return
	timeout 60 "$U" xenctx -l 0 "$target" 1 >ctx 2>err && ! grep -q '^Stack' ctx && grep -q '^Call Trace' ctx
}

unmapped() {
	timeout 60 "$U" xenctx -m 0x123456789000 -d 0x123456789000 "$target" >ctx 2>err &&
		[ "$(grep -c 'nothing is mapped at 0000123456789000' ctx)" = 2 ]
}

# They record by what `record` records; its tests have each way.
for way in $(by_default kvm "$accels"); do
	seconds=1
	[ "$way" = tcg ] && seconds=4 # where a busy host makes pauses long, and them few
	if boot "$way" "$(image calls1)" ''; then
		check "$way: uniprof writes its text" traces "$way"
		in_all check "$way: uniprof -s names frames" resolves "$way" -s syms
		check "$way: uniprof -E names frames" resolves "$way" -E "$elf"
		check "$way: a reader that goes away ends it" pipe_closes
		check "$way: Ctrl-C ends it" interrupted
		[ "$way" = bpf ] || in_all check "$way: missed deadlines are said on stderr" missed
	else
		check "$way: boots" false
	fi
done
# conformance reads the registers and memory of each way.
if boot tcg "$(image smp)" '' --smp 2; then
	check "tcg: xenctx shows registers, code, stack, call trace" views tcg
	check "tcg: xenctx -C" all_vcpus
	check "tcg: xenctx -S" stack_trace
	check "tcg: xenctx -m -t -D -b -l" dumps
	check "tcg: xenctx -d, -l 0" as_stack
	check "tcg: xenctx says what is not mapped" unmapped
else
	check "tcg: boots" false
fi
end_guest

# An xl that makes domains of QEMU, which a gdb stub reaches.
mkdir bin
cat >bin/xl <<EOF
#!/bin/sh
cmd=\$1
shift
echo "\$cmd \$*" >>"$T/xl.log"
case \$cmd in
create)
	[ -e "$T/fail" ] && { echo "libxl: error: no memory" >&2; exit 3; }
	[ -e "$T/domain" ] && exit 5
	"$SRC/lab/boot" --accel tcg --append loop=1 --serial "file:$T/xl.serial" \\
		--gdb "unix:$T/xl.gdb,server=on,wait=off" "$T/app.elf" \$(cat "$T/option" 2>/dev/null) \\
		</dev/null >/dev/null 2>&1 &
	echo \$! >"$T/domain"
	echo "Parsing config from \$1"
	;;
domid)
	[ -e "$T/domain" ] && [ "\$1" = app ] && { echo 7; exit 0; }
	echo "\$1 is an invalid domain identifier (rc=-6)" >&2
	exit 1
	;;
destroy)
	[ -e "$T/domain" ] && [ "\$1" = 7 ] || exit 1
	kill "\$(cat "$T/domain")"
	rm "$T/domain"
	;;
*) exit 9 ;;
esac
EOF
chmod +x bin/xl
PATH=$T/bin:$PATH
trap '[ ! -e domain ] || kill "$(cat domain)"; end_guest; rm -rf "$T"' EXIT
cp "$(image calls1)" app.elf
cat >app.cfg <<EOF
# a domain
name = 'app'   # its name
kernel = "$T/app.elf"
memory = 8; vcpus = 1
EOF
mkdir work

five_files() { # exactly these
	ls work | grep '^app[-.]' | sort >have
	printf '%s\n' app-flamegraph.svg app-stackcollapse app-stacktrace app-stacktrace.syms app.syms | sort >want
	diff want have && $grammar raw work/app-stacktrace 3 &&
		$grammar named work/app-stacktrace.syms 3 lab_entry || return 1
	nm -n app.elf | LC_ALL=C sort >a
	LC_ALL=C sort work/app.syms >b
	diff a b || return 1
	python3 "$SRC/tests/e2e/uniprof_text.py" collapse work/app-stacktrace.syms >folded &&
		diff folded work/app-stackcollapse && grep -q '<svg' work/app-flamegraph.svg &&
		grep -q function_ work/app-flamegraph.svg
}

run_xl() {
	: >xl.log
	(cd work && timeout 120 "$U" run --xl ../app.cfg -F 50 -d 2 --five-files \
		--target "gdb:unix=$T/xl.gdb") >out 2>&1 || {
		cat out
		return 1
	}
	[ ! -s out ] || grep -q 'xl created app, domain 7' out || return 1
	[ -d work/app.uniscope ] && [ -s work/app.svg ] && [ ! -e domain ] || return 1
	mv work/app.uniscope work/app.svg .
	five_files && printf 'domid app\ncreate ../app.cfg\ndomid app\ndestroy 7\n' | diff - xl.log
}
check "run --xl records, draws, destroys, writes five files" run_xl

script() {
	rm -rf work && mkdir work && : >xl.log
	(cd work && timeout 120 "$U" generate-flame-graph -f 50 -t 2 -n app -c ../app.cfg -x ../app.elf -q \
		--target "gdb:unix=$T/xl.gdb") >out 2>err || {
		cat out err
		return 1
	}
	cat >want <<-EOF
		Frequency - 50
		Time - 2
		Domain - app
		Path to config - ../app.cfg
		Path to exec - ../app.elf
		----------------------

		Starting VM...

		Finding domain id...
		Domain id = 7

		Running uniprof...

		Running nm to find symbols...

		Running symbolize to map addresses...

		Running stack collapse to format stack trace for Flame Graph...

		Running Flame Graph...

	EOF
	diff want out && [ -e domain ] && five_files
}
check "generate-flame-graph prints and writes what the script did" script

again() { # of a domain that runs: no second one, and it may be destroyed
	: >xl.log
	(cd work && timeout 120 "$U" generate-flame-graph --frequency 20 --time 1 -n app -c ../app.cfg \
		-x ../app.elf --destroy --target "gdb:unix=$T/xl.gdb") >out 2>err || {
		cat out err
		return 1
	}
	! grep -q create xl.log && [ ! -e domain ] && grep -q 'app is there already' err
}
[ -n "${UNISCOPE_ALL-}" ] || xl destroy 7
in_all check "generate-flame-graph takes a domain that is there" again

wrong_name() { # nothing is made that nobody would find
	: >xl.log
	(cd work && timeout 60 "$U" generate-flame-graph -n nope -c ../app.cfg -x ../app.elf) >out 2>err
	status=$?
	refused $status err 2 'domain app, and -n says nope' && ! grep -q create xl.log && [ ! -e domain ]
}
check "generate-flame-graph: -n is not the configuration's" wrong_name

# Domains that cannot be recorded, which is known at once: the file is no replay.
not_traced() { # what it made goes, what was there stays
	: >xl.log
	(cd work && timeout 60 "$U" generate-flame-graph -n app -c ../app.cfg -x ../app.elf \
		--target "replay:file=$T/none") >out 2>err
	status=$?
	grep -q 'destroy 7' xl.log && refused $status err 1 "$T/none" && [ ! -e domain ] || return
	xl create ../app.cfg && : >xl.log
	(cd work && timeout 60 "$U" generate-flame-graph -n app -c ../app.cfg -x ../app.elf \
		--target "replay:file=$T/none") >out 2>err
	[ $? -eq 1 ] && [ -e domain ] && ! grep -q destroy xl.log
	status=$?
	xl destroy 7
	return $status
}
echo -S >"$T/option"
echo x >"$T/none"
in_all check "generate-flame-graph: a domain that cannot be traced" not_traced

left_behind() { # the domain that could not be recorded
	: >xl.log
	(cd work && timeout 120 "$U" run --xl ../app.cfg -q -d 1 --target "replay:file=$T/none") >out 2>err
	status=$?
	refused $status err 1 "$T/none" && [ ! -e domain ] && grep -q destroy xl.log
}
check "run --xl destroys what it cannot record" left_behind
rm "$T/option"

ctrl_c() { # the recording is kept, the domain is not
	rm -rf work && mkdir work && : >xl.log
	(cd work && exec "$U" run --xl ../app.cfg -F 20 -d 0 --target "gdb:unix=$T/xl.gdb") >out 2>&1 &
	run=$!
	wait_for 60 test -s work/app.uniscope/guest-0/samples-vcpu0
	kill -INT $run
	wait $run
	cat out
	[ -d work/app.uniscope ] && [ -s work/app.svg ] && [ ! -e domain ] &&
		"$U" report work/app.uniscope | grep -q lab_entry
}
check "run --xl: Ctrl-C ends the recording, and the domain" ctrl_c

ctrl_c_early() { # while it waits for a guest that does not come up
	begin=$(date +%s)
	(cd work && timeout -s INT 3 "$U" run --xl ../app.cfg -q -d 1 --target "gdb:unix=$T/none") >out 2>&1
	cat out
	[ $(($(date +%s) - begin)) -lt 40 ] && [ ! -e domain ]
}
echo -S >"$T/option"
in_all check "run --xl: Ctrl-C before that, too" ctrl_c_early
rm "$T/option"

killed() { # SIGKILL: somebody is left who destroys the domain
	rm -rf work && mkdir work
	(cd work && exec "$U" run --xl ../app.cfg -q -d 0 --target "gdb:unix=$T/xl.gdb") >out 2>&1 &
	run=$!
	wait_for 60 test -e domain && wait_for 60 test -e work/app.uniscope && kill -9 $run || return
	wait $run 2>/dev/null
	wait_for 60 test ! -e domain
}
check "run --xl: SIGKILL leaves no domain" killed

there_already() { # somebody's: it is left alone
	xl create ../app.cfg && : >xl.log
	(cd work && timeout 60 "$U" run --xl ../app.cfg -q) >out 2>err
	status=$?
	refused $status err 1 'app is there already.*xl destroy app' && [ -e domain ] && ! grep create xl.log
	status=$?
	xl destroy 7
	return $status
}
check "run --xl: a domain of that name is there" there_already

xl_fails() {
	touch fail
	(cd work && timeout 60 "$U" run --xl ../app.cfg -q) >out 2>err
	status=$?
	rm fail
	refused $status err 1 'xl create failed (status 3).*libxl: error: no memory'
}
check "what xl says when it fails is passed on" xl_fails

wrong() { # WORDS OPTION...
	words=$1
	shift
	"$U" "$@" >out 2>err
	refused $? err 2 "$words"
}
check "domain 0 is refused" wrong 'domain 0' uniprof - 0
check "-s and -E exclude each other" wrong 'exclude each other' uniprof -s syms -E app.elf - 7
check "-F 0 is refused" wrong 'give up to 100000 Hz$' uniprof -F 0 - 7
check "-f 0 is refused" wrong 'give up to 100000 Hz$' generate-flame-graph -f 0 -n app -c app.cfg -x app.elf
"$U" uniprof -F 0 - 7 2>&1 | grep -e --exits >err
check "... and says nothing of an option that is not there" test ! -s err
check "-d and -f exclude each other" wrong 'exclude each other' xenctx -d 0x1000 -f 7
check "-b is 4 to 128" wrong '4 to 128' xenctx -b 3 7
check "-b is 4 to 128 (129)" wrong '4 to 128' xenctx -b 129 7
check "-C and a vCPU exclude each other" wrong 'names one' xenctx -C 7 1
check "generate-flame-graph needs a domain" wrong 'are needed' generate-flame-graph -f 5
check "--xl takes no image" wrong 'give its ELF with -e' run --xl app.cfg app.elf
check "a domain number is a domain" sh -c "'$U' stacks xen:dom=7 2>a; '$U' xenctx 7 2>b;
	sed 's/stacks/xenctx/' a | diff - b"
finish
