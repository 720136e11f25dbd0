/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a session's vCPUs, merged by time. Nothing in them is trusted; memory is one
 * packet a vCPU. Either all of it at once, or what is new since the last time, of a session that
 * goes on.
 */
#ifndef UNI_RECORDING_MERGE_H
#define UNI_RECORDING_MERGE_H

#include "recording/ctf.h"
#include "recording/recording.h"
#include "recording/sjson.h"

struct uni_rstream; /* one vCPU's file */

struct uni_rmerge {
	const char *path; /* borrowed, both */
	const struct uni_session *session;
	enum uni_ctf_stream kind;
	bool live;
	size_t nr;
	uint64_t torn;
	uint64_t last_ns;				   /* live: of what was handed out last */
	uint64_t patience_ns;				   /* live */
	uint64_t discarded[UNI_GUEST_MAX];		   /* of streams that are at their end */
	struct uni_rstream *stream[UNI_SESSION_VCPUS_MAX]; /* those with samples left; live: all */
};

/* Who takes them: one of the two. What is not 0 ends it, and is passed on. */
struct uni_rtaker {
	int (*sample)(void *ctx, const struct uni_sample *s);
	int (*exit)(void *ctx, const struct uni_stream_exit *e);
	void *ctx;
};

int uni_rmerge_open(struct uni_rmerge *m, const char *path, const struct uni_session *session,
	enum uni_ctf_stream kind, struct uni_err *err);
int uni_rmerge_run(struct uni_rmerge *m, const struct uni_rtaker *to);
void uni_rmerge_close(struct uni_rmerge *m);
/* What the guest's streams say was lost. */
uint64_t uni_rmerge_discarded(const struct uni_rmerge *m, uint32_t guest);

/*
 * Of one that goes on. A packet counts when it is whole, and a sample when no other stream can
 * have an older one any more: each is there up to its last packet's end, and one that has been
 * behind the newest by patience_ns is taken to be silent.
 */
void uni_rmerge_follow(struct uni_rmerge *m, const char *path, const struct uni_session *session,
	enum uni_ctf_stream kind, uint64_t patience_ns);
/* -UNI_EAGAIN: something older came than what was handed out: it has to be read anew. */
int uni_rmerge_more(struct uni_rmerge *m, const struct uni_rtaker *to, struct uni_err *err);

#endif
