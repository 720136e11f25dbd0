#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# symbols.sh UNISCOPE BUILD SRCROOT: where names can come from when the image that boots has none: tables
# in text, split-off debug files. A guest under TCG. TAP.
set -u
U=$1 BUILD=$2 SRC=$3
case $U in
/*) ;;
*) U=$PWD/$U ;;
esac
. "$SRC/tests/e2e/guest.sh"
for tool in gcc nm objdump objcopy strip readelf; do
	command -v $tool >/dev/null || absent "$tool is not installed"
done
full=$(image demo)
stripped=$T/app.img s=$T/s.uniscope

strip -s -o "$stripped" "$full"
nm "$full" >"$T/nm"
nm -S -n "$full" >"$T/nm-S"
sed 's/$/\t[module]/' "$T/nm" >"$T/kallsyms"
objdump -t "$full" >"$T/objdump-t"
objdump -x "$full" >"$T/objdump-x"
awk '{print $1, $2, $NF}' "$T/objdump-x" >"$T/columns"
tables='nm nm-S kallsyms objdump-t objdump-x columns'

functions() { # REPORT-OPTIONS...: the table of functions
	"$U" report --no-inline -n 0 "$@" "$s" | sed -n '/FUNCTION/,$p'
}

records() { # OPTIONS...
	timeout 60 "$U" record "$target" -q -F 299 -d 0.6 -o "$s" --overwrite "$@"
}

nameless() {
	records -e "$stripped" && functions >"$T/none" && grep -q '0xffffffff80' "$T/none" &&
		! grep -q lab_entry "$T/none"
}

# Each table says of that session the same as the ELF.
tables_agree() {
	functions -s "$full" >"$T/want" && grep -q ' lab_entry' "$T/want" || return 1
	for t in $tables; do
		functions -s "$T/$t" >"$T/got" && diff "$T/want" "$T/got" || return 1
	done
}

with_table() { # the image is found on the command line of no VMM here: frame pointers will do
	for t in nm objdump-x; do
		records -e "$T/$t" && functions | grep ' lab_entry' || return 1
		"$U" stacks "$target" -e "$T/$t" | grep 'lab_entry+0x' || return 1
	done
}

run_with_table() {
	(cd "$T" && timeout 60 "$U" run -q --accel tcg -d 0.5 -e "$T/nm" -o run.uniscope "$stripped" &&
		"$U" report -n 0 run.uniscope | grep ' lab_entry')
}

not_a_table() {
	"$U" record "$target" -q -d 1 -e "$SRC/README.md" -o "$T/no.uniscope" 2>"$T/said"
	refused $? "$T/said" 1 'neither an ELF image nor a .usym nor a symbol table' &&
		[ ! -e "$T/no.uniscope" ]
}

# /DIR/.build-id/xx/yyyy.debug
debug_dir() {
	id=$(readelf -n "$full" | sed -n 's/.*Build ID: //p') && [ -n "$id" ] || return 1
	rest=${id#??}
	mkdir -p "$T/dbg/.build-id/${id%"$rest"}" &&
		objcopy --only-keep-debug "$full" "$T/dbg/.build-id/${id%"$rest"}/$rest.debug" &&
		records -e "$stripped" --debug-dir "$T/dbg" &&
		functions --lines >"$T/got" && grep ' kmain (main.c:[0-9]*)' "$T/got" &&
		"$U" stacks "$target" -e "$stripped" --debug-dir "$T/dbg" --lines |
		grep 'lab_entry+0x.*[.]S:'
}

no_debug_data() {
	strip -g -o "$T/nodebug" "$full" && records -e "$T/nodebug" &&
		"$U" report --lines -n 0 "$s" >"$T/got" 2>"$T/said" && grep ' lab_entry' "$T/got" &&
		grep 'no lines and inlined functions' "$T/said" || return 1
	"$U" report -n 0 "$s" 2>&1 | grep 'no lines' && return 1
	return 0
}

# As after a rebuild in which one function became another one, with a build-id of its own or (FLIP 0) the same.
rebuild() { # FLIP
	python3 - "$full" "$T/rebuilt" "$(nm "$full" | sed -n 's/ . crc_byte$//p')" "$1" <<'P'
import re, struct, sys
elf = bytearray(open(sys.argv[1], "rb").read())
want = int(sys.argv[3], 16)
phoff, = struct.unpack_from("<Q", elf, 32)
for i in range(struct.unpack_from("<H", elf, 56)[0]):
    kind, _, off, vaddr, _, size = struct.unpack_from("<IIQQQQ", elf, phoff + i * 56)
    if kind == 1 and vaddr <= want < vaddr + size:
        elf[off + want - vaddr + 9] ^= 1
note = elf.index(struct.pack("<III4s", 4, 20, 3, b"GNU"))
elf[note + 16] ^= int(sys.argv[4])
open(sys.argv[2], "wb").write(elf)
P
}

# One line each, and no name for what differs: the others keep theirs.
stale() {
	rebuild 255 && records -e "$T/rebuilt" 2>"$T/said" &&
		[ "$(grep -c 'rebuilt is not exactly what the guest runs: its build-id is another' "$T/said")" = 1 ] &&
		grep 'differ in crc_byte; what differs has no name' "$T/said" || return 1
	"$U" report -n 0 --lines "$s" >"$T/got" 2>&1 && grep ' checksum_update' "$T/got" &&
		! grep '%  crc_byte' "$T/got" && grep '^NOT EXACTLY THAT IMAGE .*in crc_byte' "$T/got" || return 1
	"$U" report --html "$T/page.html" --force "$s" && in_page 'NOT EXACTLY THAT IMAGE' "$T/page.html" || return 1
	"$U" export -f folded -o "$T/folded" "$s" 2>"$T/said" && [ "$(grep -c 'NOT EXACTLY THAT IMAGE: .*in crc_byte' "$T/said")" = 1 ] || return 1
	"$U" stacks "$target" -e "$T/rebuilt" 2>"$T/said" >"$T/got" && ! grep 'crc_byte' "$T/got" &&
		grep 'rebuilt is not exactly' "$T/said" || return 1
	records -e "$T/rebuilt" --accept-image 2>"$T/said" && grep 'may be wrong (--accept-image)' "$T/said" &&
		functions | grep '%  crc_byte'
}
patched() {
	rebuild 0 && records -e "$T/rebuilt" 2>"$T/said" &&
		grep 'build-id is the same, but .* in crc_byte; what differs has no name' "$T/said" || return 1
	functions >"$T/got" && grep ' checksum_update' "$T/got" && ! grep '%  crc_byte' "$T/got" || return 1
	"$U" stacks "$target" -e "$T/rebuilt" 2>"$T/said" >"$T/got" && ! grep 'crc_byte' "$T/got" &&
		grep 'rebuilt is not exactly' "$T/said"
}

# Stubs of programs and libraries that call others, at every kind: named as objdump names them.
stubs_as_objdump() {
	echo 'int puts(const char *); int main(void) { return puts("") + (puts == 0); }' >"$T/calls.c"
	gcc -O1 -fcf-protection=none "$T/calls.c" -o "$T/calls" && gcc -O1 -fcf-protection=full -Wl,-z,ibtplt,-z,now "$T/calls.c" -o "$T/now" &&
		gcc -O1 -fcf-protection=full -Wl,-z,ibtplt,-z,lazy "$T/calls.c" -o "$T/lazy" && strip -s -o "$T/bare" "$T/lazy" || return 1
	for elf in "$T/calls" "$T/now" "$T/lazy" "$T/bare" "$U" "$(ldd "$T/calls" | awk '/libc\.so/ {print $3}')"; do
		objdump -d -j .plt -j .plt.sec -j .plt.got "$elf" 2>"$T/err" | sed -n 's/^0*\([0-9a-f]*\) <\(.*@plt\)>:$/\1 \2/p' >"$T/stubs"
		cut -d ' ' -f 2 "$T/stubs" >"$T/want"
		awk '{ print "0x" $1; print 1; print "" }' "$T/stubs" >"$T/raw"
		"$U" symbolize "$elf" "$T/raw" >"$T/named" || return 1
		grep -v '^1$\|^$' "$T/named" | sed 's/+0x0$//' | diff "$T/want" - || return 1
		echo "$(wc -l <"$T/want") stubs in $elf"
		[ -s "$T/want" ] || return 1
	done
}

boot tcg "$stripped" '' || {
	echo '1..1'
	echo 'not ok 1 - the stripped guest boots'
	exit 0
}
check 'a stripped image gives addresses' nameless
check 'tables in text say what the ELF says' tables_agree
in_all check 'record and stacks take tables' with_table
check 'run takes a table beside its image' run_with_table
check 'other text is refused' not_a_table
check 'symbols, lines and inlined functions by build-id' debug_dir
check 'no debug data: said, not failed' no_debug_data
check 'a rebuilt image: one warning, no name for what differs, --accept-image' stale
check 'other code with the same build-id: the same' patched
check 'stubs of shared functions have the names that objdump gives them' stubs_as_objdump
finish
