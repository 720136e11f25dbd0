# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# The lab itself: what all other cases stand on.
one_domain() { [ "$(xl list | awk 'NR > 1 { print $1 }')" = Domain-0 ]; }
writable() { echo word >"$out/word" && grep -q word "$out/word"; }

check 'xl shows dom0 and nothing else' one_domain
check 'the share can be written' writable
check 'uniscope runs' uniscope --version
check 'xenctx runs' sh -c 'xenctx -h 2>&1 | grep -q usage'
