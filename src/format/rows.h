/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single samples with their stacks as nodes of one tree, from which the formats of single samples
 * are written. Calls with their times give a row for each stretch of time in which a thread's stack
 * is the same (UNI_TAKES_CALLS). A profile without samples gives a row for each stack, one after
 * the other, so that these formats can hold an import, too. Then the times are made up (`timed` is
 * false).
 */
#ifndef UNI_FORMAT_ROWS_H
#define UNI_FORMAT_ROWS_H

#include "base/text.h"
#include "base/vec.h"
#include "format/export.h"

struct uni_row {
	uint64_t t_ns; /* host CLOCK_MONOTONIC; from 0 on if not timed */
	double value;  /* in the profile's unit */
	uint32_t node, track, lane;
	uint32_t pause_ns;
	uint8_t state; /* enum uni_vcpu_state */
};

/* The guest, vCPU and thread of a sample. */
struct uni_row_track {
	uint32_t guest, vcpu, thread; /* thread 0: not known */
	bool off_cpu;		      /* vcpu is meaningless */
	bool is_lane;		      /* without samples: it stands for a lane */
	uint32_t lane;
};

/* A row of the display in which one thing happens at a time: a thread, or a vCPU without known
 * threads. */
struct uni_row_lane {
	uint32_t guest, vcpu, thread;
	size_t nr; /* rows */
};

struct uni_rows {
	const struct uni_profile *p;  /* the tree of the nodes */
	UNI_VEC(struct uni_row) rows; /* by time */
	UNI_VEC(struct uni_row_track) tracks;
	UNI_VEC(struct uni_row_lane) lanes;
	uint32_t nr_guests;
	bool timed;
	bool is_time;	/* values are times, not numbers of something */
	double unit_ns; /* duration of a value of 1: the period; not timed: ns, or a guess */
	/* Private */
	const struct uni_recording *rec;
	const struct uni_timeline *tl;
	const char *title;
	struct uni_profile *owned;
	uint32_t *slots; /* track + 1 */
	size_t nr_slots;
};

/* Deinit in any case. */
int uni_rows_init(struct uni_rows *r, const struct uni_view *v, struct uni_err *err);
/* The same of the view's timeline, which is read to its end. */
int uni_rows_init_calls(struct uni_rows *r, const struct uni_view *v, struct uni_err *err);
void uni_rows_deinit(struct uni_rows *r);

/* For makers of rows: adds a row on track t. Returns 0 or -UNI_ENOMEM. */
int uni_rows_push(struct uni_rows *r, struct uni_row row, const struct uni_row_track *t);

/* For formats with times: adds a line to v->lost if the times are made up. */
void uni_rows_say(const struct uni_rows *r, const struct uni_view *v);
/* "web1", clean. */
void uni_rows_guest(const struct uni_rows *r, uint32_t guest, char ret[UNI_TEXT_MAX]);
/* The guest's thread, or "" for 0. */
void uni_rows_thread(
	const struct uni_rows *r, uint32_t guest, uint32_t thread, char ret[UNI_TEXT_MAX]);
/* "vcpu 0", "worker-3". */
void uni_rows_lane(const struct uni_rows *r, uint32_t lane, char ret[UNI_TEXT_MAX]);
/* Duration of the row, ns. */
uint64_t uni_row_ns(const struct uni_rows *r, const struct uni_row *row);
/* Indices of the rows lane by lane, each by time; owned by the caller. NULL: out of memory. */
uint32_t *uni_rows_by_lane(const struct uni_rows *r);
/* Frames of a node's stack, leaf first; false: out of memory. */
struct uni_row_stack {
	UNI_VEC(uint32_t) frames;
};
bool uni_row_stack(struct uni_row_stack *s, const struct uni_profile *p, uint32_t node);

#endif
