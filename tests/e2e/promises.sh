#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# promises.sh UNISCOPE BUILD SRCROOT: threads and promises from outside. The guest `arp` has
# MirageOS' lost wake-up, or has it not: the bad run's finding names both threads and the order, the
# good one has none (but that a busy host may starve anybody); recorded live as well as from the flight recorder. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
. "$SRC/tests/e2e/guest.sh"

# A guest that waits for a byte on its serial port, does its work, and stays.
boot_waiting() { # ACCEL APPEND
	end_guest
	rm -f "$T/gdb" "$T/in"
	mkfifo "$T/in"
	exec 9<>"$T/in"
	: >"$T/serial"
	how=$1
	set -- --accel "$1" --append "wait=1 hold=1 $2"
	[ "$how" = tcg ] && set -- "$@" --gdb "unix:$T/gdb,server=on,wait=off"
	"$SRC/lab/boot" "$@" "$elf" <"$T/in" >"$T/serial" 2>&1 &
	guest=$!
	target=kvm:pid=$guest
	[ "$how" = tcg ] && target=gdb:unix=$T/gdb
	wait_for 120 grep -q '^lab: waiting' "$T/serial" && return 0
	sed 's/^/# /' "$T/serial"
	return 1
}

go_on() {
	echo >&9
	wait_for 120 grep -q '^arp: ' "$T/serial" || { cat "$T/serial"; return 1; }
}

dumped() { # what the flight recorder holds
	go_on && timeout 60 "$U" trace dump "$target" -e "$elf" -q -o "$T/s.uniscope" --overwrite
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
	go_on
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

elf=$BUILD/lab/trace/trace-arp-gcc-fp.elf
[ -e "$elf" ] || {
	echo '1..0 # SKIP no compiler here makes guests to trace'
	exit 0
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	echo '# no chromium: pages are not looked at'
for accel in $accels; do
	for run in bad good; do
		append="promises=1 bad=$([ $run = bad ] && echo 1 || echo 0)"
		if boot_waiting "$accel" "$append"; then
			check "$accel: the flight recorder of the $run run" dumped
			check "$accel: what is found in it" $run
			check "$accel: its books" books
			[ -z "$chromium" ] || check "$accel: its page" seen $run
		else
			check "$accel: boots" false
		fi
	done
	if boot_waiting "$accel" 'bad=1'; then
		check "$accel: recorded live" recorded
		check "$accel: the same is found" bad
		check "$accel: the same books" books
		[ -z "$chromium" ] || check "$accel: the same in its page" seen bad
		[ "$accel" != tcg ] || check "$accel: babeltrace2 reads it" decoded
	else
		check "$accel: boots" false
	fi
done
end_guest
finish
