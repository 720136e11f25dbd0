# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# limit: 600
# What doctor and ls say is what happens; the verifier's own figures; the tree's backend tests.
ls_says() { # WAY
	uniscope ls >"$T/ls" && cat "$T/ls" && awk -v pid="$pid" -v way="$1" \
		'$1 == pid { for (i = 2; i <= NF; i++) if ($i == way) ok = 1 } END { exit !ok }' "$T/ls"
}
verifies() { # [plain]
	bpf_verify "$@" >"$out/verifier$*"
	status=$?
	cat "$out/verifier$*"
	return $status
}
backend() { # PROGRAM [ARGUMENT]
	"$@" >"$T/backend"
	status=$?
	grep -v '^ok' "$T/backend"
	return $status
}

# SVM's state is undefined after it, so KVM resets the vCPU: no register tells that the image has run.
at_once() {
	uniscope run -d 5 --accel kvm -o "$T/no" /usr/local/bin/ends-at-once.elf 2>"$T/said"
	status=$?
	cat "$T/said"
	[ $status -eq 1 ] && [ "$(grep -c 'booted .* on microvm' "$T/said")" -eq 1 ] && ! grep -q q35 "$T/said" &&
		[ "$(grep -c 'the guest reset itself .* in ends-at-once.elf: KVM has reset its vCPU' "$T/said")" -eq 1 ] && [ ! -e "$T/no" ]
}

# One recording: the guest is never stopped. Debian's kernels want CAP_SYS_ADMIN for perf events: the observer alone has it.
recorded_by() {
	uniscope record "$target" -d 0 -o "$T/rights" 2>"$T/said" &
	worker=$!
	wait_for 60 test -s "$T/rights/guest-0/samples-vcpu0"
	for task in $worker $(cat "/proc/$worker/task/$worker/children"); do
		# shellcheck disable=SC2046 # words
		echo $(grep -E '^(Name|CapEff|Seccomp):' "/proc/$task/status" | cut -f2)
	done | sort >"$T/tasks"
	kill -INT $worker
	wait $worker
	status=$?
	cat "$T/said" "$T/tasks"
	return $status
}
gave_up() {
	cat "$T/tasks"
	[ "$(cat "$T/tasks")" = 'uniscope 0000000000000000 2
uniscope-obs 000000c400280004 2
uniscope-opener 0000000000000006 2' ]
}

check 'the verifier accepts each program, in less than half its limit' verifies
check 'and those for kernels that have no casts' verifies plain
check 'small VMMs, awkward ones too: e2e-kvm' backend e2e-kvm-lab
check 'a VMM that counts and times its own exits: kvm_exits' backend kvm_exits-lab each
check 'run: a triple fault at once is no reason to boot on q35' at_once
check 'a guest starts' start shares
check 'doctor' ask_doctor "$pid"
for way in kvm kvm-bpf kvm-exits; do
	check "doctor: $way" doctor_says ok $way
done
check 'doctor says so of this guest' grep 'ok *kvm-bpf *sampled in the host.s kernel' "$T/doctor"
check 'ls: kvm-bpf' ls_says kvm-bpf
check 'record' recorded_by
check 'record: never stopped' grep 'pauses none: the guest was never stopped' "$T/said"
check 'record: only its children have rights' gave_up
check 'nothing stays in the kernel' nothing_loaded

# A user with two capabilities, and no others. Debian's own setting is 3: there, perf events want more.
user='setpriv --reuid=65534 --regid=65534 --clear-groups' capable=/tmp/capable
capable_user() {
	chmod 666 /dev/kvm && chmod -R a+rX /guests && mkdir -p $capable/bin $capable/libexec/uniscope &&
		cp /usr/local/bin/uniscope $capable/bin && cp /usr/local/libexec/uniscope/uniscope-opener $capable/libexec/uniscope &&
		chmod -R a+rX $capable && setcap cap_bpf,cap_perfmon+ep $capable/bin/uniscope &&
		theirs=$($user nice -n 19 guest -n capable shares)
}
capable_records() { # PARANOID WORDS
	sysctl -q -w kernel.perf_event_paranoid="$1" &&
		shows "$2" $user $capable/bin/uniscope record "kvm:pid=$theirs" -d 1 -o /tmp/capable-"$1".uniscope &&
		$user $capable/bin/uniscope report /tmp/capable-"$1".uniscope | grep app_main
}
check 'a guest of a user with CAP_BPF and CAP_PERFMON' capable_user
check 'perf_event_paranoid 3: stopped for each sample, and told why' capable_records 3 'stopped for each sample (pause); perf events are not permitted'
check 'perf_event_paranoid 2: never stopped' capable_records 2 'pauses none: the guest was never stopped'
