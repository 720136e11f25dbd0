# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For tests of which a busy host would see too little; to be sourced. Where it may (root), the test
# and all that it starts go before what else runs here; among themselves nothing changes. Linux weighs
# sessions against each other if it has autogroups, else processes.
{
	renice -n -10 -p $$
	echo -10 >"/proc/$$/autogroup"
} >/dev/null 2>&1 || :

# Of images that come by each compiler, one will do, but for sh test.sh all.
# shellcheck disable=SC2034 # for who sources this
compilers=gcc
[ -z "${UNISCOPE_ALL-}" ] || compilers='gcc clang'

# Whoever reads registers and memory, a chain is found by the same code, and a share counted: where that is
# not what is tested, each way has images of one compiler, and each compiler its way.
compiler_of() { # tcg|kvm|bpf|aarch64
	[ -n "${UNISCOPE_ALL-}" ] && [ "$1" = kvm ] && echo clang || echo gcc
}
