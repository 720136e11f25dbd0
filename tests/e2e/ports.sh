#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ports SOURCE: the C files of guest/ports compile against stand-ins for the kernels that they are
# for (tests/ports): names, types and warnings. guest/ports/place puts the calls where they belong,
# or changes nothing. No kernel is built.
set -eu
src=$1
nr=0 bad=0

check()
{
	nr=$((nr + 1))
	if "$@" >"$out/log" 2>&1; then
		echo "ok $nr - $what"
	else
		echo "not ok $nr - $what"
		sed 's/^/# /' "$out/log"
		bad=1
	fi
}

compiles()
{
	kernel=$1 what="$1: $2 compiles"
	shift
	check gcc -std=gnu11 -Wall -Wextra -Werror -ffreestanding -mgeneral-regs-only -O2 -c -o "$out/o" \
		"-I$src/tests/ports/$kernel" "-I$src/include" "-I$src/guest" "-I$src/guest/x86_64" \
		"$src/guest/ports/$kernel/$1"
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for f in start switch ticks; do
	compiles unikraft $f.c
done
compiles minios self.c

# A tree with the same functions as the kernel.
trees()
{
	rm -rf "$out/m"
	mkdir -p "$out/m/arch/x86"
	echo 'all:' >"$out/m/Makefile"
	cat >"$out/m/arch/x86/time.c" <<'C'
static void timer_handler(int port, void *regs);

static void timer_handler(int port, void *regs)
{
    rearm();
}

void init_time(void)
{
    bind(&timer_handler);
}
C
	cat >"$out/m/kernel.c" <<'C'
void start_kernel(void)
{
    init_mm();
    init_xenbus();
    app_main();
}
C
}

# PORT TREE FILE: what is put in, and where.
placed()
{
	cp -r "$out/$2" "$out/was"
	sh "$src/guest/ports/place" "$1" "$out/$2" && diff -r -U0 "$out/was" "$out/$2" | grep -v '^\(diff\|---\|+++\)' >"$out/diff"
	rm -rf "$out/was"
	cat "$out/diff"
	printf '%s' "$3" | diff - "$out/diff"
}

# PORT TREE: status 1, and the tree is as before.
refused()
{
	cp -r "$out/$2" "$out/was"
	! sh "$src/guest/ports/place" "$1" "$out/$2" || return 1
	diff -r "$out/was" "$out/$2" && rm -rf "$out/was"
}

trees
what='minios: the lines are at their places'
check placed minios m '@@ -1,0 +2,4 @@
+
+ifneq ($(UNISCOPE),)
+include $(UNISCOPE)/guest/ports/minios/uniscope.mk
+endif
@@ -2,0 +3,2 @@
+extern void uniscope_tick(const void *regs) __attribute__((weak));
+
@@ -4,0 +7,2 @@
+    if (uniscope_tick)
+        uniscope_tick(regs);
@@ -0,0 +1,2 @@
+extern void uniscope_start(void) __attribute__((weak));
+
@@ -4,0 +7,2 @@
+    if (uniscope_start)
+        uniscope_start();
'
what='minios: a second time, nothing is put in'
check placed minios m ''
trees
sed -i 's/init_xenbus();/&\n    init_xenbus();/' "$out/m/kernel.c"
what='minios: two such places, and nothing is changed'
check refused minios m
trees
sed -i 's/timer_handler/tick_handler/' "$out/m/arch/x86/time.c"
what='minios: no such place, and nothing is changed'
check refused minios m
echo "1..$nr"
exit $bad
