/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Things that the guests of one run share, and that are made once: programs in the kernel, the
 * children that connect to stubs. Made before the first attach, passed in uni_attach_opts.shared,
 * destroyed after the last detach.
 */
#ifndef UNI_BACKEND_SHARED_H
#define UNI_BACKEND_SHARED_H

#include <pthread.h>

/* Backends keep their part here; all others only pass it on. */
struct uni_target_shared {
	pthread_mutex_t lock; /* held while a part is made */
	void *kvm;	      /* NULL: not made yet */
	void (*kvm_free)(void *kvm);
	void *gdb; /* guardians, one a guest; NULL: each attach makes its own */
	void (*gdb_free)(void *gdb);
	void *xen; /* open domains; NULL: each attach opens its own */
	void (*xen_free)(void *xen);
};

/* NULL when out of memory. */
struct uni_target_shared *uni_target_shared_create(void);
void uni_target_shared_destroy(struct uni_target_shared *s); /* NULL-safe */

#endif
