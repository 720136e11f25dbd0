#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# chroot.sh DIR SCRIPT ARG...: runs SCRIPT beside a minimal Debian 12 of its own, in memory, at $ROOT. Packages come from where this
# machine gets its own. The minimal system is made once: DIR/base.tar. The mounts and processes of SCRIPT end with it. There is no
# /dev/kvm, as in most such places.
set -eu
dir=$1
shift
. "$(dirname "$0")/devices.sh"
skip() {
	echo "1..0 # SKIP $*"
	exit 0
}
[ "$(id -u)" = 0 ] || skip "needs root: to make a chroot"
for tool in mmdebstrap unshare flock; do
	command -v "$tool" >/dev/null || skip "$tool is not installed (sh deps.sh test)"
done
sources=$(grep -ls bookworm /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources || true)
[ -n "$sources" ] || skip "this machine does not get packages of Debian 12"

if [ -z "${ROOT:-}" ]; then
	unshare --mount --propagation private true || skip "no mount namespaces here"
	mkdir -p "$dir/root"
	ROOT=$(cd "$dir/root" && pwd)
	export ROOT
	exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc sh "$0" "$dir" "$@"
fi
mount -t tmpfs -o size=8g,mode=755 fresh "$ROOT"

# As apt is set up here: through which proxy, and how strict about dates.
apt_options() {
	apt-config dump | grep -E '^Acquire::(Check-|Retries|https?::)' || true
	echo 'Acquire::Languages "none";'
}

base() {
	exec 9>"$dir/base.lock"
	flock 9
	[ ! -f "$dir/base.tar" ] || return 0
	apt_options >"$dir/apt.conf"
	# shellcheck disable=SC2086
	TMPDIR=$ROOT mmdebstrap --variant=minbase --mode=root --format=tar --dpkgopt=force-unsafe-io \
		--aptopt="$dir/apt.conf" bookworm "$dir/base.new" $sources >"$dir/base.log" 2>&1 9>&- || {
		tail -5 "$dir/base.log" | sed 's/^/# /'
		echo 'Bail out! mmdebstrap failed'
		exit 1
	}
	mv "$dir/base.new" "$dir/base.tar"
}
base
exec 9>&-
tar -C "$ROOT" -xpf "$dir/base.tar"
mount -t proc proc "$ROOT/proc"
few_devices "$ROOT/dev"
mount --rbind /sys "$ROOT/sys"
cp -L /etc/resolv.conf "$ROOT/etc/resolv.conf"
# Not exec: as the first process of its namespace it would be asked to reap.
sh "$@"
