/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile from a recording: names, filters, one tree for all or one below each vCPU. Where a
 * sample is not of the guest's own code, a frame of ours at the leaf says so: "[idle]", "[kvm]",
 * "[vmm]", "[stolen]". With more than one guest, each has its name as the root frame.
 */
#ifndef UNI_PROFILE_BUILD_H
#define UNI_PROFILE_BUILD_H

#include "obj/usym.h"
#include "profile/namer.h"
#include "profile/profile.h"
#include "session/recording.h"

struct uni_build_opts {
	const struct uni_symtab *symtab; /* NULL: the recording's own */
	bool per_vcpu;			 /* a "vcpu N" frame below the root */
	struct uni_sample_filter filter; /* begin with UNI_FILTER_ALL */
	uint64_t from_ns, to_ns;	 /* relative to the first sample; to 0 = end */
	struct uni_naming naming;
	bool mark_truncated; /* a "[truncated]" root frame under chains that did not end at their
				root */
};

#define UNI_BUILD_DEFAULTS               \
	{                                \
		.filter = UNI_FILTER_ALL \
	}

/* The leaf frame of a vCPU's state, "[idle]"; NULL: none, it ran guest code. */
const char *uni_state_frame(unsigned state);

/* What was there to build from, whatever the options left out of it. */
struct uni_build_read {
	uint64_t samples; /* read; fewer than the statistics say: the streams are damaged */
	uint64_t torn;	  /* packets that were passed over */
};

/*
 * Callers are looked up at pc - 1, the leaf (and UNI_FRAME_EXACT) at pc. The result is finished.
 * read_ret may be NULL.
 */
int uni_profile_build(struct uni_recording *rec, const struct uni_build_opts *opts,
	struct uni_profile **ret, struct uni_build_read *read_ret, struct uni_err *err);

#endif
