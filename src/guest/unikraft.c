/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unikraft 0.11 or later, whose schedulers have a list of their threads. uk_sched_head leads from
 * scheduler to scheduler. A thread that was switched out goes on at the end of ukarch_ctx_switch().
 */
#include "guest/model.h"

#define SCHEDULERS_MAX 16

enum { HEAD, CURRENT, COOP_YIELD };
enum {
	IP,
	SP,
	FLAGS,
	NAME,
	NEXT,
	WAKEUP,
	AUXSP,
	SCHED,
	NR_THREAD,
	FIRST = NR_THREAD,
	NEXT_SCHED,
	YIELD,
	NR_SCHED,
	COOP_SCHED = NR_SCHED,
	COOP_IDLE,
	NR,
};

static const char *const thread_paths[NR_THREAD] = { "ctx.ip", "ctx.sp", "flags", "name",
	"thread_list.tqe_next", "wakeup_time", "?auxsp", "?sched" };
static const char *const sched_paths[NR_SCHED - NR_THREAD] = { "thread_list.tqh_first", "next",
	"?yield" };
/* The cooperative scheduler, which yields by schedcoop_schedule(), has its idle thread in itself
 * (lib/ukschedcoop/schedcoop.c). */
static const char *const coop_paths[NR - NR_SCHED] = { "sched", "idle" };

static const struct uni_model_struct structs[] = { { "uk_thread", NR_THREAD, thread_paths },
	{ "uk_sched", NR_SCHED - NR_THREAD, sched_paths },
	{ "?schedcoop", NR - NR_SCHED, coop_paths }, { 0 } };

static void each_unikraft_thread(struct uni_look *look)
{
	uint64_t sched, first;

	if (!uni_look_u64(look, look->m->sym[HEAD], &sched)) {
		(void)uni_look_cut(look, UNI_THREADS_FAULT);
		return;
	}
	for (unsigned i = 0; sched != 0 && i < SCHEDULERS_MAX; i++) {
		uint64_t next;

		if (!uni_look_member(look, sched, FIRST, &first) ||
			!uni_look_member(look, sched, NEXT_SCHED, &next)) {
			(void)uni_look_cut(look, UNI_THREADS_FAULT);
			return;
		}
		uni_look_list(look, first, NEXT);
		sched = next;
	}
}

/* The flags moved up by one bit when the flag for an auxiliary stack was added (0.17). */
static uint8_t state_of(const struct uni_look *look, uint64_t flags, uint64_t wakeup)
{
	unsigned shift = look->m->member[AUXSP].found ? 1 : 0;

	if (flags & 0x8u << shift)
		return UNI_THREAD_EXITED;
	if (flags & 0x4u << shift)
		return UNI_THREAD_READY;
	return wakeup != 0 ? UNI_THREAD_WAITING : UNI_THREAD_BLOCKED;
}

static bool is_idle(struct uni_look *look, uint64_t thread)
{
	const struct uni_member *m = look->m->member;
	uint64_t sched, yield;

	return m[COOP_SCHED].found && m[COOP_IDLE].found && look->m->sym[COOP_YIELD] != 0 &&
	       uni_look_member(look, thread, SCHED, &sched) &&
	       sched - m[COOP_SCHED].offset + m[COOP_IDLE].offset == thread &&
	       uni_look_member(look, sched, YIELD, &yield) && yield == look->m->sym[COOP_YIELD];
}

static bool read_thread(struct uni_look *look, struct uni_guest_thread *t)
{
	uint64_t ip, sp, flags, wakeup, name;

	if (!uni_look_member(look, t->object, IP, &ip) ||
		!uni_look_member(look, t->object, SP, &sp) ||
		!uni_look_member(look, t->object, FLAGS, &flags) ||
		!uni_look_member(look, t->object, WAKEUP, &wakeup) ||
		!uni_look_member(look, t->object, NAME, &name))
		return false;
	t->state = is_idle(look, t->object) ? UNI_THREAD_IDLE : state_of(look, flags, wakeup);
	if (name != 0)
		uni_look_text(look, name, UNI_THREAD_NAME_MAX - 1, t->name, sizeof(t->name));
	if (look->list != NULL)
		uni_look_saved(look, ip, sp, t);
	return true;
}

/* One word for each CPU, in the order in which the CPUs were started. */
static uint64_t current_unikraft_thread(struct uni_look *look, uint32_t vcpu)
{
	uint64_t object = 0;

	if (vcpu < look->m->sym_size[CURRENT] / 8)
		(void)uni_look_u64(look, look->m->sym[CURRENT] + (uint64_t)vcpu * 8, &object);
	return object;
}

const struct uni_guest_ops uni_guest_unikraft = {
	.name = "unikraft",
	.title = "Unikraft",
	.syms = { [HEAD] = "uk_sched_head",
		[CURRENT] = "__uk_sched_thread_current",
		[COOP_YIELD] = "?schedcoop_schedule" },
	.structs = structs,
	.each = each_unikraft_thread,
	.read = read_thread,
	.current = current_unikraft_thread,
};
