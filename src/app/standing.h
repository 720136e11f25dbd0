/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest that somebody keeps from running while it is sampled: a signal has stopped its VMM, or
 * the VMM has paused it. Both are told once, and are gaps of the recording. */
#ifndef UNI_APP_STANDING_H
#define UNI_APP_STANDING_H

#include "app/attach.h"
#include "recording/recording.h"

#define UNI_STANDING_TEXT 256

struct uni_standing {
	const struct uni_guest *g;
	const char *name;	      /* of the guest; "": it is the only one */
	struct uni_record_meta *meta; /* gets the gaps; NULL: nobody keeps them */
	bool quiet;		      /* tells nothing: somebody else does */
	/* Does its VMM run it? NULL: nobody knows this for certain. */
	bool (*awake)(void *ctx);
	void *ctx;
	/* Filled in by the looks: */
	enum uni_gap_held held; /* known for certain, since since_ns */
	enum uni_gap_held seen; /* at the last look; for the first time at first_ns */
	unsigned nr;		/* looks in a row that saw it */
	uint64_t since_ns, first_ns, cpu_ns;
	uint64_t free_ns; /* the last look at which nobody held it; 0: none yet */
	uint64_t ran_ns;  /* the last sample of a vCPU that ran */
};

/* Looks; in the thread that samples it, about five times a second. */
void uni_standing_look(struct uni_standing *s);
void uni_standing_saw(struct uni_standing *s, const struct uni_sample *sample);
/* The recording, or this VMM's part of it, ends at that time. */
void uni_standing_end(struct uni_standing *s, uint64_t end_ns);
/* Since when nobody has seen it run, if it is held, or was as its VMM was last looked at; else
 * gone_ns. */
uint64_t uni_standing_since(const struct uni_standing *s, uint64_t gone_ns);
/* One line that says what holds it now. False: nothing. */
bool uni_standing_text(const struct uni_standing *s, char ret[UNI_STANDING_TEXT]);

/* Says so of a domain that has ended and is preserved. */
void uni_standing_note_dead(const struct uni_guest *g);

/* A VMM of this host that has a guest of that name, and runs it, as far as is known; 0: there is
 * none. not_pid: this one is not meant. */
int uni_standing_other(const char *name, int not_pid);

#endif
