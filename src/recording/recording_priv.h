/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording while it is read: of those that read it whole, and that follow one as it grows. */
#ifndef UNI_RECORDING_RECORDING_PRIV_H
#define UNI_RECORDING_RECORDING_PRIV_H

#include "base/vec.h"
#include "recording/recording.h"
#include "recording/merge.h"
#include "recording/sjson.h"

/* One image's names. */
struct uni_recorded_names {
	const char *id;		   /* borrowed from the session */
	struct uni_symtab *symtab; /* NULL: none travelled with it, or none that can be read */
	struct uni_err err;	   /* why */
};

struct uni_recording {
	char *path;
	struct uni_session session;
	struct uni_record_stats sum;
	uint32_t names_of[UNI_GUEST_MAX]; /* guests with one image share its names */
	UNI_VEC(struct uni_recorded_names) names;
	struct uni_symtab *join[UNI_GUEST_MAX]; /* of guests with several images */
	struct uni_recorded_part *part;		/* that is shown; NULL: all of it is */
};

/* A part, counted by itself. */
struct uni_recorded_part {
	struct uni_record_part what; /* its thread is owned */
	struct uni_record_stats sum;
	struct uni_record_stats stats[]; /* by guest */
};

/* session.json and names, with nothing counted. */
int uni_recording_open_bare(const char *path, struct uni_recording **ret, struct uni_err *err);
/* While it is recorded, session.json has the vCPUs of the beginning. */
int uni_recording_find_vcpus(struct uni_recording *r, struct uni_err *err);
/* Is the file with these names there? */
bool uni_recording_has_names(const struct uni_recording *r, const char *id);

/* Statistics from the samples alone: of a guest whose recorder died or is still running, or of a
 * part. */
struct uni_recounts;

/* Into the statistics of each guest; NULL: into the recording's own. NULL: out of memory. */
struct uni_recounts *uni_recounts_create(struct uni_recording *r, struct uni_record_stats *into);
void uni_recounts_destroy(struct uni_recounts *c); /* NULL-safe */
int uni_recount_sample(void *recounts, const struct uni_sample *s);
int uni_recount_exit(void *recounts, const struct uni_stream_exit *e);
/* Takes the losses according to the streams. */
void uni_recount_lost(struct uni_recounts *c, const struct uni_rmerge *m);
/* Adds up everything so far, into *ret. */
void uni_recounts_sum(struct uni_recounts *c, struct uni_record_stats *ret);

void uni_recorded_part_destroy(struct uni_recorded_part *p); /* NULL-safe */

#endif
