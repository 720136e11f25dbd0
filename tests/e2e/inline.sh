#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# inline.sh UNISCOPE BUILD SRCROOT: C++ and Rust guests whose hot functions are all inlined.
# The session shows the names and lines of the source, without the image. TAP.
set -u
U=$1 BUILD=$2 SRC=$3 accel=kvm
. "$SRC/tests/e2e/guest.sh"
need kvm
here=$SRC/tests/e2e
s=$T/s.uniscope

# From a copy of the image, which is gone afterwards: all names are in the session.
# For as long as it takes until there are enough samples; the check that follows tells what they are.
records() { # IMAGE
	cp "$BUILD/lab/$1.elf" "$T/app.elf" && boot "$accel" "$T/app.elf" '' || return 1
	for seconds in 1 3 20 60; do # a busy host leaves few samples
		timeout 180 "$U" record "$target" -q -F 499 -d $seconds -e "$T/app.elf" -o "$s" \
			--overwrite || return 1
		python3 "$here/ask.py" number "$s" samples 400 && break
		retry "fewer than 400 samples in $seconds s"
	done
	rm "$T/app.elf"
	python3 "$here/ask.py" number "$s" samples 150 # the bounds go by how many there are
}

names() { # SOURCE
	"$U" export "$s" --lines -f json -o "$T/s.json" &&
		python3 "$here/inline_judge.py" "$T/s.json" "$SRC/lab/apps/$1"
}

marked() { # SERVE
	"$U" export "$s" -f folded -o "$T/s.folded" &&
		grep -q "app_main;$1;.*absorb_\[i\];.*mix_\[i\]" "$T/s.folded" &&
		"$U" export "$s" -o "$T/s.svg" && grep -q 'mix (' "$T/s.svg" &&
		"$U" report -n 0 "$s" | grep 'mix .*\[inlined\]' &&
		"$U" export "$s" -o "$T/s.pb.gz" && "$U" export "$T/s.pb.gz" -f folded |
		grep -q "app_main;$1;.*absorb_\[i\];.*mix_\[i\]" &&
		"$U" report --html "$T/s.html" --force "$s" && in_page 'mix' "$T/s.html" || return 1
	"$U" export "$s" --no-inline -f folded -o "$T/s.folded" && ! grep -q '_\[i\]\|mix' "$T/s.folded" &&
		"$U" report -n 0 --no-inline "$s" >"$T/report" && [ -s "$T/report" ] && ! grep 'inlined' "$T/report"
}

# As the guide says: the hot function, and then its instructions.
guided() {
	"$U" guide | grep -q "^     uniscope annotate --json before.uniscope 'FUNCTION'$" || return 1
	"$U" report --json --top 10 "$s" >"$T/top.json" && hot=$(python3 "$here/inline_judge.py" hot "$T/top.json") || return 1
	"$U" annotate --json -e "$elf" "$s" "$hot" >"$T/annotate.json" && "$U" report --json --top 10 --focus "$hot" "$s" >"$T/focus.json" &&
		python3 "$here/inline_judge.py" guided "$T/top.json" "$T/focus.json" "$T/annotate.json" &&
		/usr/bin/python3 "$here/schema.py" --file annotate "$SRC" "$T/annotate.json" || return 1
	"$U" annotate -e "$elf" "$s" "$hot [inlined]" >"$T/out" && grep -F "inlined    here: $hot. " "$T/out"
}

# The same guest by an image without debug data: what is inlined is not gone.
unequal() {
	objcopy --strip-debug "$elf" "$T/plain.elf" && timeout 180 "$U" record "$target" -q -F 499 -d 3 -e "$T/plain.elf" -o "$T/plain.uniscope" \
		--overwrite || return 1
	"$U" diff --all --max 0 "$s" "$s" >"$T/out"
	grep -q ' self   .*mix$' "$T/out" && ! grep 'no inlined functions' "$T/out" || return 1
	for pair in "$s $T/plain.uniscope" "$T/plain.uniscope $s"; do
		"$U" diff --all --max 0 $pair >"$T/out"
		cat "$T/out"
		grep -q "^note     $T/plain.uniscope has no inlined functions" "$T/out" && ! grep 'inlined)$\|mix$' "$T/out" || return 1
	done
}

raw() { # MANGLED
	"$U" export "$s" --no-demangle -f folded -o "$T/s.folded" && grep -q "app_main;$1" "$T/s.folded"
}

now() { # SERVE: the chain as it is at the moment
	"$U" stacks "$target" -e "$elf" --lines >"$T/out" && cat "$T/out" &&
		grep -q "$1+0x" "$T/out" && grep -q '#0 .*burn (.*:[0-9]*) \[inlined\]' "$T/out"
}

live() { # top has them, too
	"$U" top "$target" -e "$elf" --batch --rows 0 >"$T/out" 2>&1
	cat "$T/out" && grep -q 'mix' "$T/out" &&
		"$U" top "$target" -e "$elf" --batch --rows 0 --no-inline >"$T/out" 2>&1 && cat "$T/out" && ! grep -q 'mix' "$T/out"
}

images='cxx-gcc-fp cxx-clang-fp rust-gcc-fp rust-gcc-nofp'
# A session has the addresses, and the image the names: so one way to sample is enough.
for image in $(by_default cxx-clang-fp "$images"); do
	source=cxx.cc serve='server::Engine::serve' mangled=_ZNK6server6Engine5serveEv
	case $image in
	rust-*) source=rust.rs serve='<*labrust::server::Engine>*::serve' mangled='_[RZ]N.*serve' ;;
	esac
	if [ ! -e "$BUILD/lab/$image.elf" ]; then
		skip "$image under $accel" 'it was not built: is g++, clang or rustc missing?'
		continue
	fi
	check "$image under $accel is recorded" records "$image"
	check "$image under $accel: inlined names and lines as in the source" names "$source"
	check "$image under $accel: folded and svg mark them" marked "$serve"
	check "$image under $accel: names as the linker has them" raw "$mangled"
	# The guest spends a hundredth of its time elsewhere.
	elf=$BUILD/lab/$image.elf
	in_all check "$image under $accel: diff with a session without debug data" unequal
	check "$image under $accel: the guide leads to the inlined function's lines" guided
	check "$image under $accel: stacks shows them now" wait_for 60 now "$serve"
	in_all check "$image under $accel: top shows them" live
done
finish
