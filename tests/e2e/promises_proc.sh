#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# promises_proc.sh UNISCOPE BUILD: threads and promises of a process that tells of these alone. TAP.
set -u
U=$1 BUILD=$2
. "$(dirname "$0")/ahead.sh"
T=$(mktemp -d) || exit 1
n=0 pid='' recorder=''
end() {
	for p in $recorder $pid; do
		kill -9 "$p" 2>/dev/null
		wait "$p" 2>/dev/null
	done
	pid='' recorder=''
}
trap 'end; rm -rf "$T"' EXIT
trap 'exit 130' INT TERM

# shellcheck source=tests/support/tap.sh
. "$(dirname "$0")/../support/tap.sh"

wait_for() { # COMMAND...
	for _ in $(seq 300); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

run() { # TURNS [MS]
	run_program procthreads "$1" "${2:-0}"
}

run_program() { # PROGRAM ARGUMENT...
	end
	rm -f "$T/in" "$T/out"
	mkfifo "$T/in"
	program=$1
	shift
	"$BUILD/tests/e2e/$program" "$@" <"$T/in" >"$T/out" &
	pid=$!
	exec 9>"$T/in"
	wait_for grep -q ready "$T/out"
}

# Said and refused, and nothing is left behind.
refused() { # WORDS COMMAND...
	words=$1
	shift
	timeout 60 "$@" >"$T/said" 2>&1
	[ $? = 1 ] && grep -q "$words" "$T/said" && return 0
	cat "$T/said"
	return 1
}

recorded() {
	run 1 || return 1
	rm -f "$T/said"
	"$U" trace record "proc:pid=$pid" --threads -d 0 -o "$T/s.uniscope" --overwrite 2>"$T/said" &
	recorder=$!
	wait_for grep -q 'events of threads are recorded, and no function is traced' "$T/said" || { cat "$T/said"; return 1; }
	echo >&9
	wait_for grep -q done "$T/out" || return 1
	sleep 0.3
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
	recorder=
	grep -q "^uniscope: 13 events of threads of 1 CPU, 0 lost" "$T/said" || { cat "$T/said"; return 1; }
	! grep -q "the guest's own: the relation of its counter" "$T/said" || { cat "$T/said"; return 1; }
	"$U" trace threads "$T/s.uniscope" --json >"$T/json" && python3 - "$T/json" <<-'P' || return 1
		import json, sys
		m = json.load(open(sys.argv[1]))
		victim = [t for t in m["threads"] if t["name"] == "victim"][0]
		print(m["duration_ns"], victim)
		# It was silent for 0.3 s at the end, and that is of the trace as well.
		assert m["duration_ns"] >= 3e8 and m["lost_at_most"] is False
	P
	"$U" trace threads "$T/s.uniscope" >"$T/threads" && for name in hog victim request; do
		grep -q " $name\( \|\$\)" "$T/threads" || { cat "$T/threads" "$T/said"; return 1; }
	done
}

turns() { # MS: one long turn of hog is recorded, of which nothing is heard
	run 1 "$1" || return 1
	rm -f "$T/said"
	"$U" trace record "proc:pid=$pid" --threads -d 0 -o "$T/t.uniscope" --overwrite 2>"$T/said" &
	recorder=$!
	wait_for grep -q 'events of threads are recorded, and no function is traced' "$T/said" || { cat "$T/said"; return 1; }
	echo >&9
	wait_for grep -q done "$T/out" || return 1
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
	recorder=
	"$U" trace findings "$T/t.uniscope" --json >"$T/json" && "$U" trace findings "$T/t.uniscope" >"$T/found"
}

starves() { # it computed: the host gave it the CPU, which makes a finding of what is in doubt otherwise
	turns 1500 || return 1
	grep -q '^starved: victim could run .*, while hog ran$' "$T/found" &&
		grep -q '^    the host gave the guest a CPU for ' "$T/found" || { cat "$T/found"; return 1; }
	python3 - "$T/json" "$T/t.uniscope/session.json" <<-'P' || return 1
		import json, sys
		m, s = (json.load(open(f)) for f in sys.argv[1:])
		f = m["findings"]
		print(f, m["doubts"])
		assert [x["kind"] for x in f] == ["starved"] and not m["doubts"]
		assert 1e8 <= f[0]["on_cpu"] <= f[0]["ns"] and f[0]["silent"] >= 1e9, f
		trace = s["guests"][0]["trace"]
		assert len(trace["on_cpu"]) > 2
		del trace["on_cpu"]
		json.dump(s, open(sys.argv[2], "w"))
	P
	in_doubt
}

in_doubt() {
	"$U" trace findings "$T/t.uniscope" >"$T/found" && [ "$(sed -n 1p "$T/found")" = 'no certain finding' ] &&
		grep -q '^in doubt: starved by a thread, or the host took the CPU' "$T/found" || { cat "$T/found"; return 1; }
}

sleeps() { # nobody can tell this from a host that is busy
	turns -1500 && in_doubt
}

stretched() { # an end that cannot be is told, and stretches nothing
	cat >"$T/stretch.py" <<-'P'
		import json, sys
		name = sys.argv[1] + "/session.json"
		s = json.load(open(name))
		g = s["guests"][0]
		day = 86400 * 10**9
		if sys.argv[2] == "yet":
		    g["statistics"]["end_ns"] += 1000 * day
		g["trace"]["end_ns"] = {"late": g["statistics"]["end_ns"] + 1, "yet": g["statistics"]["end_ns"],
		                        "early": g["statistics"]["begin_ns"] - 1, "open": g["trace"]["end_ns"]}[sys.argv[2]]
		if sys.argv[2] == "open":
		    s["state"] = "open"
		json.dump(s, open(name, "w"))
	P
	"$U" trace threads "$T/s.uniscope" --json >"$T/whole" 2>"$T/said" && ! grep 'is not used' "$T/said" || return 1
	for how in late yet early open; do
		rm -rf "$T/e.uniscope" && cp -r "$T/s.uniscope" "$T/e.uniscope" && python3 "$T/stretch.py" "$T/e.uniscope" $how || return 1
		"$U" trace threads "$T/e.uniscope" --json >"$T/json" 2>"$T/said" || { cat "$T/said"; return 1; }
		case $how in
		late) why='that is after its end' ;;
		yet) why='that is yet to come' ;;
		early) why='that is before it was begun' ;;
		open) why='the session was never closed' ;;
		esac
		grep -q "the end of the trace is not used (trace.end_ns [0-9]*): $why; the trace ends with its last event" \
			"$T/said" || { echo "$how"; cat "$T/said"; return 1; }
		python3 -c 'import json, sys
a, b = (json.load(open(f))["duration_ns"] for f in sys.argv[1:])
print(a, b)
sys.exit(not a <= b - 3e8)' "$T/json" "$T/whole" || return 1
	done
}

switched() { # start and stop; what is off tells nothing
	run 1 && "$U" trace start "proc:pid=$pid" --threads && "$U" trace stop "proc:pid=$pid" || return 1
	echo >&9
	wait_for grep -q done "$T/out" || return 1
	"$U" trace dump "proc:pid=$pid" -q -o "$T/off.uniscope" &&
		refused 'has no events of waiting threads' "$U" trace findings "$T/off.uniscope"
}

several() { # of one name: it is said which one was taken
	run 3 && "$U" trace start "proc:pid=$pid" --threads || return 1
	echo >&9
	wait_for grep -q done "$T/out" && "$U" trace dump "proc:pid=$pid" -q -o "$T/n.uniscope" || return 1
	"$U" trace why "$T/n.uniscope" request >"$T/why" 2>"$T/said" &&
		grep -q "^uniscope: 3 are called 'request', and this is the newest, 0x5: " "$T/said" || {
		cat "$T/said" "$T/why"
		return 1
	}
	# Its counter is the host's, also where it does not tell how fast that goes; its silence is of the trace.
	! grep 'ticks of it' "$T/said" || return 1
	sleep 0.4
	"$U" trace dump "proc:pid=$pid" -q -o "$T/later.uniscope" && for s in n later; do
		"$U" trace threads "$T/$s.uniscope" --json >"$T/$s.json" || return 1
	done
	python3 -c 'import json, sys
a, b = (json.load(open(f))["duration_ns"] for f in sys.argv[1:])
print(a, b)
sys.exit(b < a + 4e8)' "$T/n.json" "$T/later.json"
}

missing() { # HOW: what is missing is told
	for query in findings threads; do
		"$U" trace $query "$T/w.uniscope" >/dev/null 2>"$T/said" &&
			grep -q "^uniscope: $1[0-9]* events are missing in " "$T/said" || { cat "$T/said"; return 1; }
	done
	"$U" trace findings "$T/w.uniscope" --json 2>/dev/null >"$T/json"
}

overwritten() { # it is counted to the event; of an older guest only the words are known
	run 200000 && "$U" trace start "proc:pid=$pid" --threads || return 1
	echo >&9
	wait_for grep -q done "$T/out" && "$U" trace dump "proc:pid=$pid" -q -o "$T/w.uniscope" || return 1
	missing '' && python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))
print(m["events"], m["lost"], m["gaps"], m["lost_at_most"])
sys.exit(not (m["events"] + m["lost"] == 4 + 9 * 200000 and m["gaps"] > 0 and m["lost_at_most"] is False))' "$T/json" || return 1
	python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
s["guests"][0]["trace"]["lost_is_exact"] = False
json.dump(s, open(sys.argv[1], "w"))' "$T/w.uniscope/session.json" || return 1
	missing 'at most ' && python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))
print(m["lost"], m["gaps"], m["lost_at_most"])
sys.exit(not (m["lost"] > 200000 and m["gaps"] > 0 and m["lost_at_most"] is True))' "$T/json"
}

functions() { # need what the program has not
	run 1 && refused 'no function that can be traced' "$U" trace record "proc:pid=$pid" --threads \
		--filter turn -d 1 -o "$T/none.uniscope" &&
		refused 'no function that can be traced' "$U" trace record "proc:pid=$pid" -d 1 -o "$T/none.uniscope" &&
		[ ! -e "$T/none.uniscope" ] || { ls "$T/none.uniscope"; return 1; }
	# And nothing is replaced by nothing.
	refused 'no function that can be traced' "$U" trace record "proc:pid=$pid" -d 1 -o "$T/s.uniscope" --overwrite &&
		"$U" trace threads "$T/s.uniscope" | cmp - "$T/threads"
}

locks() { # of real threads and mutexes: who had them and who waited, to the hold, for as long as their books say
	run_program proclocks 60 || return 1
	rm -f "$T/said"
	"$U" trace record "proc:pid=$pid" --threads -d 0 -o "$T/l.uniscope" --overwrite 2>"$T/said" &
	recorder=$!
	wait_for grep -q 'events of threads are recorded, and no function is traced' "$T/said" || { cat "$T/said"; return 1; }
	echo >&9
	wait_for grep -q done "$T/out" || return 1
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
	recorder=
	"$U" trace replay "$T/l.uniscope" >"$T/replay" 2>"$T/said" || { cat "$T/said"; return 1; }
	"$U" trace findings "$T/l.uniscope" --busy 60000 --json >"$T/json" &&
		"$U" trace findings "$T/l.uniscope" --busy 60000 >"$T/found" || return 1
	python3 - "$T/json" "$T/out" "$T/found" "$T/replay" <<-'P'
		import json, re, sys
		m = json.load(open(sys.argv[1]))
		name = {p: text for p, _, text in reversed(m["labels"])}
		who = {"alpha": 1, "beta": 2, "gamma": 3}
		thread = lambda p: who[name[p]]
		lock = lambda p: 0 if name.get(p) == "disk" else 1
		assert m["lost"] == m["gaps"] == 0 and m["begin_known"] and not m["findings"], m["findings"]
		assert all(m["promises"][h[0]]["type"] == "lock" for h in m["holds"])
		seen, book = {}, {}
		for p, owner, a, b in m["holds"]:
		    seen.setdefault(("hold", lock(p), thread(owner)), []).append(b - a)
		for w, p, waker, a, ready, b in m["waits"]:
		    assert a <= ready <= b, (a, ready, b)
		    seen.setdefault(("wait", lock(p), thread(w)), []).append(b - a)
		    had = [h for h in m["holds"] if h[0] == p and h[2] <= a < h[3]]
		    assert len(had) == 1 and thread(had[0][1]) != thread(w), (w, had)
		    gave = [h for h in m["holds"] if h[0] == p and h[3] == ready]
		    assert [h[1] for h in gave] == [waker], (gave, waker)
		for line in open(sys.argv[2]):
		    if line.startswith(("hold", "wait")):
		        kind, *rest = line.split()
		        k, t, low, high = map(int, rest)
		        book.setdefault((kind, k, t), []).append((low, high))
		assert set(seen) == set(book) and sum(map(len, book.values())) == 60 * 5, (seen.keys(), book.keys())
		for key, lines in book.items():
		    assert len(seen[key]) == len(lines), key
		    for ns, (low, high) in zip(seen[key], lines):
		        slack = 200 + ns / 1000  # two clocks
		        assert low - slack <= ns <= high + slack, (key, ns, low, high)
		# The same as text: sums of each lock, and whoever had it longest while others waited.
		text = open(sys.argv[3]).read()
		for k in 0, 1:
		    row = re.search(r"^ +\S+ \S+ +(\d+) +\S+ \S+ +\S+ \S+ +(\d+) +\S+ \S+  " + ("disk" if k == 0 else r"locks\+0x28") , text, re.M)
		    assert row, text
		    assert [int(x) for x in row.groups()] == [sum(len(v) for (kind, l, _), v in book.items() if (kind, l) == (of, k))
		                                              for of in ("wait", "hold")], (row.groups(), text)
		# Between the calls of a replay, each in its place.
		said = re.findall(r"\|  /\* (\w+) (has|waits for) ([^ ,]+)(?:, which (\w+) has)? \*/$", open(sys.argv[4]).read(), re.M)
		variable = lambda p: name.get(p, "locks+0x28")
		told = sorted([(h[2], (name[h[1]], "has", variable(h[0]), "")) for h in m["holds"]] +
		              [(w[3], (name[w[0]], "waits for", variable(w[1]),
		                       [name[h[1]] for h in m["holds"] if h[0] == w[1] and h[2] <= w[3] < h[3]][0])) for w in m["waits"]])
		assert len(said) == 300, len(said)
		for t in who:
		    assert [x for x in said if x[0] == t] == [x for _, x in told if x[0] == t], (said[:9], told[:9])
		assert re.search(r"^ +\S+ ms   (alpha|beta|gamma) waited while (alpha|beta|gamma) had it$", text, re.M), text
	P
}

hangs() { # each has the other's lock since before the recording: the guest's table tells, and gdb agrees
	run_program proclocks hang || return 1
	"$U" trace record "proc:pid=$pid" --threads -d 1 -o "$T/h.uniscope" --overwrite 2>"$T/said" || { cat "$T/said"; return 1; }
	"$U" trace findings "$T/h.uniscope" >"$T/found" || return 1
	grep -q '^deadlock: \(alpha waits for locks+0x28, which is held by beta, which waits for disk, which is held by alpha\|beta waits for disk, which is held by alpha, which waits for locks+0x28, which is held by beta\)$' "$T/found" &&
		grep -q '    earlier     disk is held by alpha since then$' "$T/found" &&
		grep -q ' beta waits for disk, which alpha holds$' "$T/found" || { cat "$T/found"; return 1; }
	"$U" trace why "$T/h.uniscope" alpha --json >"$T/json" && python3 - "$T/json" <<-'P'
		import json, sys
		steps = [(s["kind"], s["who"]["name"]) for s in json.load(open(sys.argv[1]))["steps"]]
		assert [k for k, _ in steps] == ["waits", "held", "waits", "held", "circle"], steps
		assert [n for _, n in steps][2:] == ["beta", "disk", "alpha"], steps
	P
}

check 'only its threads are recorded' recorded
check 'who had which lock, and who waited for whom' locks
check 'two that have the lock of the other are found, although they hang since before' hangs
check 'who computes for long starves others' starves
check 'who had no CPU for long may not' sleeps
check 'an end that cannot be stretches no trace' stretched
check 'only its threads are switched on, and off' switched
check 'of several with one name' several
check 'what was overwritten is counted' overwritten
check 'functions it has not are refused, and leave no folder' functions
echo "1..$n"
