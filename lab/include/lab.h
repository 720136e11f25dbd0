/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface for apps of the lab. An app defines lab_app_name, app_main() and maybe
 * app_finish().
 */
#ifndef LAB_H
#define LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lab_arch.h" /* lab_burn() and others, of the architecture */
#include "lab_truth.h"

/* Part of the known call graph: never inlined, cloned or split, so that paths are certain. */
#ifdef __clang__
#define LAB_FUNC __attribute__((noinline))
#else
#define LAB_FUNC __attribute__((noipa))
#endif

#define LAB_EXIT_OK   0x10 /* QEMU's exit status is (code << 1) | 1: 33 */
#define LAB_EXIT_FAIL 0x11 /* 35 */
#define LAB_EXIT_TRAP 0x40 /* + vector: 129 + 2 * vector */

extern struct lab_truth lab_truth;
extern const char lab_app_name[];
void app_main(void);
void app_finish(void); /* optional, once after the last app_main() */

/*
 * Console, common/print.c. lab_printf knows %s %c %d %u %x %lu %ld %lx %p %% with 0 and width, and
 * always goes lab_printf -> lab_puts -> lab_putc -> uart_outb.
 */
void lab_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int lab_snprintf(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void lab_puts(const char *s);
void lab_putc(char c);

_Noreturn void lab_exit(unsigned code);
_Noreturn void lab_fail(const char *why);

/* Kernel command line, common/cmdline.c: words `key=value`. */
void lab_cmdline_init(const char *text);
uint64_t lab_arg(const char *key, uint64_t dflt);
bool lab_arg_is(const char *key, const char *value); /* value NULL: whether there is one */

/* `rounds=`; without it the app's default, scaled by `scale=` (per mille), at least 1. */
uint64_t lab_rounds(uint64_t dflt);
/* `secs=` or `msecs=` is over: leave the loops. Reads the TSC. */
bool lab_stop(void);

size_t lab_strlen(const char *s);
int lab_strcmp(const char *a, const char *b);
void *memcpy(void *dst, const void *src, size_t size);
void *memset(void *dst, int c, size_t size);
void *memmove(void *dst, const void *src, size_t size);
int memcmp(const void *a, const void *b, size_t size);

/*
 * Truth. LAB_FN(f) declares f as a function of the books; each LAB_ENTER(f) needs its LAB_LEAVE(f)
 * on the same vCPU and the same thread. The pair costs about 100 instructions: enter where at least
 * 10000 are spent. LAB_COUNT(f) counts n calls without looking at the time.
 */
struct lab_fn {
	const char *name;
	uint64_t index;
};

#define LAB_FN(f) \
	static struct lab_fn lab_fn_##f __attribute__((section("lab_fns"), used)) = { #f, 0 }
#define LAB_ENTER(f)	lab_enter((unsigned)lab_fn_##f.index)
#define LAB_LEAVE(f)	lab_leave((unsigned)lab_fn_##f.index)
#define LAB_COUNT(f, n) lab_count((unsigned)lab_fn_##f.index, (n))

void lab_enter(unsigned fn);
void lab_leave(unsigned fn);
void lab_count(unsigned fn, uint64_t n);
void lab_truth_init(void);
void lab_truth_start(void); /* this vCPU's books open now */
void lab_truth_close(void); /* charge what is left */
void lab_truth_print(void);
void lab_heartbeat(void);

/* Architecture, x86_64/ or aarch64/. */
uint64_t lab_tsc(void);
unsigned lab_cpu_id(void);
bool lab_serial_pending(void);
void lab_relax(void);

/*
 * A stack of its own at a far-away address, 4 KiB pages in reversed physical order, unmapped guard
 * pages around it. Returns its top. Never freed.
 */
uint64_t lab_stack_alloc(unsigned nr_pages);
/* nr zeroed pages of RAM, contiguous, in the linear map of 2 MiB leaves. Never freed. */
void *lab_linear_alloc(unsigned nr);
/* Calls fn(arg) on the stack that ends at top; the frame-pointer chain goes on to the caller. */
void lab_on_stack(void (*fn)(void *arg), void *arg, uint64_t top);

/*
 * Loads the ELF program that came beside the image (-initrd), x86_64/program.c, to a page-aligned
 * address chosen by the TSC. Each segment has pages of its own, only code is executable, and
 * DT_DEBUG points to a link map. Returns its entry point.
 */
uint64_t lab_program_load(void);

/* Bounds of the stack that kmain runs on. */
void lab_main_stack(uint64_t *low_ret, uint64_t *high_ret);

void lab_crash_if_asked(void); /* crash=, x86_64/crash.c */

/* Timer interrupt, x86_64/timer.c; comes in only in lab_halt() or between enable and disable. */
void lab_timer_start(unsigned hz, void (*hook)(void));
uint64_t lab_ticks(void);
void lab_halt(void);
/* hold=1: for ever, to be looked at; halted, but for 100 heartbeats a second. */
void lab_hold(void);
void lab_irq_enable(void);
void lab_irq_disable(void);
/* After each of the next nr instructions of this vCPU hook is called, x86_64/step.c. */
void lab_step_each(uint64_t nr, void (*hook)(void));

/*
 * Further vCPUs, common/smp.c: starts all there are (up to LAB_MAX_CPUS), which run fn(cpu) and
 * then halt for good. Returns how many there are, this one included. Once only.
 */
unsigned lab_smp_start(void (*fn)(unsigned cpu));
void lab_smp_wait(void); /* until all have returned from fn */
/* Bounds of the stack of a further vCPU. */
void lab_cpu_stack(unsigned cpu, uint64_t *low_ret, uint64_t *high_ret);

/* common/trace.c: the tracer of guest/, in the images that have it. */
#ifdef LAB_TRACE
struct lab_thread;
void lab_trace_init(void);
void lab_trace_switch(const struct lab_thread *from, const struct lab_thread *to);
void lab_trace_born(const struct lab_thread *by, const struct lab_thread *t);
void lab_trace_exit(const struct lab_thread *t);
#else
static inline void lab_trace_init(void)
{
}
#define lab_trace_switch(from, to) ((void)0)
#define lab_trace_born(by, t)	   ((void)0)
#define lab_trace_exit(t)	   ((void)0)
#endif
void lab_inside_start(void);	 /* x86_64/inside.c: samples itself, serves the tracer on a port */
void lab_inside_start_cpu(void); /* each further vCPU does */
/* x86_64/: what the tracer keeps for each vCPU. */
struct uni_trace_cpu;
struct uni_trace_cpu *lab_trace_cpu(unsigned cpu);
/* Registers of a device: what reads them changes them. */
void *lab_device(void);
/* The address that maps physical address 0, and the bytes of RAM from there on. */
void *lab_linear_ram(uint64_t *size_ret);

void kmain(void);

#endif
