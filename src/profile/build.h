/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile from a recording, of its samples or of its VM exits: names, filters, one tree for all
 * or one below each vCPU. If a sample is outside the guest's own code, a synthetic frame at the
 * leaf says so: "[idle]", "[kvm]", "[vmm]", "[stolen]". For a thread that was on no vCPU it is
 * "[ready]", "[blocked]" or "[sleeping]". With more than one guest, each has its name as the root
 * frame.
 */
#ifndef UNI_PROFILE_BUILD_H
#define UNI_PROFILE_BUILD_H

#include "obj/usym.h"
#include "profile/namer.h"
#include "profile/profile.h"
#include "recording/recording.h"

/*
 * The values that are added up. With exits, a frame "[exit io out 0x3f8]" is the leaf. With times,
 * frames "[asleep]" and "[stolen]" below it have the time that the thread slept or had no CPU. For
 * halts that time is left out: the guest had nothing to do then, so it is no cost.
 */
enum uni_build_what {
	UNI_BUILD_SAMPLES,
	UNI_BUILD_EXITS,      /* their number */
	UNI_BUILD_EXIT_TIMES, /* ns until the guest was entered again */
};

/*
 * Called for each added sample, or exit (with UNI_BUILD_EXITS), with its node; node numbers are
 * those of the finished profile. A result other than 0 ends the building and is returned. NULL: not
 * called.
 */
struct uni_build_watch {
	void *ctx;
	int (*sample)(void *ctx, const struct uni_sample *s, uint32_t node);
	int (*exit)(void *ctx, const struct uni_stream_exit *e, uint32_t node);
	/* For an import whose samples have times: t_ns counts from any instant. */
	int (*imported)(void *ctx, uint32_t node, double value, uint64_t t_ns);
};

struct uni_build_opts {
	enum uni_build_what what;
	const struct uni_symtab *symtab; /* NULL: the recording's own */
	bool per_vcpu;			 /* a "vcpu N" frame below the root */
	bool per_thread;		 /* a "thread NAME" frame below that */
	struct uni_sample_filter filter;
	struct uni_naming naming;
	bool mark_truncated; /* a "[truncated]" root frame under chains that did not end at their
				root */
	bool keep_log;	     /* uni_profile_keep_log() */
	bool no_guest_roots; /* several guests in one tree; the watch distinguishes them */
	const struct uni_build_watch *watch; /* NULL: none */
};

#define UNI_BUILD_DEFAULTS             \
	{                              \
		.naming.inlined = true \
	}

/* The leaf frame of a vCPU's state, "[idle]"; NULL: none, it ran guest code. */
const char *uni_state_frame(unsigned state);

/* The input of the build, including parts that the options left out. */
struct uni_build_read {
	uint64_t samples; /* read; fewer than the statistics say: the streams are damaged */
	uint64_t exits;	  /* the same, by weight */
	uint64_t torn;	  /* packets that were skipped */
};

/* A guest for adding samples one by one. All borrowed. */
struct uni_build_guest {
	const char *root;		 /* frame above all its chains; NULL: none */
	const struct uni_symtab *symtab; /* NULL: addresses stay unnamed */
	uint64_t bias;
	const char *image_path;
	bool names_only; /* imported: addresses are made up */
	const char *vmm; /* it defines the ports after which exits are named; NULL: none */
	bool elsewhere; /* few of its chains lie in its image: the others get a root of their own */
	bool counted;	/* all its frames are exact, without being interrupted */
	const struct uni_record_thread *thread;
	size_t nr_thread;
};

/* A profile made of samples one by one: what uni_profile_build() does with those of a recording. */
struct uni_builder;

/* guest[] by the numbers that samples carry; opts and guest[] are borrowed. 0 or -UNI_ENOMEM. */
int uni_builder_create(const struct uni_build_opts *opts, const struct uni_build_guest *guest,
	uint32_t nr_guests, struct uni_builder **ret);
/* The same with the guests of a recording, which must outlive it, as opts must. */
int uni_builder_of_recording(const struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_builder **ret);
/* For a recording that still grows: it has other threads now. */
void uni_builder_set_threads(struct uni_builder *b, const struct uni_recording *rec);
/* s->guest is one of them. 0 or -UNI_ENOMEM. */
int uni_builder_add(struct uni_builder *b, const struct uni_sample *s);
int uni_builder_add_exit(struct uni_builder *b, const struct uni_stream_exit *e);
/* The profile of everything added so far; not finished, borrowed. */
const struct uni_profile *uni_builder_profile(const struct uni_builder *b);
/* The finished profile, owned by the caller; b can only be destroyed after that. */
int uni_builder_finish(struct uni_builder *b, struct uni_profile **ret);
void uni_builder_destroy(struct uni_builder *b); /* NULL-safe */

/*
 * Callers are looked up at pc - 1, the leaf (and UNI_FRAME_EXACT) at pc. The result is finished.
 * read_ret may be NULL.
 */
int uni_profile_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_profile **ret, struct uni_build_read *read_ret, struct uni_err *err);

#endif
