/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of app/exact.h share this. */
#ifndef UNI_APP_EXACT_PRIV_H
#define UNI_APP_EXACT_PRIV_H

#include <sys/types.h>

#include "app/exact.h"
#include "app/exact_calls.h"
#include "app/scratch.h"
#include "recording/exact.h"

/* Between the process with rights, which starts and ends QEMU, and those that read. It may hold
 * anything. */
struct uni_exact_shared {
	struct uni_exact_places at;
	struct uni_child_fate fate; /* QEMU's */
	_Atomic bool stop, stopped; /* asked to end it; done */
};

struct uni_exact_run {
	const struct uni_exact_args *args;
	struct uni_exact_shared *shared; /* NULL: this process does all */
	pid_t parent;
	struct uni_exact_places at;
	struct uni_qemu q;
	struct uni_image *image;
	struct uni_exact_image all[UNI_IMAGES_MAX]; /* that one, then programs */
	size_t nr_all;
	struct uni_scratch scratch;
	char table[4096], counts[4096]; /* files for the plugin and from it */
	char end[512];			/* how the guest ended */
	bool over;			/* the time, not the guest's end */
	bool by_you;			/* over by Ctrl-C, after: */
	double took_s;
	struct uni_calls_session calls;
	struct uni_recorder *rec;   /* from when the session is begun */
	bool kept;		    /* the tree is in the session */
	enum uni_exact_state state; /* of what was read; 0: not yet */
	char only[256];		    /* which calls are in the trace; "" all */
	uint64_t begin_ns, end_ns;  /* of the guest, by the host's clock; 0: not known */
};

/* The image and the programs; uni_exact_release() frees them. */
int uni_exact_load_images(struct uni_exact_run *run, struct uni_err *err);
/* Writes the file of their functions, for the plugin. */
int uni_exact_table_of(const struct uni_exact_run *run, struct uni_err *err);
/* The session, and if calls are recorded, their streams. */
int uni_exact_begin_session(struct uni_exact_run *run, uint32_t nr_vcpus, struct uni_err *err);
/* Takes those that have come. *nap_ns_ret: how long to wait until the next look. */
int uni_exact_take_calls(struct uni_exact_run *run, uint64_t *nap_ns_ret, struct uni_err *err);
/* Says what the session has. */
void uni_exact_tell(const struct uni_exact_run *run, const struct uni_exact *e);
/* -UNI_EMISMATCH, -UNI_EAGAIN, -UNI_EIO: nothing of the image was counted. */
int uni_exact_check_counts(
	const struct uni_exact_run *run, const struct uni_exact *e, struct uni_err *err);
/* -UNI_EIO: calls are lost that should not be. */
int uni_exact_check_calls(const struct uni_exact_run *run, struct uni_err *err);
/* Writes the session, and says what it has. */
int uni_exact_finish(struct uni_exact_run *run, const struct uni_exact *e, struct uni_err *err);
/* A session that was begun keeps the calls that it has. Returns rc, or why it could not be closed.
 */
int uni_exact_release(struct uni_exact_run *run, struct uni_exact *e, int rc, struct uni_err *err);

#endif
