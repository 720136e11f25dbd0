/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of an attached guest, by a model of its operating system. */
#ifndef UNI_APP_THREADS_H
#define UNI_APP_THREADS_H

#include "app/attach.h"
#include "guest/guest.h"
#include "recording/recording.h"

/* -UNI_ENOENT, -UNI_ENOTSUP and one line: the threads of this guest, or version, are not known. */
int uni_guest_model(const struct uni_guest *g, const struct uni_image_search *search,
	struct uni_model **ret, struct uni_err *err);

/*
 * The same for a recording; *ret is NULL if the threads are not known. That is an error only if all
 * threads are wanted. Otherwise samples for which the guest is stopped have the running thread, if
 * possible.
 */
int uni_guest_threads(const struct uni_guest *g, const struct uni_image_search *search, bool all,
	struct uni_model **ret, struct uni_err *err);
void uni_guest_say_threads(const struct uni_guest *g, const struct uni_model *model, bool all,
	struct uni_record_meta *meta);

/* "blocked on never", "running on vCPU 0": a thread's state, for people. */
void uni_thread_say(
	const struct uni_guest *g, const struct uni_guest_thread *t, char *ret, size_t cap);
/* The object that it waits for, by its name or the guest's; "" not known. */
void uni_thread_waits_for(
	const struct uni_guest *g, const struct uni_guest_thread *t, char *ret, size_t cap);

#endif
