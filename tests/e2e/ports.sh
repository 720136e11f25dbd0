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
		-DUNI_TRACE_GS=64 "-I$src/tests/ports/$kernel" "-I$src/include" "-I$src/guest" "-I$src/guest/x86_64" \
		"$src/guest/ports/$kernel/$1"
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for f in start switch ticks; do
	compiles unikraft $f.c
done
# Its mutexes, in a program.
locks()
{
	gcc -std=gnu11 -Wall -Wextra -Werror -O2 -o "$out/locks" "-I$src/guest/ports/unikraft/locks" "-I$src/tests/ports/unikraft" \
		"-I$src/include" "$src/tests/ports/unikraft/locks.c" && "$out/locks" | tee "$out/told" && [ "$(cat "$out/told")" = 'tg tgt wtg' ]
}
what='unikraft: mutexes tell who has them'
check locks
compiles minios self.c
compiles nanos self.c
compiles nanos nmi.S

# Files that a port's make file links, with these variables set: all are there, and boot.c only if it is asked for.
cat >"$out/unikraft.mk" <<'M'
include $(PORT)/Makefile.uk
$(info $(LIBUNISCOPE_TRACE_SRCS-y) $(LIBUNISCOPE_TRACE_BOOT_FLAGS-y))
all:
M
cat >"$out/minios.mk" <<'M'
include $(PORT)/uniscope.mk
$(info $(foreach o,$(UNISCOPE_OBJS),$(firstword $(wildcard $(addsuffix .*,$(addprefix $(UNISCOPE)/guest/,$(patsubst o/uniscope_%.o,%,$o) \
	$(patsubst o/uniscope_%.o,x86_64/%,$o) $(patsubst o/uniscope_%.o,ports/minios/%,$o)))) missing-$o)))
all:
M
links()
{
	port=$1 files=$2 boot=$3
	shift 3
	make -s -f "$out/$port.mk" all "PORT=$src/guest/ports/$port" "UNISCOPE=$src" OBJ_DIR=o TARGET=t "$@" >"$out/linked"
	cat "$out/linked"
	for f in $(cat "$out/linked"); do
		case $f in -D*) ;; *) [ -r "$f" ] || return 1 ;; esac
	done
	[ "$(grep -o '[^ ]*\.[cS]\>' "$out/linked" | wc -l)" = "$files" ] || return 1
	[ "$(grep -c '/guest/boot\.c' "$out/linked")" = "$boot" ]
}
what='unikraft: what is linked is there; boot.c is not'
check links unikraft 8 0 LIBUNISCOPE_TRACE_BASE="$src/guest/ports/unikraft"
what='unikraft: with CONFIG_LIBUNISCOPE_TRACE_BOOT boot.c is linked, with its size; with locks, the table'
check links unikraft 10 1 LIBUNISCOPE_TRACE_BASE="$src/guest/ports/unikraft" CONFIG_LIBUNISCOPE_TRACE_BOOT=y \
	CONFIG_LIBUNISCOPE_TRACE_BOOT_KIB=640 CONFIG_LIBUNISCOPE_TRACE_LOCKS=y
what='unikraft: that ring has the size of the menu'
check grep -q -e '-DUNI_TRACE_BOOT_KIB=640' "$out/linked"
what='minios: what is linked is there; boot.c is not'
check links minios 10 0
what='minios: with UNISCOPE_TRACE=1 boot.c is linked'
check links minios 11 1 UNISCOPE_TRACE=1

# Nanos' non-maskable tick, as a program: tests/ports/nanos/tick.c.
what='nanos: the tick leaves all as it was, and finds stacks and threads'
ticks()
{
	gcc -std=gnu11 -Wall -Wextra -Werror -DUNI_TRACE_GS=64 -g -O2 -o "$out/tick" "-I$src/tests/ports/nanos" "-I$src/include" \
		"-I$src/guest/ports" "$src/tests/ports/nanos/tick.c" "$src/guest/ports/nanos/nmi.S" && "$out/tick"
}
check ticks

# A tree with the same functions as the kernel.
trees()
{
	rm -rf "$out/m" "$out/n"
	mkdir -p "$out/m/arch/x86" "$out/n/platform/pc" "$out/n/src/kernel" "$out/n/src/x86_64"
	echo 'all:' | tee "$out/m/Makefile" >"$out/n/platform/pc/Makefile"
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
	cat >"$out/m/sched.c" <<'C'
void schedule(void)
{
    next = choose();
    if (prev != next) switch_threads(prev, next);
}
C
	printf '    long tmp; /* +32 */\n    /* End of fields touched by kernel entries */\n' >"$out/n/src/x86_64/kernel_machine.h"
	cat >"$out/n/src/kernel/init.c" <<'C'
static void read_symbols(void)
{
}

void kernel_runtime_init(int heaps)
{
    start_secondary_cores(heaps);
    run();
}
C
	cat >"$out/n/src/kernel/kernel.h" <<'C'
static inline void set_current_context(cpuinfo ci, context c)
{
    ci->m.current_context = c;
}
C
	cat >"$out/n/src/kernel/kernel.c" <<'C'
void context_switch_finish(context prev, context next)
{
    if (prev != next)
        set_current_context(current_cpu(), next);
}
C
	printf '    } :data\n\n    PROVIDE(bss_start = .);\n    .bss:\n' >"$out/n/platform/pc/linker_script"
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
@@ -0,0 +1,2 @@
+extern void uniscope_switch(struct thread *prev, struct thread *next) __attribute__((weak));
+
@@ -3,0 +6,2 @@
+    if (uniscope_switch && prev != next)
+        uniscope_switch(prev, next);
'
what='minios: a second time, nothing is put in'
check placed minios m ''
what='nanos: the lines are at their places'
check placed nanos n '@@ -1,0 +2,4 @@
+
+ifneq ($(UNISCOPE),)
+include $(UNISCOPE)/guest/ports/nanos/uniscope.mk
+endif
@@ -2,0 +3,2 @@
+    __patchable_function_entries : { *(__patchable_function_entries) } :data    /* for uniscope */
+
@@ -4,0 +5,2 @@
+extern void uniscope_start(void) __attribute__((weak));
+
@@ -7,0 +10,2 @@
+    if (uniscope_start)
+        uniscope_start();
@@ -2,0 +3,2 @@
+    if (uniscope_switch && prev == next)
+        uniscope_switch(prev, next);
@@ -0,0 +1,2 @@
+extern void uniscope_switch(context prev, context next) __attribute__((weak));
+
@@ -2,0 +5,2 @@
+    if (uniscope_switch && ci->m.current_context != c)
+        uniscope_switch(ci->m.current_context, c);
@@ -2,0 +3,3 @@
+
+    /* uniscope: struct uni_trace_cpu, +64 */
+    u8 uniscope[64] __attribute__((aligned(64)));
'
trees
sed -i 's/start_secondary_cores/start_cores/' "$out/n/src/kernel/init.c"
what='nanos: no such place, and nothing is changed'
check refused nanos n
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
