#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# promises.sh UNISCOPE BUILD SRCROOT: threads and promises from outside. The guest `arp` has
# MirageOS' lost wake-up, or has it not: the bad run's finding names both threads and the order, the
# good one has none (but that a busy host may starve anybody); recorded live as well as from the flight recorder. TAP.
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
	if ! wait_for 30 grep -q '^uniscope: 0 functions at 0 places are traced' "$T/said"; then
		kill "$recorder"
		cat "$T/said"
		return 1
	fi
	go_on '^arp: '
	kill -INT "$recorder"
	wait "$recorder" || { cat "$T/said"; return 1; }
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

# What the guest did, to the event: 64 ticks awaited by httpd, each resolved once by the clock.
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
	EOF
}

# The same trace as MirageOS would have written it: its description is complete, and what is read
# back is the same model, but for how many events told it.
as_mirage() {
	rm -rf "$T/m.mirage"
	"$U" export "$T/s.uniscope" -o "$T/m.mirage" -O packet=4096 || return 1
	babeltrace2 "$T/m.mirage" >"$T/bt" 2>"$T/bt.err" && [ ! -s "$T/bt.err" ] || { head -5 "$T/bt.err"; return 1; }
	grep -q ' creates: .*thread_type = ( "semaphore"' "$T/bt" || { grep creates "$T/bt" | head -3; return 1; }
	"$U" trace findings "$T/m.mirage" --json >"$T/m.json" && python3 - "$T/json" "$T/m.json" "$T/bt" <<-'EOF'
		import json, sys
		a, b = (json.load(open(f)) for f in sys.argv[1:3])
		lines = sum(1 for _ in open(sys.argv[3]))
		assert lines == b.pop("events") and a.pop("events") <= lines, lines
		assert a == b, [k for k in a if a[k] != b[k]]
	EOF
}

# From here to there in a pipe: a session, and a trace of MirageOS.
piped() {
	"$U" trace dump "$target" -e "$elf" -q -w - >"$T/stream" || return 1
	tar tf "$T/stream" | grep -q '/session.json$' || { tar tf "$T/stream"; return 1; }
	for query in 'trace threads' 'trace findings --busy 60000' 'trace report' 'export -f nanos' \
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

# The page's timeline, looked at: the lost ones are red lines to the end of the trace, or nothing is.
seen() { # RUN
	"$U" report --html "$T/page.html" "$T/s.uniscope" 2>"$T/err" || { cat "$T/err"; return 1; }
	python3 "$SRC/tests/e2e/page_timeline.py" "$T/page.html" "$1" >"$T/seen" 2>&1 || { cat "$T/seen"; return 1; }
}

decoded() { # by the standard's own reader
	babeltrace2 "$T/s.uniscope" >"$T/bt" 2>"$T/bt.err" && [ ! -s "$T/bt.err" ] && [ -s "$T/bt" ] || {
		head -5 "$T/bt.err"
		return 1
	}
}

image=$BUILD/lab/trace/trace-arp-gcc-fp.elf
[ -e "$image" ] || {
	echo '1..0 # SKIP no compiler here makes guests to trace'
	exit 0
}
mkdir "$T/tmp"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	echo '# no chromium: pages are not looked at'
for accel in $accels; do
	for run in bad good; do
		append="promises=1 bad=$([ $run = bad ] && echo 1 || echo 0)"
		if boot_waiting "$accel" 1 "$image" "$append"; then
			check "$accel: the flight recorder of the $run run" dumped
			check "$accel: what is found in it" $run
			check "$accel: its books" books
			check "$accel: semaphores and mvars" kinds
			check "$accel: as a trace of MirageOS" as_mirage
			[ "$run" = good ] || check "$accel: in a pipe" piped
			[ -z "$chromium" ] || check "$accel: its page" seen $run
		else
			check "$accel: boots" false
		fi
	done
	if boot_waiting "$accel" 1 "$image" 'bad=1'; then
		check "$accel: recorded live" recorded
		check "$accel: the same is found" bad
		check "$accel: the same books" books
		check "$accel: babeltrace2 reads it" decoded
		[ -z "$chromium" ] || check "$accel: the same in its page" seen bad
	else
		check "$accel: boots" false
	fi
done
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
end_guest
finish
