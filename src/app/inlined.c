/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/inlined.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/profile.h"

#define MARK " [inlined]" /* behind such a name in `report` */

static bool is_inlined(const struct uni_profile *p, uint32_t node)
{
	return node != UNI_NODE_ROOT &&
	       uni_profile_get_frame(p, uni_profile_node(p, node)->frame)->kind == UNI_FK_INLINED;
}

static bool is_named(const struct uni_profile *p, uint32_t node, const char *name)
{
	const struct uni_frame *f = uni_profile_get_frame(p, uni_profile_node(p, node)->frame);
	const char *own = uni_profile_str(p, f->plain != 0 ? f->plain : f->name);
	size_t len = strlen(own);

	return strncmp(own, name, len) == 0 && (name[len] == '\0' || strcmp(name + len, MARK) == 0);
}

/* The function around an inlined one; *again_ret: it is inlined there within itself, too. */
static uint32_t find_around(
	const struct uni_profile *p, uint32_t node, const char *name, bool *again_ret)
{
	*again_ret = false;
	for (;;) {
		node = uni_profile_node(p, node)->parent;
		if (!is_inlined(p, node))
			return node;
		*again_ret = *again_ret || is_named(p, node, name);
	}
}

static void name_without_mark(const char *name, char *ret, size_t cap)
{
	size_t len = uni_text_clean(ret, cap, name, strlen(name));

	if (len > strlen(MARK) && strcmp(ret + len - strlen(MARK), MARK) == 0)
		ret[len - strlen(MARK)] = '\0';
}

static void take_largest(
	const struct uni_profile *p, const double *sum, size_t nr, struct uni_inlined *ret)
{
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, (uint32_t)i);

		ret->samples += sum[i];
		ret->nr += sum[i] > 0;
		if (f->addr != 0 && f->kind == UNI_FK_GUEST && sum[i] > ret->here) {
			ret->here = sum[i];
			ret->addr = f->addr;
		}
	}
}

int uni_inlined_find(struct uni_recording *rec, const struct uni_build_opts *opts, const char *name,
	struct uni_inlined *ret, struct uni_err *err)
{
	struct uni_profile *p = NULL;
	_cleanup_free_ double *sum = NULL; /* by frame */
	int rc = uni_profile_build(rec, opts, &p, NULL, err);
	size_t nr = rc == 0 ? uni_profile_nr_frames(p) : 0;

	*ret = (struct uni_inlined){ 0 };
	if (rc != 0)
		return rc;
	name_without_mark(name, ret->name, sizeof(ret->name));
	sum = calloc(nr + 1, sizeof(*sum));
	for (size_t i = 1; sum != NULL && i < uni_profile_nr_nodes(p); i++) {
		uint32_t node = (uint32_t)i, around;
		bool again;

		if (!is_inlined(p, node) || !is_named(p, node, name))
			continue;
		around = find_around(p, node, name, &again);
		if (around != UNI_NODE_ROOT && !again)
			sum[uni_profile_node(p, around)->frame] += uni_profile_node(p, node)->total;
	}
	if (sum != NULL)
		take_largest(p, sum, nr, ret);
	uni_profile_destroy(p);
	return sum != NULL ? 0 : uni_err_nomem(err);
}
