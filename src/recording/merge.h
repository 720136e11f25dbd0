/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a session's vCPUs, merged by time. Nothing in them is trusted; memory is one
 * packet a vCPU. A session is read whole, or, if it still grows, each time from the end of the last
 * read.
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
	/* live: of the last sample or exit that was passed on */
	uint64_t last_ns;
	uint64_t patience_ns;				   /* live */
	uint64_t discarded[UNI_GUEST_MAX];		   /* of streams that are at their end */
	struct uni_rstream *stream[UNI_SESSION_VCPUS_MAX]; /* those with samples left; live: all */
};

/* Receives samples or exits: one of the two is set. A result other than 0 ends the reading and is
 * returned. */
struct uni_rtaker {
	int (*sample)(void *ctx, const struct uni_sample *s);
	int (*exit)(void *ctx, const struct uni_stream_exit *e);
	void *ctx;
};

int uni_rmerge_open(struct uni_rmerge *m, const char *path, const struct uni_session *session,
	enum uni_ctf_stream kind, struct uni_err *err);
int uni_rmerge_run(struct uni_rmerge *m, const struct uni_rtaker *to);
void uni_rmerge_close(struct uni_rmerge *m);
/* Losses according to the guest's streams. */
uint64_t uni_rmerge_discarded(const struct uni_rmerge *m, uint32_t guest);

/*
 * For a session that still grows. A packet counts when it is complete, and a sample when no other
 * stream can have an older one. Each stream is known up to its last packet's end; one that is
 * behind the newest by patience_ns counts as silent.
 */
void uni_rmerge_follow(struct uni_rmerge *m, const char *path, const struct uni_session *session,
	enum uni_ctf_stream kind, uint64_t patience_ns);
/* -UNI_EAGAIN: the new data is older than some that was passed on; the session has to be read
 * again. */
int uni_rmerge_more(struct uni_rmerge *m, const struct uni_rtaker *to, struct uni_err *err);

#endif
