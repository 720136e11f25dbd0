/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/thread_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sampling/threads.h"

#define PAUSE_NS (5 * UNI_NSEC_PER_MSEC) /* after which no further thread is looked at */

static const struct uni_as_budget budget = {
	.bytes = 1u << 20,
	.table_loads = 1u << 14,
	.wall_ns = PAUSE_NS,
};

struct uni_tnames {
	const struct uni_unwinder *u;
	const struct uni_model *model;
	struct uni_as *as;
	struct uni_thread_list *list;
	struct uni_thread_ids *ids; /* of those that the session has */
};

int uni_tnames_create(struct uni_target *t, const struct uni_unwinder *u,
	const struct uni_model *model, struct uni_tnames **ret, struct uni_err *err)
{
	struct uni_tnames *n = calloc(1, sizeof(*n));
	int rc;

	if (n == NULL)
		return uni_err_nomem(err);
	n->u = u;
	n->model = model;
	n->list = uni_thread_list_create(UNI_THREADS_MAX);
	n->ids = uni_thread_ids_create();
	if (n->list == NULL || n->ids == NULL)
		rc = uni_err_nomem(err);
	else
		rc = uni_as_create(t->ops->gmem(t), &budget, &n->as, err);
	if (rc != 0) {
		uni_tnames_destroy(n);
		return rc;
	}
	/* Touched now, so that no page fault falls into a pause. */
	memset(n->list->v, 0, n->list->cap * sizeof(n->list->v[0]));
	*ret = n;
	return 0;
}

void uni_tnames_destroy(struct uni_tnames *n)
{
	if (n == NULL)
		return;
	uni_as_destroy(n->as);
	uni_thread_ids_destroy(n->ids);
	free(n->list);
	free(n);
}

void uni_tnames_take(struct uni_tnames *n, const struct uni_regs *regs, uint32_t nr_vcpus)
{
	n->list->nr = 0;
	for (uint32_t v = 0; v < nr_vcpus; v++) {
		if (!regs[v].pc_valid || uni_unwind_begin(n->u, n->as, &regs[v]) != 0)
			continue;
		uni_as_prefetch(n->as);
		uni_model_walk(n->model, n->as, regs, nr_vcpus, n->list);
		return;
	}
}

const struct uni_thread_list *uni_tnames_list(const struct uni_tnames *n)
{
	return n->list;
}

int uni_tnames_get(const struct uni_tnames *n, struct uni_record_thread **ret, size_t *nr_ret)
{
	struct uni_thread_ids *ids = uni_thread_ids_create();
	struct uni_record_thread *v = calloc(n->list->nr + 1, sizeof(*v));
	size_t nr = 0;

	for (uint32_t i = 0; ids != NULL && v != NULL && i < n->list->nr; i++) {
		const struct uni_record_thread *thread;

		(void)uni_thread_ids_get(ids, &n->list->v[i], &thread);
		if (thread != NULL)
			v[nr++] = *thread;
	}
	uni_thread_ids_destroy(ids);
	if (ids == NULL || v == NULL) {
		free(v);
		return -UNI_ENOMEM;
	}
	*ret = v;
	*nr_ret = nr;
	return 0;
}

int uni_tnames_record(
	struct uni_tnames *n, struct uni_recorder *rec, uint32_t guest, size_t *nr_ret)
{
	int rc = 0;

	*nr_ret = 0;
	for (uint32_t i = 0; rc == 0 && i < n->list->nr; i++) {
		const struct uni_record_thread *thread;

		(void)uni_thread_ids_get(n->ids, &n->list->v[i], &thread);
		if (thread == NULL)
			continue;
		rc = uni_recorder_thread(rec, guest, thread);
		++*nr_ret;
	}
	return rc;
}
