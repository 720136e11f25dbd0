/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/memo.h"

#include <stdlib.h>

static void put_slot(struct uni_memo *m, struct uni_memo_slot slot)
{
	size_t mask = m->nr_slots - 1, i = slot.key.hash & mask;

	while (m->slots[i].key.s != NULL)
		i = (i + 1) & mask;
	m->slots[i] = slot;
}

static bool grow_memo(struct uni_memo *m)
{
	struct uni_memo more = { .nr_slots = m->nr_slots != 0 ? m->nr_slots * 4 : 1024 };

	more.slots = calloc(more.nr_slots, sizeof(*more.slots));
	if (more.slots == NULL)
		return false;
	for (size_t i = 0; i < m->nr_slots; i++) {
		if (m->slots[i].key.s != NULL)
			put_slot(&more, m->slots[i]);
	}
	more.nr = m->nr;
	free(m->slots);
	*m = more;
	return true;
}

bool uni_memo_put(struct uni_memo *m, struct uni_memo_key key, uint32_t value)
{
	if ((m->nr + 1) * 2 > m->nr_slots && !grow_memo(m))
		return false;
	put_slot(m, (struct uni_memo_slot){ key, value });
	m->nr++;
	return true;
}

void uni_memo_deinit(struct uni_memo *m)
{
	free(m->slots);
	*m = (struct uni_memo){ 0 };
}
