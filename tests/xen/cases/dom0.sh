# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154
# boot: run
# The lab itself: what all other cases stand on.
one_domain() { [ "$(xl list | awk 'NR > 1 { print $1 }')" = Domain-0 ]; }
writable() { echo word >"$out/word" && grep -q word "$out/word"; }

check 'xl shows dom0 and nothing else' one_domain
check 'the share can be written' writable
check 'uniscope runs' uniscope --version
# The share (9p) keeps no inodes, which the rules on what a command may write are for. Nobody else uses this folder, so nothing keeps its.
written() {
	mkdir "$out/new"
	echo 'main;f 5' >"$T/a.folded" && uniscope export "$T/a.folded" -f folded -o "$out/new/b.folded" && cmp "$T/a.folded" "$out/new/b.folded"
}
check 'uniscope writes into the share' written
check 'xenctx runs' sh -c 'xenctx -h 2>&1 | grep -q usage'
