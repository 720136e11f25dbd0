# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For tests that would see too little on a busy host; to be sourced. If it may (root), the test and all that it starts run at a
# higher priority than other programs here. Among themselves nothing changes. Linux weighs sessions against each other if it has
# autogroups, else processes.
{
	renice -n -10 -p $$
	echo -10 >"/proc/$$/autogroup"
} >/dev/null 2>&1 || :

# One compiler's images are enough, except for sh test.sh all.
# shellcheck disable=SC2034 # for who sources this
compilers=gcc
[ -z "${UNISCOPE_ALL-}" ] || compilers='gcc clang'

# All ways of reading registers and memory share the code that finds a chain and counts a share. So if that code is not the subject,
# each way has images of one compiler, and each compiler its way.
compiler_of() { # tcg|kvm|bpf|aarch64
	[ -n "${UNISCOPE_ALL-}" ] && [ "$1" = kvm ] && echo clang || echo gcc
}

# by_default FEW ALL: of these ways or cases, sh test.sh all has ALL. The default run has FEW, as far as ALL has them, else the first.
by_default() {
	few_=
	for each_ in $2; do
		case " ${UNISCOPE_ALL:+$2} $1 " in
		*" $each_ "*) few_="$few_ $each_" ;;
		esac
	done
	echo "${few_:-${2%% *}}"
}

# in_all COMMAND...: only in sh test.sh all; the default run does without it, and tests/README.md says what is left there.
in_all() {
	[ -z "${UNISCOPE_ALL-}" ] || "$@"
}
