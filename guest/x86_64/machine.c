/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the tracer for x86_64 that is no hot path. */
#include "uniscope/trace.h"

#include "cpu.h"
#include "machine.h"
#include "ring.h"
#include "saved.h"

/* hooks.S, returns.S */
void uni_trace_entry(void);
void uni_trace_entry_only(void);
void uni_trace_entry_any(void);
void uni_trace_entry_args(void);
void uni_trace_entry_start(void);
void uni_trace_entry_stop(void);
void uni_trace_entry_freeze(void);
void uni_trace_entry_return(void) __attribute__((weak));
void uni_trace_exit(void);
void uni_trace_exit_lite(void);
void uni_trace_exit_min(void);
void uni_trace_exit_any(void);
void uni_trace_exit_value(void);
void __x86_return_thunk(void);

/* Called from hooks.S. */
void uni_trace_slow_entry(const struct saved *s);
void uni_trace_slow_last(const struct saved *s);
void uni_trace_slow_args(const struct saved *s);
void uni_trace_slow_exit(const struct saved *s);
void uni_trace_slow_value(const struct saved *s);
void uni_trace_slow_one_less(const struct saved *s);
void uni_trace_slow_close(const struct saved *s);

static struct uni_trace_hooks hooks;

static void extended(unsigned class, const uint64_t *words, unsigned nr)
{
	uni_trace_write(uni_trace_this_cpu(),
		UNI_TRACE_EXT | (uint64_t)nr << 4 | (uint64_t) class << 16, words, nr);
}

/* No exits come in this mode. */
static int entries_only(void)
{
	return *(volatile uint32_t *)&uni_trace_head.control.mode == UNI_TRACE_FUNCTION;
}

void uni_trace_slow_entry(const struct saved *s)
{
	uint32_t first = (uint32_t)s->r11;
	uint64_t call = first - 5, entry = call | (uint64_t)UNI_TRACE_ODD_ENTRY << 32;

	if ((first & 15) == UNI_TRACE_ENTRY || (first & 15) == UNI_TRACE_ENTRY_BRANCH)
		uni_trace_write(uni_trace_this_cpu(),
			entries_only() ? (first & ~15u) | UNI_TRACE_CALL : first, (void *)0, 0);
	else if (entries_only())
		extended(UNI_TRACE_CLASS_CALL, &call, 1);
	else
		extended(UNI_TRACE_CLASS_ENTRY, &entry, 1);
}

/* Nothing is recorded from here on, until a trigger starts it again: the record tells readers
 * so. */
void uni_trace_slow_last(const struct saved *s)
{
	uint64_t function = (uint32_t)s->r11 - 5;

	function = (uint32_t)function | (uint64_t)UNI_TRACE_STOPS << 32;
	extended(UNI_TRACE_CLASS_CALL, &function, 1);
}

void uni_trace_slow_args(const struct saved *s)
{
	const uint64_t words[] = { s->rdi, s->rsi, s->rdx, s->rcx, s->r8, s->r9,
		(uint32_t)(s->r11 - 5) };

	extended(entries_only() ? UNI_TRACE_CLASS_CALL_ARGS : UNI_TRACE_CLASS_ENTRY_ARGS, words, 7);
}

void uni_trace_slow_exit(const struct saved *s)
{
	uni_trace_write(uni_trace_this_cpu(), (uint32_t)s->r11, (void *)0, 0);
}

void uni_trace_slow_value(const struct saved *s)
{
	const uint64_t words[] = { s->rax, s->rdx, (uint32_t)s->r11 };

	extended(UNI_TRACE_CLASS_EXIT_VALUE, words, 3);
}

/* A record was taken back, and the ring moved on before its words were counted. */
void uni_trace_slow_one_less(const struct saved *s)
{
	struct uni_trace_cpu *c = uni_trace_this_cpu();
	uint64_t now = *(volatile uint64_t *)&c->wptr & ~((uint64_t)UNI_TRACE_SUB_SIZE - 1);

	(void)s;
	uni_machine_fetch_add(&((struct uni_trace_sub *)now)->extra_before, (uint64_t)-1);
}

void uni_trace_slow_close(const struct saved *s)
{
	uni_trace_close((struct uni_trace_sub *)s->rcx);
}

uint64_t uni_trace_text(void)
{
	return (uint64_t)uni_trace_entry;
}

void uni_trace_machine_init(struct uni_trace_head *h)
{
	static const uint8_t kinds[16] = {
		[UNI_TRACE_EXIT_UNALIGNED] = UNI_TRACE_KIND_EXIT,
		[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT,
		[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY,
		[UNI_TRACE_ENTRY_BRANCH] = UNI_TRACE_KIND_ENTRY,
		[UNI_TRACE_LEAF] = UNI_TRACE_KIND_LEAF,
		[UNI_TRACE_LEAF_BRANCH] = UNI_TRACE_KIND_LEAF,
		[UNI_TRACE_CALL] = UNI_TRACE_KIND_CALL,
		[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC,
		[UNI_TRACE_EXT] = UNI_TRACE_KIND_EXT,
	};

	for (unsigned i = 0; i < sizeof(kinds); i++)
		h->kinds[i] = kinds[i];
	hooks.entry = (uint64_t)uni_trace_entry;
	hooks.entry_only = (uint64_t)uni_trace_entry_only;
	hooks.entry_any = (uint64_t)uni_trace_entry_any;
	hooks.exit = (uint64_t)uni_trace_exit;
	hooks.exit_lite = (uint64_t)uni_trace_exit_lite;
	hooks.exit_min = (uint64_t)uni_trace_exit_min;
	hooks.exit_any = (uint64_t)uni_trace_exit_any;
	hooks.entry_args = (uint64_t)uni_trace_entry_args;
	hooks.exit_value = (uint64_t)uni_trace_exit_value;
	hooks.entry_start = (uint64_t)uni_trace_entry_start;
	hooks.entry_stop = (uint64_t)uni_trace_entry_stop;
	hooks.entry_freeze = (uint64_t)uni_trace_entry_freeze;
	hooks.plain_exit = (uint64_t)__x86_return_thunk;
	hooks.entry_return = (uint64_t)uni_trace_entry_return;
	h->hooks = (uint64_t)&hooks;
}
