/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the tracer for x86_64 that is no hot path. */
#include "uniscope/trace.h"

#include "conditions.h"
#include "cpu.h"
#include "machine.h"
#include "ring.h"
#include "saved.h"

/* hooks.S, returns.S */
void uni_trace_entry(void);
void uni_trace_entry_only(void);
void uni_trace_entry_caller(void);
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
void uni_trace_slow_start(const struct saved *s);
void uni_trace_slow_stop(const struct saved *s);
void uni_trace_slow_freeze(const struct saved *s);
void uni_trace_slow_args(const struct saved *s);
void uni_trace_slow_exit(const struct saved *s);
void uni_trace_slow_value(const struct saved *s);
void uni_trace_slow_one_less(const struct saved *s);
void uni_trace_slow_one_more(const struct saved *s);
void uni_trace_slow_caller(const struct saved *s);
void uni_trace_slow_close(const struct saved *s);

static struct uni_trace_hooks hooks;

#define CALL 0xe8 /* rel32: SDM volume 2, CALL */

static void extended(unsigned class, const uint64_t *words, unsigned nr)
{
	uni_trace_write(uni_trace_this_cpu(),
		UNI_TRACE_EXT | (uint64_t)nr << 4 | (uint64_t) class << 16, words, nr);
}

/* No exits come in this mode. */
static int entries_only(void)
{
	return UNI_TRACE_ENTRIES_ONLY(*(volatile uint32_t *)&uni_trace_head.control.mode);
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

/* Does the place that called still call this hook? `r11` is the call's return address. */
static int still_calls(const struct saved *s, uint64_t hook)
{
	int32_t to = *(const volatile int32_t *)(s->r11 - 4);

	return *(const volatile uint8_t *)(s->r11 - 5) == CALL && s->r11 + (uint64_t)to == hook;
}

/* Sets the word for a trigger. A host may have stopped this CPU on its way here, and have chosen
 * other functions since. Then the word gets what the host asked for. The place is read last,
 * so no such choice goes unseen. */
static void set_for(
	const struct saved *s, uint64_t hook, uint32_t *word, uint32_t to, const uint32_t *asked)
{
	uint32_t was = __atomic_exchange_n(word, to, __ATOMIC_SEQ_CST);

	if (was != to && !still_calls(s, hook))
		__atomic_store_n(
			word, asked ? *(const volatile uint32_t *)asked : 0, __ATOMIC_SEQ_CST);
}

void uni_trace_slow_start(const struct saved *s)
{
	struct uni_trace_control *control = &uni_trace_head.control;

	set_for(s, hooks.entry_start, &control->enable, 1, &control->enable_asked);
}

/* Nothing is recorded from here on, until a trigger starts it again: the record tells readers
 * so. */
void uni_trace_slow_stop(const struct saved *s)
{
	struct uni_trace_control *control = &uni_trace_head.control;
	uint64_t function = (uint32_t)s->r11 - 5;

	function = (uint32_t)function | (uint64_t)UNI_TRACE_STOPS << 32;
	extended(UNI_TRACE_CLASS_CALL, &function, 1);
	set_for(s, hooks.entry_stop, &control->enable, 0, &control->enable_asked);
}

void uni_trace_slow_freeze(const struct saved *s)
{
	set_for(s, hooks.entry_freeze, &uni_trace_head.frozen, 1, (void *)0);
	uni_trace_settle_all();
}

void uni_trace_slow_args(const struct saved *s)
{
	int only = entries_only();
	const uint64_t call = only ? saved_call(s) : (uint32_t)(s->r11 - 5), place = saved_place(s);
	uint64_t words[UNI_TRACE_ARGS + UNI_TRACE_READ_WORDS + 1] = { s->rdi, s->rsi, s->rdx,
		s->rcx, s->r8, s->r9 };
	unsigned nr = UNI_TRACE_ARGS;

	if (uni_trace_leaves_out(words, (uint32_t)call, place, !only))
		return;
	nr += uni_trace_read_at_call((uint32_t)call, place, !only, words + nr);
	words[nr++] = call;
	extended(only ? UNI_TRACE_CLASS_CALL_ARGS : UNI_TRACE_CLASS_ENTRY_ARGS, words, nr);
}

void uni_trace_slow_exit(const struct saved *s)
{
	uni_trace_write(uni_trace_this_cpu(), (uint32_t)s->r11, (void *)0, 0);
}

void uni_trace_slow_value(const struct saved *s)
{
	uint64_t words[2 + UNI_TRACE_READ_WORDS + 1] = { s->rax, s->rdx };
	int more = uni_trace_read_at_return(s->r11, words + 2);

	if (more < 0)
		return;
	words[2 + more] = (uint32_t)s->r11;
	extended(UNI_TRACE_CLASS_EXIT_VALUE, words, (unsigned)more + 3);
}

/* A call whose record the hook itself could not write. */
void uni_trace_slow_caller(const struct saved *s)
{
	const uint64_t call = saved_call(s);

	extended(UNI_TRACE_CLASS_CALL, &call, 1);
}

/* The ring moved on before a record's second word was counted, or taken back. */
static void count_before(uint64_t words)
{
	struct uni_trace_cpu *c = uni_trace_this_cpu();
	uint64_t now = *(volatile uint64_t *)&c->wptr & ~((uint64_t)UNI_TRACE_SUB_SIZE - 1);

	uni_machine_fetch_add(&((struct uni_trace_sub *)now)->extra_before, words);
}

void uni_trace_slow_one_less(const struct saved *s)
{
	(void)s;
	count_before((uint64_t)-1);
}

void uni_trace_slow_one_more(const struct saved *s)
{
	(void)s;
	count_before(1);
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
	hooks.entry_caller = (uint64_t)uni_trace_entry_caller;
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
	uni_trace_conditions_init(h);
}
