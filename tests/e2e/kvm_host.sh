#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kvm_host.sh BUILD SRC 6.1|6.12 [CASE...]: boots a stock kernel of Debian with kvm_amd in QEMU TCG once. Time there is the number
# of instructions. It runs each case of tests/kvm/cases there, then its judge outside, tests/kvm/judge/CASE.sh, if it has one. TAP.
# Logs stay in BUILD/kvm/log-KERNEL.
set -u
BUILD=$1 SRC=$2 kernel=$3
shift 3
cases=$SRC/tests/kvm
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM
export BUILD SRC kernel
# shellcheck source=tests/lab/report.sh
. "$SRC/tests/lab/report.sh"
# shellcheck source=tests/support/can.sh
. "$SRC/tests/support/can.sh"

"$SRC/lab/share" kvm "$BUILD" "$T" "$BUILD/tests/e2e/bpf_verify" "$BUILD/tests/e2e/e2e-kvm-lab" "$BUILD/tests/e2e/kill_at" \
	"$BUILD/tests/e2e/kvm_exits-lab" "$BUILD/tests/e2e/ends-at-once.elf" "$SRC/lab/boot" "$SRC/lab/kvm/guest" \
	"$(PATH=$PATH:/usr/sbin command -v bpftool)" "$(PATH=$PATH:/usr/sbin command -v setcap)" "$(command -v perf)" \
	"$(command -v nice)" "$(command -v setpriv)" || exit 1
cp "$SRC/tests/lab/run.sh" "$T/cases.sh"
# Everything stays in the lab's memory until the end: waiting for the share takes more of the lab's time on a busier host.
cat >"$T/run.sh" <<'RUN'
cp -r cases cases.sh lib.sh /tmp && cd /tmp && mkdir log || exit 1
LAB_OUT=/tmp/out sh cases.sh
tar -cf /mnt/all.tar out log
RUN
cat "$SRC/tests/lab/lib.sh" "$SRC/tests/support/kill.sh" "$cases/lib.sh" >"$T/lib.sh"
mkdir "$T/cases"
[ $# -ne 0 ] || for name in $(basename -s .sh "$cases"/cases/*.sh); do
	[ "$name $kernel" = 'without 6.12' ] || set -- "$@" "$name"
done
for name; do
	cp "$cases/cases/$name.sh" "$T/cases/"
done

begin=$(date +%s)
"$SRC/lab/kvm/boot" -q -i -k "$kernel" -t 5400 -l 100000 -o "$BUILD/kvm" "$T" 2>"$T/boot.log"
status=$?
[ $status -ne 77 ] || absent "$(tail -1 "$T/boot.log")"
tar -C "$T" -xf "$T/all.tar"
times >"$T/times"
echo "# one boot and its cases: $(($(date +%s) - begin)) s; CPU time (user, system): $(tail -1 "$T/times")"
rm -rf "$BUILD/kvm/log-$kernel"
cp -r "$T/log" "$BUILD/kvm/log-$kernel"

# Without -i, a busy machine gives the host too few ticks in time, and Linux took its timer for broken and panicked.
cat >"$T/says" <<'END'
#!/bin/sh
for word; do echo "$word"; done >"$WORDS"
exit 1
END
chmod +x "$T/says" && mkdir -p "$T/none" && : >"$T/none/run.sh"
WORDS=$T/words QEMU=$T/says "$SRC/lab/kvm/boot" -q -k "$kernel" -o "$BUILD/kvm" "$T/none" >"$T/none.log" 2>&1
if grep -qw no_timer_check "$T/words"; then
	say ok 'a host whose time is the machine'"'"'s does not judge its timer'
else
	say 'not ok' 'a host whose time is the machine'"'"'s does not judge its timer'
	quote "$T/words" "$T/none.log"
fi

report_all
times >"$T/times"
echo "# with the judges outside: $(tail -1 "$T/times")"
