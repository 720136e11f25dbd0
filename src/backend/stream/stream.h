/* SPDX-License-Identifier: BSD-2-Clause */
/* stream: targets, inside. */
#ifndef UNI_BACKEND_STREAM_STREAM_H
#define UNI_BACKEND_STREAM_STREAM_H

#include "backend/patch.h"
#include "backend/stream/link.h"
#include "backend/stream/rings.h"
#include "backend/target.h"

/* A guest's counter and our clock at the same moment. */
struct uni_link_clock {
	uint64_t tsc, ns;
	uint64_t off_ns; /* the error is at most that */
};

struct uni_stream_sampling {
	bool on;
	const struct uni_stream_sink *sink; /* during a read */
	struct uni_rings rings;
	struct uni_stream_stats stats;
	uint64_t last_ns[UNI_VCPU_MAX]; /* time of the last sample: the clock becomes more exact,
					   but must not go back */
	uint64_t records;		/* samples that arrived, whatever their weight */
	struct uni_trace_sampler base, last; /* sums of all CPUs, at the begin and now */
	uint64_t first_ticks[UNI_VCPU_MAX];  /* at the begin */
	uint32_t silent;		     /* CPUs without any since then */
	uint64_t serving, served; /* cycles spent for hosts: before the begin, and until now */
	struct uni_link_clock first, clock;
	uint64_t hz; /* frequency of the counter */
	uint64_t next_look_ns;
};

struct uni_stream_target {
	struct uni_target base;
	struct uni_link link;
	struct uni_gmem *gmem;
	struct uni_stream_about about;
	struct uni_target_info info;
	bool held, was_frozen;
	struct uni_stream_sampling s;
};

/* Takes over the line. Also for tests. */
int uni_stream_attach_line(const struct uni_line *line, const uint8_t *key,
	const struct uni_attach_opts *opts, struct uni_target **ret, struct uni_err *err);

/* Changes one word of the guest's head. 0 or as uni_link_ask(). */
int uni_stream_set_word(struct uni_stream_target *t, uint64_t va, uint32_t value);

int uni_stream_write_text(struct uni_target *base, struct uni_patch_job *job);
int uni_stream_tsc(
	struct uni_target *base, uint64_t *ret, uint64_t *from_ns_ret, uint64_t *to_ns_ret);
int uni_stream_samples_start(struct uni_target *base, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err);
int uni_stream_samples_read(struct uni_target *base, const struct uni_stream_sink *sink);
void uni_stream_samples_stats(struct uni_target *base, struct uni_stream_stats *ret);
int uni_stream_samples_stop(struct uni_target *base);

#endif
