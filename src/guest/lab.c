/* SPDX-License-Identifier: BSD-2-Clause */
/* The guests of our lab: lab/include/lab_thread.h, whose layout is fixed. */
#include "base/checked.h"
#include "guest/model.h"

enum { THREADS, CURRENT, RESUME };
enum { NEXT, SAVED_SP, WAIT_ON, ID, STATE, NAME, NR };

static const char *const paths[NR] = { "next", "saved_rsp", "wait_on", "id", "state", "name" };

static const struct uni_model_struct structs[] = { { "lab_thread", NR, paths }, { 0 } };

static const struct uni_member known[NR] = {
	{ "next", false, true, 0, 8 },
	{ "saved_rsp", false, true, 8, 8 },
	{ "wait_on", false, true, 32, 8 },
	{ "id", false, true, 56, 4 },
	{ "state", false, true, 60, 4 },
	{ "name", false, true, 64, 32 },
};

/* Indexed by enum lab_thread_state. */
static const uint8_t states[] = { UNI_THREAD_RUNNING, UNI_THREAD_READY, UNI_THREAD_SLEEPING,
	UNI_THREAD_BLOCKED, UNI_THREAD_EXITED };

static void each_lab_thread(struct uni_look *look)
{
	uint64_t first;

	if (uni_look_u64(look, look->m->sym[THREADS], &first))
		uni_look_list(look, first, NEXT);
	else
		(void)uni_look_cut(look, UNI_THREADS_FAULT);
}

static bool read_thread(struct uni_look *look, struct uni_guest_thread *t)
{
	uint64_t state, sp;

	if (!uni_look_member(look, t->object, ID, &t->number) ||
		!uni_look_member(look, t->object, STATE, &state) ||
		!uni_look_member(look, t->object, WAIT_ON, &t->wait_on) ||
		!uni_look_member(look, t->object, SAVED_SP, &sp))
		return false;
	t->has_number = true;
	t->state = state < uni_array_len(states) ? states[state] : UNI_THREAD_UNKNOWN;
	if (t->state != UNI_THREAD_BLOCKED)
		t->wait_on = 0;
	uni_look_text(look, uni_look_at(look, t->object, NAME), look->m->member[NAME].size, t->name,
		sizeof(t->name));
	if (look->list != NULL)
		uni_look_saved(look, look->m->sym[RESUME], sp, t);
	return true;
}

/* Its threads run on the boot vCPU only. */
static uint64_t current_lab_thread(struct uni_look *look, uint32_t vcpu)
{
	uint64_t object = 0;

	if (vcpu == 0)
		(void)uni_look_u64(look, look->m->sym[CURRENT], &object);
	return object;
}

const struct uni_guest_ops uni_guest_lab = {
	.name = "lab",
	.title = "the lab's scheduler",
	.syms = { [THREADS] = "lab_threads",
		[CURRENT] = "lab_current",
		[RESUME] = "lab_switch_resume" },
	.structs = structs,
	.known = known,
	.each = each_lab_thread,
	.read = read_thread,
	.current = current_lab_thread,
};
