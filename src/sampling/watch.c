/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/watch.h"

#include <stdlib.h>
#include <string.h>

#include "recording/sjson.h"

struct slot {
	struct uni_watch *watch;
	uint8_t *first, *last;
	uint8_t *scratch; /* a read that fails half-way must not spoil `last` */
};

struct uni_watcher {
	const struct uni_arch *arch;
	size_t nr;
	struct slot slot[];
};

static int slot_init(struct slot *s, struct uni_watch *watch, struct uni_err *err)
{
	if (watch->size == 0 || watch->size > UNI_SESSION_WATCH_MAX)
		return uni_err_set(err, UNI_EINVAL,
			"cannot watch %s: it has %u bytes; 1 to %u are possible", watch->name,
			watch->size, UNI_SESSION_WATCH_MAX);
	watch->first = watch->last = NULL;
	s->watch = watch;
	s->first = calloc(1, watch->size);
	s->last = calloc(1, watch->size);
	s->scratch = calloc(1, watch->size);
	if (s->first == NULL || s->last == NULL || s->scratch == NULL)
		return uni_err_nomem(err);
	return 0;
}

int uni_watcher_create(struct uni_watch *watch, size_t nr, const struct uni_arch *arch,
	struct uni_watcher **ret, struct uni_err *err)
{
	struct uni_watcher *w;
	int rc = 0;

	if (nr > UNI_SESSION_WATCHES)
		return uni_err_set(err, UNI_EINVAL, "cannot watch %zu symbols: at most %u", nr,
			UNI_SESSION_WATCHES);
	w = calloc(1, sizeof(*w) + nr * sizeof(w->slot[0]));
	if (w == NULL)
		return uni_err_nomem(err);
	w->arch = arch;
	w->nr = nr;
	for (size_t i = 0; rc == 0 && i < nr; i++)
		rc = slot_init(&w->slot[i], &watch[i], err);
	if (rc < 0) {
		uni_watcher_destroy(w);
		return rc;
	}
	*ret = w;
	return 0;
}

void uni_watcher_destroy(struct uni_watcher *w)
{
	if (w == NULL)
		return;
	for (size_t i = 0; i < w->nr; i++) {
		struct slot *s = &w->slot[i];

		if (s->watch == NULL || s->watch->first == NULL) {
			free(s->first);
			free(s->last);
		}
		free(s->scratch);
	}
	free(w);
}

/* Also false for a space that is virtual to begin with: then there is no root to set. */
static bool find_root(const struct uni_watcher *w, const struct uni_regs *regs, uint32_t nr_vcpus,
	struct uni_pt_root *ret)
{
	for (uint32_t v = 0; w->arch != NULL && v < nr_vcpus; v++) {
		if (regs[v].pc_valid && w->arch->paging(&regs[v], ret) == 0)
			return true;
	}
	return false;
}

static void keep_value(struct slot *s, uint64_t t_ns)
{
	struct uni_watch *w = s->watch;
	uint8_t *old = s->last;

	s->last = s->scratch;
	s->scratch = old;
	w->last = s->last;
	w->t_last_ns = t_ns;
	if (w->first != NULL)
		return;
	memcpy(s->first, s->last, w->size);
	w->first = s->first;
	w->t_first_ns = t_ns;
}

void uni_watcher_read(struct uni_watcher *w, struct uni_as *as, const struct uni_regs *regs,
	uint32_t nr_vcpus, uint64_t t_ns)
{
	bool is_virtual = uni_gmem_space(uni_as_gmem(as)) == UNI_GMEM_VIRTUAL;
	struct uni_pt_root root;

	if (!is_virtual && !find_root(w, regs, nr_vcpus, &root))
		return;
	for (size_t i = 0; i < w->nr; i++) {
		struct slot *s = &w->slot[i];

		uni_as_begin(as, is_virtual ? NULL : &root);
		if (uni_as_read(as, uni_gva_of(s->watch->gva), s->scratch, s->watch->size) == 0)
			keep_value(s, t_ns);
	}
}
