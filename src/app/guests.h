/* SPDX-License-Identifier: BSD-2-Clause */
/* The guests that a command line names, attached: one, several, or all of this host. */
#ifndef UNI_APP_GUESTS_H
#define UNI_APP_GUESTS_H

#include "base/vec.h"
#include "app/attach.h"

struct uni_guests {
	UNI_VEC(struct uni_guest *) open; /* owned */
	size_t nr_failed;		  /* that could not be had */
	int last_pid;			  /* VMM of the one that was tried last; 0: not known */
	struct uni_target_shared *shared;
};

struct uni_guests_args {
	const char *const *targets;
	size_t nr;
	bool all;		       /* every guest of this host, instead */
	struct uni_attach_args attach; /* but for the target */
};

/* With several guests, one that cannot be attached is named on stderr and left out; it is an error
 * if none can. The caller zeroes `all` before, and closes it in any case. */
int uni_guests_open(struct uni_guests *all, const struct uni_guests_args *how, struct uni_err *err);
void uni_guests_close(struct uni_guests *all);

#endif
