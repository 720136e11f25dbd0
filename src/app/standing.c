/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/standing.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "app/term.h"

#define SIGNAL_LOOKS 2
#define VMM_LOOKS    5	/* threads of a VMM may all happen to wait outside of their guest */
#define BUSY_SHARE   20 /* of the time between the looks: a VMM that works so much runs its guest */

/* A hypervisor tells of itself that somebody has paused the guest, and how; "" if nobody has. A
 * dead guest is what it is. */
static void ask_target(const struct uni_standing *s, struct uni_target_info *ret)
{
	struct uni_target *t = s->g->t;

	*ret = (struct uni_target_info){ 0 };
	if ((t->ops->caps(t) & UNI_CAP_DEAD) == 0)
		t->ops->info(t, ret);
}

/* Whoever holds it, by one look. */
static enum uni_gap_held look_once(const struct uni_standing *s)
{
	const struct uni_target_ops *ops = s->g->t->ops;
	struct uni_target_info now;

	ask_target(s, &now);
	if (now.rest[0] != '\0')
		return UNI_HELD_VMM;
	if (s->g->info.pid > 0 && uni_process_is_stopped(s->g->info.pid))
		return UNI_HELD_SIGNAL;
	if (s->awake != NULL)
		return s->awake(s->ctx) ? UNI_HELD_NOT : UNI_HELD_VMM;
	return ops->stands != NULL && ops->stands(&s->g->info) ? UNI_HELD_VMM : UNI_HELD_NOT;
}

static bool is_certain(const struct uni_standing *s, uint64_t now_ns)
{
	if (s->seen == UNI_HELD_SIGNAL)
		return s->nr >= SIGNAL_LOOKS;
	if (s->awake != NULL)
		return true;
	return s->nr >= VMM_LOOKS &&
	       uni_process_cpu_ns(s->g->info.pid) - s->cpu_ns < (now_ns - s->first_ns) / BUSY_SHARE;
}

bool uni_standing_text(const struct uni_standing *s, char ret[UNI_STANDING_TEXT])
{
	const bool process = s->g->t->ops->files != NULL;
	const int pid = s->g->info.pid;
	struct uni_target_info now;

	ask_target(s, &now);
	if (s->held == UNI_HELD_SIGNAL)
		(void)snprintf(ret, UNI_STANDING_TEXT,
			"a signal has stopped %s %d%s: it is not sampled until kill -CONT %d lets "
			"it "
			"run",
			process ? "process" : "the VMM, pid", pid,
			process ? "" : ", and its guest with it", pid);
	else if (s->held == UNI_HELD_VMM && pid <= 0)
		(void)snprintf(ret, UNI_STANDING_TEXT,
			"somebody has stopped domain %u (%s): it is not sampled until it goes on",
			(unsigned)now.domid, now.rest);
	else if (s->held == UNI_HELD_VMM)
		(void)snprintf(ret, UNI_STANDING_TEXT,
			"its VMM, pid %d, has paused the guest: it is not sampled until it goes on",
			pid);
	return s->held != UNI_HELD_NOT;
}

static void tell_standing(const struct uni_standing *s, const char *text)
{
	if (!s->quiet)
		uni_note("%s%s%s", s->name, s->name[0] != '\0' ? ": " : "", text);
}

uint64_t uni_standing_since(const struct uni_standing *s, uint64_t gone_ns)
{
	if (s->seen == UNI_HELD_NOT || s->first_ns >= gone_ns)
		return gone_ns;
	return uni_min(uni_max(s->ran_ns, s->free_ns), s->first_ns);
}

static void add_held(const struct uni_standing *s, uint64_t end_ns)
{
	const struct uni_record_gap gap = {
		.begin_ns = s->since_ns, .end_ns = end_ns, .pid = s->g->info.pid, .held = s->held
	};

	if (s->meta != NULL)
		(void)uni_record_add_gap(s->meta, &gap);
}

static void let_go(struct uni_standing *s, uint64_t now_ns)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "the guest goes on, after %.1f s",
		(double)(now_ns - s->since_ns) / 1e9);
	tell_standing(s, text);
	add_held(s, now_ns);
	s->held = UNI_HELD_NOT;
}

void uni_standing_look(struct uni_standing *s)
{
	enum uni_gap_held seen = look_once(s);
	uint64_t now_ns = uni_now_ns();
	char text[UNI_STANDING_TEXT];

	if (seen != s->seen) {
		if (s->held != UNI_HELD_NOT)
			let_go(s, now_ns);
		s->seen = seen;
		s->nr = 0;
		s->first_ns = now_ns;
		s->cpu_ns = uni_process_cpu_ns(s->g->info.pid);
	}
	if (seen == UNI_HELD_NOT) {
		s->free_ns = now_ns;
		return;
	}
	s->nr++;
	if (s->held != UNI_HELD_NOT || !is_certain(s, now_ns))
		return;
	s->since_ns = uni_standing_since(s, now_ns);
	s->held = seen;
	if (uni_standing_text(s, text))
		tell_standing(s, text);
}

void uni_standing_saw(struct uni_standing *s, const struct uni_sample *sample)
{
	if (sample->state == UNI_VCPU_RUNNING)
		s->ran_ns = uni_max(s->ran_ns, sample->t_ns);
}

void uni_standing_end(struct uni_standing *s, uint64_t end_ns)
{
	if (s->held != UNI_HELD_NOT && end_ns > s->since_ns)
		add_held(s, end_ns);
	s->held = s->seen = UNI_HELD_NOT;
}

void uni_standing_note_dead(const struct uni_guest *g)
{
	if ((g->t->ops->caps(g->t) & UNI_CAP_DEAD) != 0 && g->info.rest[0] != '\0')
		uni_note("%s: one snapshot of it is recorded", g->info.note);
}

/* Not known counts as running. */
static bool may_run(const struct uni_target_info *info)
{
	char keys[300];

	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		const struct uni_target_ops *ops = uni_target_backends[i];

		if (ops->stands != NULL && ops->claims != NULL &&
			ops->claims(info, keys, sizeof(keys)) && ops->stands(info))
			return false;
	}
	return true;
}

int uni_standing_other(const char *name, int not_pid)
{
	_cleanup_free_ struct uni_target_info *info = NULL;
	struct uni_err ignored = { 0 };
	size_t nr = 0;

	if (uni_target_list(&info, &nr, &ignored) != 0)
		return 0;
	for (size_t i = 0; i < nr; i++) {
		char own[UNI_GUEST_NAME_MAX];

		uni_guest_name(&info[i], own);
		if (strcmp(own, name) == 0 && info[i].pid > 0 && info[i].pid != not_pid &&
			may_run(&info[i]))
			return info[i].pid;
	}
	return 0;
}
