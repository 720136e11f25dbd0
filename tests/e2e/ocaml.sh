#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ocaml.sh UNISCOPE SRCROOT: guest/ports/ocaml in a Unix process on Debian's Lwt. The lost wake-up is found in
# what a program wrote, and is not there in the good run; off, it writes nothing. With dune, as a package. TAP.
set -u
U=$1 SRC=$2
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
. "$SRC/tests/support/can.sh"
command -v ocamlfind >/dev/null && command -v dune >/dev/null && ocamlfind query lwt.unix >/dev/null 2>&1 ||
	absent 'ocaml-findlib, ocaml-dune or liblwt-ocaml-dev is not installed'
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
cp "$SRC"/guest/ports/ocaml/m* "$SRC"/tests/e2e/ocaml_*.ml "$T" && cd "$T" && mv main_loop.unix.ml main_loop.ml ||
	exit 1
port='mprof_stubs.c mprof_unix_stubs.c main_loop.ml mProf.mli mProf.ml mProf_unix.mli mProf_unix.ml'
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
	ocamlfind "$2" -thread -package lwt.unix -linkpkg $3 $port ocaml_arp.ml -o "$1" >built 2>&1 &&
		[ ! -s built ] || { cat built; return 1; }
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
		last = {w[0]: name[w[1]] for w in m["waits"] if w[5] is None}
		asleep = "sleep 1000000000 us"
		assert (last.get(who["sleeper"]), last.get(who["napper"])) == (asleep, asleep), last
	EOF
}

# A loop that needs tail calls would not fit that stack.
wakes() {
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg $port ocaml_wakes.ml -o wakes &&
		(ulimit -s 1024; timeout 60 ./wakes wakes.ctf) &&
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
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg $port ocaml_many.ml -o many &&
		timeout 120 ./many many.ctf &&
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

# A library's source knows nothing of MProf: a flag of its compiler records who waits for whom.
opened() { # [FLAGS]
	opt="ocamlfind ocamlopt -thread -package lwt.unix"
	$opt -c "$@" ocaml_library.ml && $opt -linkpkg mprof_stubs.o mprof_unix_stubs.o main_loop.cmx mProf.cmx mProf_unix.cmx \
		ocaml_library.cmx ocaml_opened.ml -o opened && timeout 60 ./opened opened.ctf &&
		"$U" trace findings opened.ctf --busy 60000 --json >json
}

whole_library() {
	opened && python3 - 0 <json_ways.py && opened -open MProf.Traced && python3 - 1 <json_ways.py
}

cat >json_ways.py <<-'EOF'
	import json, sys
	m = json.load(open("json"))
	name = {p: text for p, _, text in reversed(m["labels"])}
	who = {text: p for p, text in name.items()}
	ways = [text[6:] for text in who if text.startswith("value ")]
	assert len(ways) == 12 and m["findings"] == [], (ways, m["findings"])
	waits = {(w[0], name.get(w[1])) for w in m["waits"]}
	told = [way for way in ways if (who[way], "value " + way) in waits]
	own = {w for w in waits if w[1] == "value async"}
	if sys.argv[1] == "0":
	    assert told == [] and own == set(), (told, own)
	else:
	    assert set(ways) - set(told) == {"async", "join", "pick"}, (told, waits)
	    assert {(who["join"], "join"), (who["pick"], "pick")} <= waits, waits
	    (waiter, _), = own
	    p = m["promises"][waiter]
	    assert (p["type"], p["creator"], p["fate"]) == ("async", who["async"], "resolved"), p
	    assert all(m["promises"][who[way]]["resolver"] == who[way] for way in told), m["promises"]
EOF

off() {
	timeout 60 ./arp good off.ctf off && ! "$U" trace threads off.ctf 2>err &&
		grep -q 'no events of waiting threads' err || { cat err; return 1; }
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
	ocamlfind ocamlopt -thread -package lwt.unix -linkpkg $port wrap.ml -o wrap && timeout 60 ./wrap &&
		"$U" trace findings wrap.ctf --json >json 2>err || return 1
	grep -q 'events are missing in 1 place' err || { cat err; return 1; }
	python3 - <<-'EOF'
		import json
		n = [c[2] for c in json.load(open("json"))["counters"]]
		assert len(n) > 60 and n == list(range(2001 - len(n), 2001)), n
	EOF
}

# As a package: it is installed, a fresh project names it, and the ring lies in the program. Read from the running
# process. A C file plays the clock of Solo5's bindings, at half speed.
package() {
	mkdir tree fresh && cp -r "$SRC"/dune "$SRC"/dune-project "$SRC"/uniscope-mprof.opam "$SRC"/guest "$SRC"/include tree &&
		(cd tree && dune build -p uniscope-mprof && dune install --prefix "$T/there" uniscope-mprof) >built 2>&1 &&
		! grep -i warning built || { cat built; return 1; }
	echo '(lang dune 2.9)' >fresh/dune-project
	cp ocaml_arp.ml fresh/app.ml && cp ocaml_ends.ml fresh/ends.ml || return 1
	cat >fresh/dune <<-'EOF'
		(executables
		 (names app ends)
		 (foreign_stubs (language c) (names clock))
		 (libraries uniscope-mprof uniscope-mprof.unix lwt.unix))
	EOF
	cat >fresh/clock.c <<-'EOF'
		#include <stdint.h>
		#include <time.h>
		uint64_t solo5_clock_monotonic(void);
		uint64_t solo5_clock_monotonic(void)
		{
			struct timespec t;
			(void)clock_gettime(CLOCK_MONOTONIC, &t);
			return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) / 2;
		}
	EOF
	(cd fresh && OCAMLPATH="$T/there/lib" dune build ./app.exe ./ends.exe) && cp fresh/_build/default/*.exe . &&
		mv app.exe app && mv ends.exe ends
}

# Without the port: who waits, and where each will go on, from the heap. The lines of the source are the book.
plain() {
	echo 'let sleepers : (int64 * bool * unit Lwt.u) list ref = ref []' >solo5_os__Time.ml
	ocamlfind ocamlopt -g -thread -package lwt.unix -linkpkg solo5_os__Time.ml ocaml_plain.ml -o plain || return 1
	waits_for_input plain || return 1
	timeout 60 "$U" stacks --threads "proc:pid=$program" -e plain --lines --json >stacks &&
		timeout 60 "$U" record --threads "proc:pid=$program,via=stop" -e plain -d 0.5 -o plain.uniscope
	status=$?
	ends && timeout 60 "$U" report plain.uniscope --off-cpu --tree >waiting || { cat stacks; return 1; }
	python3 - <<-'EOF'
		import json, re
		line = {n: re.findall(r"\(\* (\w+) \*\)$", text) for n, text in enumerate(open("ocaml_plain.ml"), 1)}
		of = lambda f: line[f["line"]][0] if f["file"].endswith("ocaml_plain.ml") else "Lwt_stream"
		got = []
		for s in json.load(open("stacks"))["stacks"]:
		    if "thread" in s:
		        got.append((s["state"], s.get("waits_for"), *[of(f) for f in s["frames"]]))
		print(*got, sep="\n")
		assert sorted(got, key=str) == sorted([
		    ("blocked", "a queue", "take", "request", "serve", "kept", "handler"),
		    ("blocked", "a promise", "ask"), ("blocked", "a queue", "watch"), ("sleeping", None, "doze"), ("sleeping", None, "nap"),
		    ("blocked", "a promise", "Lwt_stream", "read"),
		    next(g for g in got if g[2:] == ("listen",)),
		], key=str)
		# Each waits at each tick.
		tree = open("waiting").read()
		shares = re.findall(r"^ *([\d.]+)% +([\d.]+)% +\|  \[(\w+)\]", tree, re.M)
		assert [s[0] for s in shares] == ["14.29"] * 7, tree
		assert sorted(s[2] for s in shares) == ["blocked"] * 5 + ["sleeping"] * 2, tree
	EOF
}

waits_for_input() { # PROGRAM: bad, into the ring; its pid is in $program
	rm -f in
	mkfifo in && exec 9<>in || return 1
	: >said
	"./$1" bad ring <in >said 2>&1 &
	program=$!
	until grep -q done said; do
		kill -0 $program 2>/dev/null || { cat said; return 1; }
		sleep 0.1
	done
}

has_lost_wakeup() { # TRACE
	"$U" trace findings "$1" --busy 60000 >found || return 1
	for words in '^lost wake-up: tcp waits for arp reply' '^never resolved: tcp connection'; do
		grep -q "$words" found || { cat found; return 1; }
	done
}

ends() { # the program, and the command with status $status
	echo >&9
	wait $program && [ $status -eq 0 ]
}

ring() {
	waits_for_input app || return 1
	timeout 60 "$U" trace dump "proc:pid=$program" -e app -o ring.uniscope >dumped 2>&1
	status=$?
	ends || { cat dumped; return 1; }
	has_lost_wakeup ring.uniscope || return 1
	"$U" trace findings ring.uniscope --json >json && python3 - <<-'EOF'
		import json
		m = json.load(open("json"))
		name = {p: text for p, _, text in reversed(m["labels"])}
		sleeps = [w for w in m["waits"] if name.get(w[0]) == "httpd"]
		assert [name[w[1]] for w in sleeps] == ["sleep 1000 us"] * 20, sleeps
		assert all(w[4] - w[3] > 500000 for w in sleeps), sleeps
		assert [name[w[1]] for w in m["waits"] if name.get(w[0]) == "dhcp"] == ["a promise"], m["waits"]
		assert [name[w[1]] for w in m["waits"] if name.get(w[0]) == "tcp"][1:] == ["arp reply"], m["waits"]
		assert {"hiatus", "gc"} <= {p[0] for p in m["pauses"]}, m["pauses"]
		trace = json.load(open("ring.uniscope/session.json"))["guests"][0]["trace"]
		twice = trace["tsc_hz"] / trace["cpus"][0]["clock"]["hz"]
		assert 1.8 < twice < 2.2, trace
	EOF
}

# The last thing that a thread does is to wait, for what has no name.
last_waits() {
	waits_for_input ends || return 1
	timeout 60 "$U" trace dump "proc:pid=$program" -e ends -o ends.uniscope >dumped 2>&1
	status=$?
	ends || { cat dumped; return 1; }
	"$U" trace findings ends.uniscope --json >json && python3 - <<-'EOF'
		import json
		m = json.load(open("json"))
		name = {p: text for p, _, text in reversed(m["labels"])}
		waits = {name[w[0]]: name[w[1]] for w in m["waits"] if w[5] is None}
		assert waits == dict.fromkeys(("sleeps", "pauses", "waits", "locks"), "a promise"), waits
	EOF
}

# The thread hangs before the recording begins. The program goes on telling its threads after it.
record_held() {
	waits_for_input app || return 1
	for again in 1 2; do
		timeout 60 "$U" trace record "proc:pid=$program" -e app --threads -d 0.2 -o held$again.uniscope >recorded 2>&1
		status=$?
		[ $status -eq 0 ] || break
	done
	ends || { cat recorded; return 1; }
	has_lost_wakeup held1.uniscope && has_lost_wakeup held2.uniscope || { cat recorded; return 1; }
	"$U" trace threads held2.uniscope >threads || return 1
	for thread in netif tcp httpd; do
		grep -q "$thread" threads || { cat threads; return 1; }
	done
}

# Without a recording: who waits, and for what, from the table that the package keeps. They have no stacks: a sample tells that
# a thread waits.
waits_now() {
	waits_for_input app || return 1
	timeout 60 "$U" stacks --threads "proc:pid=$program" -e app >stacks 2>err
	status=$?
	timeout 60 "$U" record --threads "proc:pid=$program" -e app -d 0.5 -o told.uniscope --overwrite 2>said || status=1
	ends || { cat stacks err said; return 1; }
	cat stacks err said
	grep -q '^thread [0-9]* tcp (blocked on arp reply)$' stacks && grep -q '^vCPU 0' stacks && ! grep -q httpd stacks || return 1
	"$U" export told.uniscope --off-cpu -f folded >waits && cat waits && grep -x 'thread tcp;\[blocked\] [0-9]*' waits &&
		! grep -v '^thread [a-z0-9]*;\[\(blocked\|sleeping\)\] ' waits
}

# Dead: its core has what it told, in seconds of a counter that the program has measured itself.
dead() {
	sed -i '/foreign_stubs/d' fresh/dune && rm fresh/clock.c &&
		(cd fresh && OCAMLPATH="$T/there/lib" dune build ./app.exe) && cp -f fresh/_build/default/app.exe app || return 1
	waits_for_input app || return 1
	gcore -o core $program >cored 2>&1
	status=$?
	ends || { cat cored; return 1; }
	"$U" trace dump "core:file=core.$program" -e app -o core.uniscope 2>err && has_lost_wakeup core.uniscope || { cat err; return 1; }
	"$U" mirage-trace-viewer -d "core:file=core.$program" -e app >viewed 2>err && grep '^lost wake-up: tcp waits for arp reply' viewed &&
		"$U" trace mirage -q "core:file=core.$program" --image app -o core.ctf 2>err && has_lost_wakeup core.ctf ||
		{ cat err; return 1; }
	"$U" trace findings core.uniscope --json >json 2>err && ! grep 'frequency .* is not known' err && python3 - <<-'EOF'
		import json
		m = json.load(open("json"))
		name = {p: text for p, _, text in reversed(m["labels"])}
		sleeps = [w[4] - w[3] for w in m["waits"] if name.get(w[0]) == "httpd"]
		assert len(sleeps) == 20 and 900000 < min(sleeps) < 100000000, sleeps
	EOF
}

check 'it builds without a word' build arp ocamlopt '-ccopt -Wall -ccopt -Wextra'
check 'the lost wake-up of the bad run' bad arp
check 'the good run has none' good arp
check 'its books' books
check 'who is woken in the midst of another, fails or is cancelled' wakes
check 'tens of thousands, each found again' many
check 'a library on plain Lwt, by a flag of its compiler' whole_library
check 'off, nothing is written' off
check 'as bytecode' build arp.byte ocamlc -custom
check 'the same is found' bad arp.byte
check 'and the good run has none' good arp.byte
check 'a full buffer keeps what is newest' wraps
if [ "$(uname -m)" = x86_64 ]; then
	check 'who waits in a program without the port' plain
	check 'it is a package' package
	check 'into the ring that it brings' ring
	check 'the last wait of a thread' last_waits
	check 'a recording has what the ring held before' record_held
	check 'who waits now' waits_now
	check 'a core of it has seconds' dead
fi
echo "1..$n"
