/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the target that a user's TARGET means. */
#ifndef UNI_APP_RESOLVE_H
#define UNI_APP_RESOLVE_H

#include "base/err.h"
#include "backend/target.h"

/* TARGET to a spec: as it is, by pid, or by the name that ls shows. */
int uni_guest_resolve(const char *target, struct uni_spec *ret, struct uni_err *err);

/* The process of the guest that ls shows by that name, pid or target, also if it cannot be reached;
 * 0: none. */
int uni_guest_pid(const char *name);

/* As uni_guest_resolve(), and waits so long for a guest that is not there yet, or whose VMM has not
 * opened KVM. */
int uni_guest_await(
	const char *target, uint64_t wait_ns, struct uni_spec *ret, struct uni_err *err);

#endif
