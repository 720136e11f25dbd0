/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a traced guest's threads: looked up while it is held, before its trace begins and at
 * its end. */
#ifndef UNI_TRACING_THREAD_NAMES_H
#define UNI_TRACING_THREAD_NAMES_H

#include "guest/guest.h"
#include "recording/recording.h"
#include "backend/target.h"
#include "unwind/unwind.h"

struct uni_tnames;

/* Borrows all. */
int uni_tnames_create(struct uni_target *t, const struct uni_unwinder *u,
	const struct uni_model *model, struct uni_tnames **ret, struct uni_err *err);
void uni_tnames_destroy(struct uni_tnames *n); /* NULL-safe */

/* With the guest held; regs of all its vCPUs. No allocation. */
void uni_tnames_take(struct uni_tnames *n, const struct uni_regs *regs, uint32_t nr_vcpus);
/* The threads of the last look, borrowed: until the next one. */
const struct uni_thread_list *uni_tnames_list(const struct uni_tnames *n);
/* With the guest running again, of the last look: an array that the caller frees. 0 or -UNI_ENOMEM.
 */
int uni_tnames_get(const struct uni_tnames *n, struct uni_record_thread **ret, size_t *nr_ret);
/* With the guest running again: puts the names that are new at the last look into the session. Only
 * this adds threads of that guest to the session. *nr_ret: their number. */
int uni_tnames_record(
	struct uni_tnames *n, struct uni_recorder *rec, uint32_t guest, size_t *nr_ret);

#endif
