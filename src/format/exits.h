/* SPDX-License-Identifier: BSD-2-Clause */
/* VM exits one by one, for formats that show them beside the samples. */
#ifndef UNI_FORMAT_EXITS_H
#define UNI_FORMAT_EXITS_H

#include "base/vec.h"
#include "format/export.h"

struct uni_exit_row {
	uint64_t t_ns;	  /* host CLOCK_MONOTONIC */
	uint64_t host_ns; /* of one exit */
	uint64_t weight;  /* number of exits that the row stands for */
	uint32_t lane;
	uint32_t frame; /* of the profile: "[exit io out 0x3f8]" */
};

/* The rows of one vCPU. */
struct uni_exit_lane {
	uint32_t guest, vcpu;
	size_t nr; /* rows */
};

struct uni_exit_rows {
	UNI_VEC(struct uni_exit_row) rows; /* by time */
	UNI_VEC(struct uni_exit_lane) lanes;
	struct uni_profile *p; /* owned; NULL: there are none */
};

bool uni_view_has_exits(const struct uni_view *v); /* a recording of samples and of exits */
/* Empty where the view is not of a recording's samples, or has no exits. Deinit in any case. */
int uni_exit_rows_init(struct uni_exit_rows *r, const struct uni_view *v, struct uni_err *err);
void uni_exit_rows_deinit(struct uni_exit_rows *r);
const char *uni_exit_row_name(const struct uni_exit_rows *r, uint32_t frame);

#endif
