/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/host_time.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define EACH_NS	 (20 * UNI_NSEC_PER_MSEC)
#define QUICK_NS UNI_NSEC_PER_MSEC /* a look that took longer has too uncertain a time */
#define STOLEN	 8		   /* the column of "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ ..." */

bool uni_thost_stolen(const char *text, uint64_t ticks_a_second, uint64_t *ret)
{
	uint64_t ticks = 0;

	if (strncmp(text, "cpu ", 4) != 0 || ticks_a_second == 0)
		return false;
	text += 4;
	for (unsigned i = 0; i < STOLEN; i++) {
		char *end;

		ticks = strtoull(text, &end, 10);
		if (end == text || (*end != ' ' && *end != '\n'))
			return false;
		text = end;
	}
	return !__builtin_mul_overflow(ticks, UNI_NSEC_PER_SEC / ticks_a_second, ret);
}

static bool stolen_now(uint64_t *ret)
{
	long hz = sysconf(_SC_CLK_TCK);
	char text[256]; /* the first line has it */

	return hz > 0 && uni_read_small("/proc/stat", text, sizeof(text)) > 0 &&
	       uni_thost_stolen(text, (uint64_t)hz, ret);
}

void uni_thost_add(struct uni_thost *h, uint64_t ns, uint64_t on_ns, uint64_t stolen_ns)
{
	struct uni_record_on_cpu *all = &h->all;

	if (h->each_ns == 0)
		h->each_ns = EACH_NS;
	if (all->nr == UNI_RECORD_ON_CPU) {
		for (uint32_t i = 0; i < UNI_RECORD_ON_CPU / 2; i++)
			all->at[i] = all->at[2 * i];
		all->nr = UNI_RECORD_ON_CPU / 2;
		h->each_ns *= 2;
	}
	all->at[all->nr].ns = ns;
	all->at[all->nr].on_ns = on_ns;
	all->at[all->nr++].stolen_ns = stolen_ns;
	h->next_ns = ns + h->each_ns;
}

static bool sum_now(struct uni_target *t, struct uni_thost_sum *ret)
{
	uint32_t nr = t->ops->ready != NULL ? t->ops->nr_vcpus(t) : 0;
	uint64_t on_ns, ready_ns;

	*ret = (struct uni_thost_sum){ 0 };
	for (uint32_t v = 0; v < nr; v++) {
		if (t->ops->on_cpu(t, v, &on_ns) != 0 || t->ops->ready(t, v, &ready_ns) != 0)
			return false;
		ret->on_ns += on_ns;
		ret->ready_ns += ready_ns;
	}
	return nr != 0;
}

static void look_at_sum(struct uni_thost *h, struct uni_target *t, uint64_t now_ns)
{
	struct uni_thost_sum now;

	if (now_ns < h->sum_next_ns)
		return;
	h->sum_next_ns = now_ns + EACH_NS;
	if (!sum_now(t, &now))
		return;
	if (!h->has_first)
		h->first = now;
	h->has_first = true;
	if (now.on_ns >= h->first.on_ns && now.ready_ns >= h->first.ready_ns)
		h->sum = (struct uni_thost_sum){ now.on_ns - h->first.on_ns,
			now.ready_ns - h->first.ready_ns };
}

void uni_thost_look(struct uni_thost *h, struct uni_target *t)
{
	uint64_t now_ns = uni_now_ns(), on_ns, stolen_ns;

	look_at_sum(h, t, now_ns);
	if (now_ns < h->next_ns || t->ops->on_cpu == NULL || t->ops->nr_vcpus(t) != 1)
		return;
	if (!stolen_now(&stolen_ns))
		return;
	now_ns = uni_now_ns();
	if (t->ops->on_cpu(t, 0, &on_ns) == 0 && uni_now_ns() - now_ns < QUICK_NS)
		uni_thost_add(h, now_ns, on_ns, stolen_ns);
}
