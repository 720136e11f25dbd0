#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# promises.sh UNISCOPE BUILD SRCROOT: threads and promises from outside. The guest `arp` has MirageOS' lost wake-up, or has it not.
# The bad run's finding names both threads and the order; the good run has none (but a busy host may starve anybody). Both are
# recorded live as well as from the flight recorder. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"

dumped() { # what the flight recorder holds
	go_on '^arp: ' && timeout 60 "$U" trace dump "$target" -e "$elf" -q -o "$T/s.uniscope" --overwrite
}

recorded() { # live, from before the first event on; no function is traced
	rm -f "$T/said"
	"$U" trace record "$target" -e "$elf" -d 0 --threads -o "$T/s.uniscope" --overwrite 2>"$T/said" &
	recorder=$!
	if ! wait_for 60 grep -q '^uniscope: events of threads are recorded, and no function' "$T/said"; then
		kill "$recorder"
		cat "$T/said"
		return 1
	fi
	go_on '^arp: '
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
	grep -q 'try `uniscope trace findings ' "$T/said" || { cat "$T/said"; return 1; }
}

# The same answers as JSON.
asked_by_program() {
	python3 - "$T/threads.json" "$T/why.json" "$T/wakeups.json" <<-'EOF'
		import json, sys
		threads, why, wakeups = (json.load(open(f)) for f in sys.argv[1:])
		first = threads["threads"][0]
		assert (first["name"], first["fate"], first["should_resolve"]) == ("tcp connection", "open", True), first
		assert all(t["fate"] == "open" and t["end"] is None for t in threads["threads"]) and threads["more"] == 0
		kinds = [(s["kind"], s["who"]["name"]) for s in why["steps"]]
		assert kinds[:5] == [("unresolved", "tcp connection"), ("created", "tcp connection"),
		    ("suspect", "tcp connection"), ("waits", "tcp"), ("signalled_nobody", "arp reply")], kinds
		assert why["steps"][4]["by"]["name"] == "netif" and why["thread"] == why["steps"][0]["who"]
		late = [w["latency"] for w in wakeups["wakeups"]]
		assert len(late) == 3 and late == sorted(late, reverse=True) and late[2] > 0, late
		assert all(w["latency"] == w["end"] - w["ready"] for w in wakeups["wakeups"])
	EOF
}

# How long its thread had a CPU, at moments of the recording.
run_by_host() {
	python3 - "$T/s.uniscope/session.json" <<-'EOF'
		import json, sys
		looks = json.load(open(sys.argv[1]))["guests"][0]["trace"]["on_cpu"]
		assert len(looks) >= 2 and all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(looks, looks[1:])), looks
		assert looks[0][1] < looks[-1][1], looks
	EOF
}

bad() {
	"$U" trace findings "$T/s.uniscope" --busy 60000 >"$T/found" 2>"$T/err" || { cat "$T/err"; return 1; }
	for words in '^lost wake-up: tcp waits for arp reply, which was signalled too early$' \
		'  netif signalled arp reply: nobody waited for it$' \
		'  tcp began to wait for it, .* later$' \
		'^never resolved: tcp connection should have been'; do
		grep -q "$words" "$T/found" || { echo "no '$words'"; cat "$T/found"; return 1; }
	done
	"$U" trace why "$T/s.uniscope" tcp >"$T/why" || return 1
	sed -n 1p "$T/why" | grep -q '  tcp waits for arp reply since then' &&
		sed -n 2p "$T/why" | grep -q '  arp reply was signalled by netif when nobody' || {
		cat "$T/why"
		return 1
	}
	# Nothing tells who was to resolve it; the chain leads there all the same.
	"$U" trace why "$T/s.uniscope" 'tcp connection' >"$T/why" &&
		grep -q "  tcp connection is open: nobody has resolved it\$" "$T/why" && ! grep -q "never ran" "$T/why" &&
		grep -A1 "  tcp waits for arp reply since then" "$T/why" | grep -q "  arp reply was signalled by netif when nobody" || {
		cat "$T/why"
		return 1
	}
	"$U" trace threads "$T/s.uniscope" --open --json >"$T/threads.json" &&
		"$U" trace why "$T/s.uniscope" 'tcp connection' --json >"$T/why.json" &&
		"$U" trace wakeups "$T/s.uniscope" -n 3 --json >"$T/wakeups.json" && asked_by_program || return 1
	"$U" trace threads "$T/s.uniscope" --open >"$T/threads" || return 1
	sed -n 2p "$T/threads" | grep -q '^NEVER .* tcp connection$' || { cat "$T/threads"; return 1; }
}

good() {
	"$U" trace findings "$T/s.uniscope" --busy 60000 >"$T/found" 2>"$T/err" || { cat "$T/err"; return 1; }
	[ "$(sed -n 1p "$T/found")" = 'no finding' ] || { cat "$T/found"; return 1; }
	"$U" trace why "$T/s.uniscope" 'tcp connection' >"$T/why" &&
		grep -q 'tcp connection was resolved by tcp$' "$T/why" &&
		grep -q 'syn ack was resolved by netif$' "$T/why" || { cat "$T/why"; return 1; }
}

# The guest's work, to the event: httpd awaits 64 ticks, and the clock resolves each once.
books() {
	"$U" trace findings "$T/s.uniscope" --json >"$T/json" && python3 - "$T/json" <<-'EOF'
		import json, sys
		m = json.load(open(sys.argv[1]))
		name = {p: text for p, _, text in reversed(m["labels"])}
		who = {text: p for p, text in name.items()}
		ticks = [i for i, p in enumerate(m["promises"]) if name.get(i) == "tick"]
		assert len(ticks) == 64, len(ticks)
		assert all(m["promises"][i]["fate"] == "resolved" and
		    m["promises"][i]["resolver"] == who["clock"] for i in ticks)
		assert [c[2] for c in m["counters"]] == list(range(1, 65)), m["counters"]
		assert m["lost"] == 0 and m["gaps"] == 0, (m["lost"], m["gaps"])
		assert sum(p == who["httpd"] for p, cpu, a, b in m["runs"]) >= 60
	EOF
}

# Semaphore and mvar of the app, with those who wait for them.
kinds() {
	python3 - "$T/json" <<-'EOF'
		import json, sys
		m = json.load(open(sys.argv[1]))
		name = {p: text for p, _, text in reversed(m["labels"])}
		who = {text: p for p, text in name.items()}
		kind = lambda text: m["promises"][who[text]]["type"]
		assert (kind("frames"), kind("log")) == ("semaphore", "mvar"), (kind("frames"), kind("log"))
		told = lambda k, f, t: sum(a[:3] == [k, who[f], who[t]] for a in m["arrows"])
		assert told("read", "frames", "netif") >= 1, m["arrows"]
		assert told("notify", "log", "logger") >= 1
		assert told("read", "log", "logger") == 8, told("read", "log", "logger")
		assert any(w[:2] == [who["netif"], who["frames"]] and w[5] is None for w in m["waits"])
		waits = [w for w in m["waits"] if w[:2] == [who["logger"], who["log"]]]
		looks = sum(a[:3] == ["try_read", who["log"], who["logger"]] for a in m["arrows"])
		assert len(waits) == looks and all(w[5] is not None for w in waits[:-1]), (looks, waits)
	EOF
}

# As it would be if nobody had known when it was stopped: with the last event.
unended() { # SESSION
	rm -rf "$T/u.uniscope"
	cp -r "$1" "$T/u.uniscope" && python3 - "$T/u.uniscope/session.json" <<-'EOF'
		import json, sys
		s = json.load(open(sys.argv[1]))
		for guest in s["guests"]:
		    guest["trace"].pop("end_ns", None)
		json.dump(s, open(sys.argv[1], "w"))
	EOF
}

# The same trace in the format of MirageOS: its description is complete, and reading it back gives the same model. Only the number
# of its events and the ids differ: an old viewer takes no id twice.
as_mirage() { # calls and switches are heard of in one of them alone, so nobody starves here
	rm -rf "$T/m.mirage"
	"$U" export "$T/s.uniscope" -o "$T/m.mirage" -O packet=4096 || return 1
	babeltrace2 "$T/m.mirage" >"$T/bt" 2>"$T/bt.err" && [ ! -s "$T/bt.err" ] || { head -5 "$T/bt.err"; return 1; }
	grep -q ' creates: .*thread_type = ( "semaphore"' "$T/bt" || { grep creates "$T/bt" | head -3; return 1; }
	"$U" trace findings "$T/s.uniscope" --json --busy 60000 >"$T/u.json" || return 1
	"$U" mirage-trace-viewer -w "$T/m.ctf" "$T/s.uniscope" && "$U" trace threads "$T/m.ctf" >"$T/threads" &&
		"$U" trace threads "$T/m.mirage" | cmp - "$T/threads" || return 1
	# As the old viewer reads it: as many promises, and as many open ones.
	"$U" trace findings "$T/m.mirage" --json --busy 60000 >"$T/m.json" && python3 "$SRC/tests/e2e/mirage_old.py" "$T/m.mirage/cpu0" "$T/m.ctf" >"$T/old" &&
		python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))["promises"]
print("%d %d\n" % (len(p), sum(x["fate"] == "open" for x in p)) * 2, end="")' "$T/m.json" | cmp - "$T/old" || return 1
	python3 - "$T/u.json" "$T/m.json" "$T/bt" <<-'EOF'
		import json, sys
		a, b = (json.load(open(f)) for f in sys.argv[1:3])
		lines = sum(1 for _ in open(sys.argv[3]))
		assert lines == b.pop("events") and a.pop("events") <= lines, lines
		assert a["duration_ns"] > max(w[3] for w in a["waits"]), "silent at the end"
		ids = [p.pop("id") for p in b["promises"]]
		assert len(set(ids)) == len(ids)
		assert all(p.pop("id") == new or new.startswith("0x10000000000") for p, new in zip(a["promises"], ids))
		assert a == b, [k for k in a if a[k] != b[k]]
	EOF
}

# Threads and promises alone: formats of calls are left out, and those that have a place hold them all.
exported() {
	rm -rf "$T/all"
	"$U" export --all "$T/all" "$T/s.uniscope" 2>"$T/err" && [ ! -e "$T/all/profile.csv" ] && [ ! -e "$T/all/profile.uftrace" ] &&
		grep -q 'uftrace is left out: .*no function calls' "$T/err" || { cat "$T/err"; ls "$T/all"; return 1; }
	set -- "$T/all/profile.trace.json" "$T/all/profile.fxt" "$T/all/profile.pftrace"
	command -v protoc >/dev/null || set -- "$1" "$2"
	"$U" trace threads --json --all "$T/s.uniscope" >"$T/threads.json" &&
		python3 "$SRC/tests/e2e/exchange/promises.py" "$@" "$T/threads.json"
}

# From here to there in a pipe: a session, and a trace of MirageOS.
piped() {
	"$U" trace dump "$target" -e "$elf" -q -w - >"$T/stream" || return 1
	tar tf "$T/stream" | grep -q '/session.json$' || { tar tf "$T/stream"; return 1; }
	for query in 'trace threads' 'trace findings --busy 60000' 'trace report' 'export -f chrome' \
		'export --calls -f folded' 'report' "report --html $T/page.html"; do
		# shellcheck disable=SC2086
		TMPDIR=$T/tmp "$U" $query - <"$T/stream" >"$T/out" 2>"$T/err" || { cat "$T/err"; return 1; }
	done
	"$U" trace dump "$target" -e "$elf" -q -w - | "$U" trace threads - >"$T/threads" || return 1
	grep -q ' tcp connection' "$T/threads" || { cat "$T/threads"; return 1; }
	"$U" trace threads - <"$T/m.mirage/cpu0" >"$T/threads" && grep -q ' tcp connection' "$T/threads" || return 1
	head -c 5000 "$T/stream" | TMPDIR=$T/tmp "$U" trace threads - >/dev/null 2>"$T/err"
	refused $? "$T/err" 1 'it ends in the middle' || return 1
	[ -z "$(ls "$T/tmp")" ] || { ls -R "$T/tmp"; return 1; }
}

# A guest that QMP has stopped is read as it stands, and stays so.
paused() {
	unended "$T/s.uniscope" && "$U" trace threads "$T/u.uniscope" >"$T/threads" || return 1
	python3 "$SRC/tests/e2e/qmp.py" "$T/qmp" stop '{}' query-status '{}' >"$T/qmp.out" && grep -q '"paused"' "$T/qmp.out" ||
		return 1
	timeout 60 "$U" trace dump "$target" -e "$elf" -q -o "$T/paused.uniscope" --overwrite || return 1
	python3 "$SRC/tests/e2e/qmp.py" "$T/qmp" query-status '{}' cont '{}' >"$T/qmp.out" && grep -q '"paused"' "$T/qmp.out" ||
		return 1
	"$U" trace threads "$T/paused.uniscope" | cmp - "$T/threads"
}

# The page's timeline, looked at: the lost ones are red lines to the end of the trace, or nothing is.
seen() { # RUN
	"$U" report --html "$T/page.html" "$T/s.uniscope" 2>"$T/err" || { cat "$T/err"; return 1; }
	python3 "$SRC/tests/e2e/page_timeline.py" "$T/page.html" "$1" >"$T/seen" 2>&1 || { cat "$T/seen"; return 1; }
}

# The bad run with the good one beside it.
beside() {
	"$U" report --html "$T/both.html" --beside "$T/s.uniscope" "$T/bad.uniscope" 2>"$T/err" || { cat "$T/err"; return 1; }
	python3 "$SRC/tests/e2e/page_timeline.py" "$T/both.html" both >"$T/seen" 2>&1 || { cat "$T/seen"; return 1; }
	"$U" report --html "$T/both.html" --beside "$SRC/tests/golden" "$T/bad.uniscope" 2>"$T/err"
	refused $? "$T/err" 1 '' || return 1
	"$U" report --html "$T/both.html" --beside "$T/bad.uniscope" --before "$T/bad.uniscope" "$T/s.uniscope" 2>"$T/err"
	refused $? "$T/err" 2 'give one of --before' || return 1
	"$U" report --beside "$T/bad.uniscope" "$T/s.uniscope" 2>"$T/err"
	refused $? "$T/err" 2 'needs --html'
}

# The guest itself in place of a file: its own ring, as packets of MirageOS.
from_guest() {
	"$U" mirage-trace-viewer -d "$target" >"$T/viewed" 2>&1 && "$U" trace findings "$T/s.uniscope" >"$T/found" 2>/dev/null || return 1
	head -n "$(wc -l <"$T/found")" "$T/viewed" | diff "$T/found" - || return 1
	"$U" trace mirage "$target" -q -o "$T/guest.ctf" && "$U" export "$T/s.uniscope" -f mirage -o "$T/s.mirage" || return 1
	"$U" trace threads "$T/guest.ctf" | grep 'arp reply'
}

decoded() { # by the standard's own reader
	babeltrace2 "$T/s.uniscope" >"$T/bt" 2>"$T/bt.err" && [ ! -s "$T/bt.err" ] && [ -s "$T/bt" ] || {
		head -5 "$T/bt.err"
		return 1
	}
}

image=$BUILD/lab/trace/trace-arp-gcc-fp.elf
[ -e "$image" ] || absent 'no compiler here makes guests to trace'
mkdir "$T/tmp"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	echo '# no chromium: pages are not looked at'
for accel in $(by_default tcg "$accels"); do
	# To read a trace does not depend on what ran the guest.
	for run in $([ "$accel" = kvm ] || echo bad good); do
		append="promises=1 bad=$([ $run = bad ] && echo 1 || echo 0)"
		if boot_waiting "$accel" 1 "$image" "$append" --qmp "$T/qmp"; then
			check "$accel: the flight recorder of the $run run" dumped
			check "$accel: what is found in it" $run
			check "$accel: its books" books
			check "$accel: semaphores and mvars" kinds
			check "$accel: as a trace of MirageOS" as_mirage
			check "$accel: in every format that has a place for it" exported
			[ "$run" = good ] || check "$accel: in a pipe" piped
			[ "$run" = good ] || check "$accel: by the front end of MirageOS' viewer" from_guest
			[ "$run" = good ] || check "$accel: stopped by QMP" paused
			[ -z "$chromium" ] || in_all check "$accel: its page" seen $run # by default, both beside each other
			if [ $run = bad ]; then
				rm -rf "$T/bad.uniscope"
				cp -r "$T/s.uniscope" "$T/bad.uniscope"
			elif [ -n "$chromium" ]; then
				check "$accel: both beside each other" beside
			fi
		else
			check "$accel: boots" false
		fi
	done
	if boot_waiting "$accel" 1 "$image" 'bad=1'; then
		check "$accel: recorded live" recorded
		check "$accel: the same is found" bad
		[ "$accel" != kvm ] || check "$accel: what its host gave it" run_by_host
		check "$accel: the same books" books
		check "$accel: babeltrace2 reads it" decoded
		[ -z "$chromium" ] || [ "$accel" = kvm ] || in_all check "$accel: the same in its page" seen bad
	else
		check "$accel: boots" false
	fi
done
# It hangs already when somebody looks: nothing comes any more. A guest that keeps a table tells what is
# open all the same; of one that keeps none, nobody says that nothing is wrong.
hangs_already() {
	for keep in $(by_default 1 '1 0'); do
		boot_waiting "$accel" 1 "$image" "bad=1 keep=$keep" && go_on '^arp: ' &&
			timeout 60 "$U" trace record "$target" -e "$elf" --threads -d 0.3 -o "$T/s.uniscope" \
				--overwrite 2>"$T/said" || { cat "$T/said"; return 1; }
		"$U" trace findings "$T/s.uniscope" --busy 60000 >"$T/found" 2>"$T/err"
		if [ $keep = 0 ]; then
			! grep -q '^no finding$' "$T/found" || { cat "$T/found"; return 1; }
			continue
		fi
		for words in '^lost wake-up: tcp waits for arp reply, which was signalled too early$' \
			'^    earlier     arp reply was signalled: nobody waited for it$' \
			'^    earlier     tcp began to wait for it$' \
			'^never resolved: tcp connection should have been'; do
			grep -q "$words" "$T/found" || { echo "no '$words'"; cat "$T/found" "$T/err" "$T/said"; return 1; }
		done
		"$U" trace why "$T/s.uniscope" tcp >"$T/why" &&
			grep -q '^earlier     tcp waits for arp reply since then (more than ' "$T/why" &&
			grep -q '^earlier     arp reply was signalled when nobody waited for it$' "$T/why" &&
			"$U" trace threads "$T/s.uniscope" >"$T/threads" &&
			grep -Eq '^open .* thread +earlier .*  tcp$' "$T/threads" &&
			babeltrace2 "$T/s.uniscope" >"$T/bt" 2>"$T/bt.err" && [ ! -s "$T/bt.err" ] ||
			{ cat "$T/why" "$T/bt.err"; return 1; }
	done
}
for accel in $(by_default kvm "$accels"); do
	check "$accel: a guest that hangs already" hangs_already
done
# A guest without a table, which tells of no waits: its list of threads says what waits when a recording begins.
both_blocked() {
	[ "$("$U" stacks --threads "$target" -e "$elf" | grep -c 'blocked on never')" = 2 ]
}
listed_threads() {
	boot "$accel" "$BUILD/lab/trace/trace-threads-gcc-fp.elf" '' && wait_for 60 both_blocked &&
		timeout 60 "$U" trace record "$target" -e "$elf" --threads -d 0.3 -o "$T/s.uniscope" --overwrite 2>"$T/said" || {
		cat "$T/said"
		return 1
	}
	"$U" trace findings "$T/s.uniscope" --busy 60000 >"$T/found" 2>"$T/err"
	for words in '^no finding in what is known$' 'not known: what else waited already when' '^still waiting when the trace ended' \
		'^    earlier     blocked-1 waits for never$' '^    earlier     blocked-2 waits for never$'; do
		grep -q "$words" "$T/found" || { echo "no '$words'"; cat "$T/found" "$T/err"; return 1; }
	done
	[ "$(grep -c ' waits for never' "$T/found")" = 2 ] && grep -q "waits of the guest's list of threads only" "$T/err" && grep -q 'does not tell who waits for whom' "$T/err" || { cat "$T/found" "$T/err"; return 1; }
	"$U" trace threads "$T/s.uniscope" >"$T/threads" 2>/dev/null &&
		grep -Eq '^open .* thread +earlier .* 0 ns .*  blocked-2$' "$T/threads" || { cat "$T/threads"; return 1; }
}
# Two that block for ever after a recording has begun: no event tells so, and the list at its end does. Since when they wait, their
# last run tells.
block_later() {
	boot_waiting "$accel" 1 "$BUILD/lab/trace/trace-threads-gcc-fp.elf" '' || return 1
	rm -f "$T/said"
	timeout 60 "$U" trace record "$target" -e "$elf" --threads -d 0 -o "$T/s.uniscope" --overwrite 2>"$T/said" &
	recorder=$!
	wait_for 60 grep -q '^uniscope: events of threads are recorded' "$T/said" || return 1
	echo >&9
	wait_for 60 both_blocked
	kill -INT $recorder
	wait $recorder || { cat "$T/said"; return 1; }
	"$U" trace findings "$T/s.uniscope" --busy 60000 >"$T/found" 2>"$T/err" &&
		"$U" trace findings "$T/s.uniscope" --busy 60000 --json >"$T/json" || return 1
	cat "$T/found"
	for words in '^no finding in what is known$' '^still waiting when the trace ended' \
		'^    [0-9.]* s  *blocked-1 waits for never$' '^    [0-9.]* s  *blocked-2 waits for never$'; do
		grep -q "$words" "$T/found" || { echo "no '$words'"; return 1; }
	done
	python3 - "$T/json" <<-'EOF'
		import json, sys
		m = json.load(open(sys.argv[1]))
		ran = {p: b for p, _, _, b in m["runs"]}
		waits = [w for w in m["waits"] if w[5] is None]
		assert len(waits) >= 2 and all(w[3] == ran[w[0]] < m["duration_ns"] for w in waits), waits
	EOF
	babeltrace2 "$T/s.uniscope" >"$T/bt" 2>"$T/bt.err" && [ ! -s "$T/bt.err" ] || { cat "$T/bt.err"; return 1; }
}
for accel in $(by_default tcg "$accels"); do
	check "$accel: threads that wait, by the guest's list" listed_threads
done
# The recorder has TCG's stub for itself, and nobody else can ask.
case $accels in
*kvm*)
	accel=kvm
	check "$accel: threads that begin to wait without an event" block_later
	;;
esac
# A guest that gives no names: those of its thread list are taken.
nameless() {
	dumped && "$U" trace threads "$T/s.uniscope" >"$T/threads" || return 1
	for name in netif tcp clock httpd logger main; do
		grep -Eq " thread .*  $name( |\$)" "$T/threads" || { echo "no $name"; cat "$T/threads"; return 1; }
	done
}
if boot_waiting tcg 1 "$image" 'promises=1 names=0'; then
	check 'threads that have no label are called as the guest calls them' nameless
else
	check 'tcg: boots' false
fi
# Again and again, with more threads in the course of time than it has places for. After some rounds,
# the ring has nothing more of the thread that is lost in the bad run.
again() { # RUN
	for _ in $(seq 60); do
		kill -0 "$guest" || return 1
		timeout 60 "$U" trace dump "$target" -e "$elf" -q -o "$T/s.uniscope" --overwrite &&
			"$U" trace findings "$T/s.uniscope" --busy 60000 --json >"$T/json" 2>"$T/err" || { cat "$T/err"; return 1; }
		python3 - "$T/json" "$1" >"$T/out" 2>&1 <<-'EOF'
			import json, sys
			m, run = json.load(open(sys.argv[1])), sys.argv[2]
			name = {p: text for p, _, text in reversed(m["labels"])}
			of = lambda text: [p for i, p in enumerate(m["promises"]) if name.get(i) == text]
			up = [p for p in of("tcp connection") if p["fate"] == "resolved"]
			found = sorted(f["kind"] for f in m["findings"])
			print(len(up), len(of("httpd")), found)
			rounds = len(of("httpd")) if run == "bad" else len(up)
			# A connection that is about to be made may not have been when this was read.
			wrong = found != ["lost_wakeup", "unresolved"] or len(of("tcp")) != 1 if run == "bad" else "lost_wakeup" in found
			if run == "bad" and rounds >= 8 and not of("tcp"):
			    sys.exit(3)
			sys.exit(2 if rounds < 8 and (run == "bad" or not wrong) else wrong)
		EOF
		case $? in
		0) return 0 ;;
		2) sleep 0.2 ;; # too few rounds yet
		3) arp_runs "$1" || return 1 ;; # too many
		*) break ;;
		esac
	done
	cat "$T/out" "$T/serial"
	return 1
}
arp_runs() { # RUN
	boot tcg "$image" "promises=1 bad=$([ "$1" = bad ] && echo 1 || echo 0)"
}
for run in $(by_default bad 'bad good'); do
	if arp_runs $run; then
		check "again and again: the $run run" again $run
	else
		check 'tcg: boots' false
	fi
done
end_guest
finish
