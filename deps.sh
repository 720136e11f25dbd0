#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh build|demo|test: installs the Debian packages that this step needs and that are missing.
# Needs root or sudo only if something is missing. Set UNISCOPE_NO_INSTALL=1 to be told instead;
# deps.sh STEP --list prints the names alone.
set -eu

build="gcc libc6-dev meson ninja-build pkg-config python3 binutils libelf-dev libdw-dev
	libiberty-dev libxxhash-dev libjansson-dev libseccomp-dev libncurses-dev zlib1g-dev clang libbpf-dev
	libmicrohttpd-dev libcapstone-dev"
demo="qemu-system-x86"
test="libcmocka-dev lld clang-format clang-tidy cppcheck libclang-rt-14-dev git babeltrace2
	chromium gdb strace linux-libc-dev procps util-linux bpftool libcap2-bin
	protobuf-compiler valgrind uftrace curl wget g++ rustc elfutils llvm qemu-system-arm gcc-aarch64-linux-gnu
	ocaml-nox ocaml-findlib ocaml-dune liblwt-ocaml-dev mmdebstrap debhelper
	lintian zsh fish linux-perf python3-jsonschema"
# For the labs of Xen and of KVM hosts: Debian 12 on amd64 has these. Without them their tests skip. qemu-system-xen is the device
# model of HVM domains (15 MB).
xen="xen-utils-4.17 xenstore-utils libxen-dev linux-image-amd64 busybox cpio kmod seabios xz-utils qemu-system-xen"
# With GRUB there, the hypervisor's package would be what the machine boots next: lab/xen/mkdom0
# takes it apart instead.
command -v update-grub >/dev/null 2>&1 || xen="$xen xen-hypervisor-4.17-amd64"

case ${1:-} in
build) want=$build xen='' ;;
demo) want="$build $demo" xen='' ;;
test) want="$build $demo $test" ;;
*)
	echo "usage: deps.sh build|demo|test [--list]" >&2
	exit 2
	;;
esac
if [ "${2:-}" = --list ]; then
	# shellcheck disable=SC2086
	printf '%s\n' $want
	exit
fi

install() {
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1
}

# obtain PACKAGE...: those that are missing; 1 and why on stderr if that cannot be done.
obtain() {
	missing=
	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed ||
			missing="$missing $p"
	done
	[ -n "$missing" ] || return 0
	if [ -n "${UNISCOPE_NO_INSTALL:-}" ]; then
		echo "deps.sh: missing packages:$missing" >&2
		return 1
	fi
	if [ "$(id -u)" = 0 ]; then
		sudo=
	elif command -v sudo >/dev/null 2>&1; then
		sudo=sudo
	else
		echo "deps.sh: install as root:$missing" >&2
		return 1
	fi
	echo "installing:$missing"
	log=$(mktemp)
	# A fresh machine has no package lists, an old one has stale ones: look again once.
	if ! install; then
		$sudo apt-get update >"$log" 2>&1 || { tail -5 "$log" >&2; return 1; }
		install || { tail -15 "$log" >&2; echo "deps.sh: could not install$missing" >&2; return 1; }
	fi
	rm -f "$log"
}

# shellcheck disable=SC2086
obtain $want || exit 1
# The page's test judges accessibility by axe-core. Without it that part of the test skips.
axe=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/uniscope-tests
if [ "$1" = test ] && [ -z "${UNISCOPE_NO_INSTALL:-}" ] && [ ! -e "$axe/node_modules/axe-core" ] && command -v npm >/dev/null; then
	npm install --silent --no-fund --no-audit --prefix "$axe" axe-core@4 >/dev/null 2>&1 ||
		echo 'deps.sh: goes on without axe-core, which npm could not fetch' >&2
fi
# shellcheck disable=SC2086
obtain $xen || echo 'deps.sh: goes on without the labs of Xen and of KVM hosts' >&2
