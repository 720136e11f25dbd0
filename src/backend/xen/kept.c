/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains that are opened before the rights go, and attached to afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/confine.h"
#include "backend/shared.h"
#include "backend/xen/xen.h"

struct kept {
	char *dom; /* as the target names it */
	struct uni_xen_target *t;
	struct kept *next;
};
static struct kept *all_kept;

static void free_one(struct kept *k)
{
	if (k == NULL)
		return;
	if (k->t != NULL)
		uni_xen_target_free(k->t);
	free(k->dom);
	free(k);
}

static void free_kept(void *unused)
{
	(void)unused;
	while (all_kept != NULL) {
		struct kept *k = all_kept;

		all_kept = k->next;
		free_one(k);
	}
}

struct uni_xen_target *uni_xen_kept(const struct uni_spec *spec)
{
	const char *dom = uni_spec_get(spec, "dom");
	const struct kept *k = dom != NULL ? all_kept : NULL;

	while (k != NULL && strcmp(k->dom, dom) != 0)
		k = k->next;
	return k != NULL ? k->t : NULL;
}

int uni_xen_hand_line(const struct uni_spec *spec, struct uni_target_shared *shared, int *pid_ret,
	struct uni_err *err)
{
	const char *dom = uni_spec_get(spec, "dom");
	struct kept *k = calloc(1, sizeof(*k));
	int rc = 0;

	if (k != NULL)
		k->dom = strdup(dom != NULL ? dom : "");
	if (k == NULL || k->dom == NULL)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = uni_xen_target_make(spec, &k->t, err);
	if (rc != 0) {
		free_one(k);
		return rc;
	}
	uni_confine_keep_xen();
	k->t->keep = UNI_XEN_KEPT;
	*pid_ret = 0;
	k->next = all_kept;
	all_kept = k;
	shared->xen = k;
	shared->xen_free = free_kept;
	return 0;
}
