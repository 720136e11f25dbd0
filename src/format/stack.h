/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared parts of importers: numbers, names that become frames, and the stack being collected. */
#ifndef UNI_FORMAT_STACK_H
#define UNI_FORMAT_STACK_H

#include "base/line.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "format/import.h"

/* Digits with an optional fraction, the whole string; false if not, or not below 2^53. */
bool uni_parse_count(const char *s, size_t len, double *ret);
/* "stack 42": takes the number and the blanks before it off the end of the line; false (and nothing
 * taken) without one. */
bool uni_line_take_count(struct uni_line *l, double *ret);

/* Does it end in a number which that refuses for its size? */
bool uni_line_too_large(struct uni_line l);

struct uni_stack {
	struct uni_profile *p;	      /* borrowed */
	struct uni_strtab *raw;	      /* names as they came; the profile has them cleaned */
	UNI_VEC(uint32_t) raw_frames; /* frame of each */
	UNI_VEC(uint32_t) frames;
	bool oom, limited;
	uint64_t frames_left; /* if limited */
};

/* false: out of memory. */
bool uni_stack_init(struct uni_stack *s, struct uni_profile *p);
void uni_stack_deinit(struct uni_stack *s);
/*
 * For formats in which a few bytes can stand for many frames. From now on all stacks together may
 * have 4 million frames, and 8 for each of these bytes. Adds up.
 */
void uni_stack_allow(struct uni_stack *s, size_t bytes);
/* The error of a failed uni_stack_flush(). */
int uni_stack_error(int rc, struct uni_err *err);
/* Frame of a name: cleaned; "-" for an empty one. UNI_NODE_NONE (and oom) without memory. */
uint32_t uni_stack_name(struct uni_stack *s, const char *name, size_t len);
/* The place that keeps the frame of a text; it holds UNI_NODE_NONE if the text is new. NULL (and
 * oom): out of memory. */
uint32_t *uni_stack_known(struct uni_stack *s, const char *raw, size_t len);
/* A frame of an image, which may be ""; both are cleaned. UNI_NODE_NONE (and oom). */
uint32_t uni_stack_frame(struct uni_stack *s, const char *name, size_t len, const char *image,
	size_t image_len, enum uni_frame_kind kind);
uint32_t uni_stack_synthetic(struct uni_stack *s, const char *name);
void uni_stack_push(struct uni_stack *s, uint32_t frame);
/* As uni_stack_push() of uni_stack_name() of each. */
void uni_stack_push_names(struct uni_stack *s, const struct uni_memo_key *names, size_t nr);
void uni_stack_reverse(struct uni_stack *s);
/*
 * Adds the pushed frames (root first) and empties the stack. The frames are under "[truncated]" if
 * that is set, and cut at UNI_IMPORT_DEPTH; a stack without a frame is "[empty]". Counts in stats.
 * Returns 0, -UNI_ENOMEM, or -UNI_ERANGE: more frames than are allowed.
 */
int uni_stack_flush(struct uni_stack *s, bool truncated, double value, double value2,
	struct uni_import_stats *stats);

/* Counts a cut in the stack that is flushed next, or is being flushed; `before` is the number of
 * stacks flushed already. */
static inline void uni_stats_cut(struct uni_import_stats *stats, uint64_t before)
{
	stats->cut++;
	if (stats->first_cut == 0)
		stats->first_cut = before + 1;
}

static inline void uni_stats_bad_line(struct uni_import_stats *stats, uint64_t line)
{
	stats->bad_lines++;
	if (stats->first_bad_line == 0)
		stats->first_bad_line = line;
}

#endif
