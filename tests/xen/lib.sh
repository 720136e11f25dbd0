# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For the cases, in dom0. CASE is the case's name, out/$CASE its folder, which is outside afterwards.
n=0 out=/mnt/out/$CASE T=$(mktemp -d)

# check WHAT COMMAND...: one line of TAP; what the command said if it failed.
check() {
	n=$((n + 1)) what=$1
	shift
	if "$@" >"$T/check" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$T/check"
	fi
}

# Every case ends here: one that does not has not reported.
finish() {
	echo "1..$n"
}

# start NAME OPTION-OF-GUEST...: a guest, until it runs its app. $dom is its number.
start() {
	name=$1
	shift
	dom=$(guest -n "$name" "$@") || return 1
	said "$name" '^lab: running' 30
}

# said NAME WORDS SECONDS: does the guest's console say so in time?
said() {
	tries=$(($3 * 10))
	until grep -q "$2" "/mnt/log/console/guest-$1.log" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		usleep 100000
	done
}

# The state that xl shows, without the dots: b, r, p, s, c, d; nothing for one that runs by turns.
state() { # DOMAIN
	xl list "$1" 2>/dev/null | awk 'NR == 2 { gsub("-", "", $5); print $5 }'
}

# Are there no domains but dom0, whole or half gone (xl shows these as (null))?
nothing_left() {
	tries=50
	until [ "$(xl list | wc -l)" -eq 2 ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { xl list; return 1; }
		usleep 100000
	done
}
