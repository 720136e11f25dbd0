# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For the cases that run in a lab (Xen's dom0, a host with KVM); the lab's own lib.sh comes behind it. CASE
# is the case's name, $out its folder, which is outside afterwards.
# shellcheck disable=SC2034 # for who sources this
n=0 out=${LAB_OUT:-/mnt/out}/$CASE T=$(mktemp -d)

# check WHAT COMMAND...: one line of TAP; what the command said if it failed.
check() {
	n=$((n + 1)) what=$1
	shift
	read -r began _ </proc/uptime
	if "$@" >"$T/check" 2>&1; then
		echo "ok $n - $what"
		took
		return
	fi
	echo "not ok $n - $what"
	took
	sed 's/^/# /' "$T/check"
	return 1
}

took() {
	read -r now _ </proc/uptime
	echo "$began $now" | awk '{ printf "# %.1f s\n", $2 - $1 }'
}

# Every case ends here: one that does not has not reported.
finish() {
	echo "1..$n"
}

# nap SECONDS, by the shell itself: to start a program, such as usleep, is dear in a lab.
mkfifo "$T/nothing"
nap() {
	read -r -t "$1" _ <>"$T/nothing" || :
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	tries=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		nap 0.1
	done
}
