/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/shared.h"

#include <stdlib.h>

struct uni_target_shared *uni_target_shared_create(void)
{
	struct uni_target_shared *s = calloc(1, sizeof(*s));

	if (s != NULL)
		(void)pthread_mutex_init(&s->lock, NULL);
	return s;
}

void uni_target_shared_destroy(struct uni_target_shared *s)
{
	if (s == NULL)
		return;
	if (s->kvm != NULL)
		s->kvm_free(s->kvm);
	if (s->gdb != NULL)
		s->gdb_free(s->gdb);
	if (s->xen != NULL)
		s->xen_free(s->xen);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}
