#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ocaml.sh UNISCOPE SRCROOT: guest/ports/ocaml in a Unix process on Debian's Lwt. The lost wake-up is found in
# what a program wrote, and is not there in the good run; off, it writes nothing. TAP.
set -u
U=$1 SRC=$2
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
. "$SRC/tests/support/can.sh"
command -v ocamlfind >/dev/null && ocamlfind query lwt.unix >/dev/null 2>&1 ||
	absent 'ocaml-findlib or liblwt-ocaml-dev is not installed'
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
cp "$SRC"/guest/ports/ocaml/m* "$SRC"/tests/e2e/ocaml_*.ml "$T" && cd "$T" || exit 1
n=0

check() { # WHAT COMMAND...
	n=$((n + 1)) what=$1
	shift
	if "$@" >check 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' check
	fi
}

build() { # OUTPUT COMPILER [OPTIONS]
	ocamlfind "$2" -thread -package lwt.unix -linkpkg $3 mprof_stubs.c mProf.mli mProf.ml mProf_unix.mli \
		mProf_unix.ml ocaml_arp.ml -o "$1" >built 2>&1 && [ ! -s built ] || { cat built; return 1; }
}

bad() { # PROGRAM
	timeout 60 "./$1" bad bad.ctf && "$U" trace findings bad.ctf --busy 60000 >found || return 1
	for words in '^lost wake-up: tcp waits for arp reply, which was signalled too early$' \
		'  netif signalled arp reply: nobody waited for it$' \
		'  tcp began to wait for it, .* later$' \
		'^never resolved: tcp connection should have been'; do
		grep -q "$words" found || { echo "no '$words'"; cat found; return 1; }
	done
}

good() { # PROGRAM
	timeout 60 "./$1" good good.ctf && "$U" trace findings good.ctf --busy 60000 >found || return 1
	[ "$(sed -n 1p found)" = 'no finding' ] || { cat found; return 1; }
}

books() { # of the good run, to the event
	"$U" trace findings good.ctf --json >json && python3 - <<-'EOF'
		import json
		m = json.load(open("json"))
		name = {p: text for p, _, text in reversed(m["labels"])}
		who = {text: p for p, text in name.items()}
		of = lambda text: m["promises"][who[text]]
		assert of("tcp connection")["resolver"] == who["tcp"] and of("tcp connection")["should_resolve"]
		assert of("arp request sent")["resolver"] == who["netif"], of("arp request sent")
		assert of("dhcp")["fate"] == "failed" and "no route" in of("dhcp")["failure"]
		assert [c[2] for c in m["counters"]] == list(range(1, 21))
		assert (of("frames")["type"], of("arp reply")["type"]) == ("mvar", "condition")
		assert any(w[:3] == [who["tcp"], who["arp reply"], who["netif"]] for w in m["waits"]), m["waits"]
		assert sum(r[0] == who["httpd"] for r in m["runs"]) >= 20
		assert any(l[2] == "sends who-has" and l[0] == who["netif"] for l in m["labels"])
		assert any(p[0] == "gc" for p in m["pauses"]) and any(p[0] == "hiatus" for p in m["pauses"])
		assert m["gaps"] == 0
	EOF
}

# A loop that needs tail calls would not fit that stack.
wakes() {
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg mprof_stubs.c mProf.mli mProf.ml mProf_unix.mli \
		mProf_unix.ml ocaml_wakes.ml -o wakes && (ulimit -s 1024; timeout 60 ./wakes wakes.ctf) &&
		"$U" trace findings wakes.ctf --busy 60000 --json >json && python3 - <<-'EOF'
		import json
		m = json.load(open("json"))
		name = {p: text for p, _, text in reversed(m["labels"])}
		who = {text: p for p, text in name.items()}
		of = lambda text: m["promises"][who[text]]
		assert m["findings"] == [], m["findings"]
		assert of("answer")["resolver"] == who["server"], of("answer")
		ended = "client", "user", "server", "session", "looping", "lookup", "fetch"
		assert [t for t in ended if of(t)["resolver"] != who[t]] == []
		assert all(p["chain"] <= 1 for i, p in enumerate(m["promises"]) if name.get(i) == "session")
		assert of("dns reply")["resolver"] == who["breaker"]
		failed = "dns reply", "lookup", "fetch"
		assert all(of(t)["fate"] == "failed" and "no route" in of(t)["failure"] for t in failed)
		assert (of("lookup")["chain"], of("fetch")["chain"]) == (1, 2)
		assert of("patient")["fate"] == "failed"
		assert all(w[5] is not None for w in m["waits"]), m["waits"]
	EOF
}

many() {
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg mprof_stubs.c mProf.mli mProf.ml mProf_unix.mli \
		mProf_unix.ml ocaml_many.ml -o many && timeout 120 ./many many.ctf &&
		"$U" trace findings many.ctf --busy 60000 --json >json && python3 - <<-'EOF'
		import collections, json
		m = json.load(open("json"))
		assert m["gaps"] == 0 and m["findings"] == [], m["findings"][:3]
		name = {p: text for p, _, text in reversed(m["labels"])}
		of = collections.defaultdict(list)
		for i, p in enumerate(m["promises"]):
		    of[name.get(i)].append(i)
		waits = collections.defaultdict(list)
		for w in m["waits"]:
		    assert w[4] is not None or name[w[0]] == "impatient", w
		    waits[w[0]].append(w)
		assert len(of["user"]) == len(of["value"]) == len(of["forgotten"]) == 30000
		assert all(m["promises"][i]["fate"] == "failed" for i in of["forgotten"])
		for i, (user, value) in enumerate(zip(of["user"], of["value"])):
		    assert [w[1] for w in waits[user]] == [value, of["go"][0]], (i, waits[user])
		    assert m["promises"][user]["resolver"] == user
		ready = lambda who: [w[4] for w in waits[of[who][0]]]
		end = {p: m["promises"][of[p][0]]["end"] for p in ("ringer", "emptier")}
		for first, second, by in (("sleeper0", "sleeper1", "ringer"), ("taker0", "taker1", "ringer"),
		                          ("putter0", "putter1", "emptier")):
		    (a,), (b,) = ready(first), ready(second)
		    assert a < b <= end[by], (first, a, b)
		    assert [w[2] for who in (first, second) for w in waits[of[who][0]]] == [of[by][0]] * 2, first
		assert all(w[4] is None for i in of["impatient"] for w in waits[i]) and len(of["impatient"]) == 1000
	EOF
}

off() {
	timeout 60 ./arp good off.ctf off && ! "$U" trace threads off.ctf 2>err &&
		grep -q 'no events of threads' err || { cat err; return 1; }
}

# More than the buffer holds: the newest part of it, in order, each event whole.
wraps() {
	cat >wrap.ml <<-'EOF'
		let log = MProf_unix.start ~size:5000 "wrap.ctf"
		let () =
		  for i = 1 to 2000 do MProf.Trace.note_counter_value "n" i done;
		  MProf.Trace.label (String.make 5000 'x');
		  assert (MProf.Trace.Control.lost log = 1);
		  assert (MProf.Trace.Control.has_ring () = false);
		  (try MProf.Trace.Control.start_ring (); assert false with Failure _ -> ());
		  let w, _ = MProf.Trace.named_wait "last" in
		  ignore w;
		  MProf.Trace.Control.stop log
	EOF
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg mprof_stubs.c mProf.mli mProf.ml mProf_unix.mli \
		mProf_unix.ml wrap.ml -o wrap && timeout 60 ./wrap && "$U" trace findings wrap.ctf --json >json 2>err ||
		return 1
	grep -q 'events are missing in 1 place' err || { cat err; return 1; }
	python3 - <<-'EOF'
		import json
		n = [c[2] for c in json.load(open("json"))["counters"]]
		assert len(n) > 60 and n == list(range(2001 - len(n), 2001)), n
	EOF
}

# Into the tracer's rings instead, as a unikernel would; read from the running process.
ring() {
	cat >ring_init.c <<-'EOF'
		#include <caml/mlvalues.h>
		#include "uniscope/trace.h"
		static unsigned char memory[4 << 20];
		value arp_ring_init(value unit)
		{
			(void)unit;
			return Val_bool(uni_trace_init(memory, sizeof(memory), 1, 0, UNI_TRACE_OVERWRITE, 0) == 0);
		}
	EOF
	{
		echo 'external ring_init : unit -> bool = "arp_ring_init"'
		echo 'let () = assert (ring_init ())'
		cat ocaml_arp.ml
	} >arp_ring.ml
	for f in ring.c promise.c x86_64/machine.c x86_64/hooks.S; do
		cc -c -O2 -g -ffreestanding -fno-stack-protector -fno-pic -mgeneral-regs-only -I"$SRC/include" \
			-I"$SRC/guest" -I"$SRC/guest/x86_64" "$SRC/guest/$f" -o "g_$(basename "$f").o" || return 1
	done
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg -ccopt "-no-pie -DUNI_MPROF_RING -I$SRC/include" \
		g_*.o ring_init.c mprof_stubs.c mProf.mli mProf.ml mProf_unix.mli mProf_unix.ml arp_ring.ml \
		-o arp_ring || return 1
	mkfifo in && exec 9<>in
	: >said
	./arp_ring bad ring <in >said 2>&1 &
	program=$!
	for _ in $(seq 600); do
		grep -q done said && break
		kill -0 $program 2>/dev/null || break
		sleep 0.1
	done
	cat said
	timeout 60 "$U" trace dump "proc:pid=$program" -e arp_ring -q -w - >stream
	status=$?
	echo >&9
	wait $program && [ $status -eq 0 ] || return 1
	"$U" trace findings - --busy 60000 <stream >found || return 1
	for words in '^lost wake-up: tcp waits for arp reply' '^never resolved: tcp connection'; do
		grep -q "$words" found || { cat found; return 1; }
	done
}

check 'it builds without a word' build arp ocamlopt '-ccopt -Wall -ccopt -Wextra'
check 'the lost wake-up of the bad run' bad arp
check 'the good run has none' good arp
check 'its books' books
check 'who is woken in the midst of another, fails or is cancelled' wakes
check 'tens of thousands, each found again' many
check 'off, nothing is written' off
check 'as bytecode' build arp.byte ocamlc -custom
check 'the same is found' bad arp.byte
check 'and the good run has none' good arp.byte
check 'a full buffer keeps what is newest' wraps
if [ "$(uname -m)" = x86_64 ]; then
	check 'into the rings of the tracer' ring
fi
echo "1..$n"
