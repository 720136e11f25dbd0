/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "sampling/threads.h"

struct uni_thread_ids {
	UNI_VEC(struct uni_record_thread) v;	    /* id n is at n - 1 */
	uint32_t slot[2 * UNI_SESSION_THREADS_MAX]; /* id, 0: free */
};

struct uni_thread_ids *uni_thread_ids_create(void)
{
	return calloc(1, sizeof(struct uni_thread_ids));
}

void uni_thread_ids_destroy(struct uni_thread_ids *ids)
{
	if (ids == NULL)
		return;
	uni_vec_free(&ids->v);
	free(ids);
}

static bool is_same(const struct uni_record_thread *r, const struct uni_guest_thread *t)
{
	return r->object == t->object && r->has_number == t->has_number &&
	       (!r->has_number || r->number == t->number) && strcmp(r->name, t->name) == 0;
}

uint32_t uni_thread_ids_get(struct uni_thread_ids *ids, const struct uni_guest_thread *t,
	const struct uni_record_thread **new_ret)
{
	const size_t nr_slots = sizeof(ids->slot) / sizeof(ids->slot[0]);
	size_t i = (size_t)uni_hash_bytes(t->name, strlen(t->name), t->object) % nr_slots;
	struct uni_record_thread r = { .id = (uint32_t)ids->v.nr + 1,
		.object = t->object,
		.has_number = t->has_number,
		.number = t->has_number ? t->number : 0 };

	*new_ret = NULL;
	for (; ids->slot[i] != 0; i = (i + 1) % nr_slots) {
		if (is_same(&ids->v.v[ids->slot[i] - 1], t))
			return ids->slot[i];
	}
	memcpy(r.name, t->name, sizeof(r.name));
	if (ids->v.nr == UNI_SESSION_THREADS_MAX || !uni_vec_push(&ids->v, r))
		return 0;
	ids->slot[i] = r.id;
	*new_ret = &ids->v.v[ids->v.nr - 1];
	return r.id;
}
