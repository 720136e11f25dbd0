/* SPDX-License-Identifier: BSD-2-Clause */
/* The words in which `top` speaks of guest, window and quality; screen and batch share them. */
#ifndef UNI_TOP_SAY_H
#define UNI_TOP_SAY_H

#include "app/quality.h"
#include "top/model.h"

#define UNI_SAY_MAX	  512
#define UNI_SAY_PARTS_MAX 10

/* "12.3 us": three digits or so. */
void uni_say_ns(char *out, size_t cap, double ns);
/* "last 10 s", "since the start, 83 s" */
void uni_say_window(char *out, size_t cap, const struct uni_top *top);
/* "sorted by self, vCPU 1 only, functions like "foo"": "" if all is as usual */
void uni_say_settings(char *out, size_t cap, const struct uni_top *top);
/* "100 % is all time" */
const char *uni_say_whole(const struct uni_top *top);

struct uni_say_parts {
	char v[UNI_SAY_PARTS_MAX][128];
	bool bad[UNI_SAY_PARTS_MAX]; /* something is wrong with it */
	size_t nr;
};

/* How good the sampling is, the most important first. */
void uni_say_quality(struct uni_say_parts *ret, const struct uni_top *top);
/* The parts of one vCPU: "busy 63.2 %", "idle 36.8 %", ... as far as known. */
void uni_say_vcpu(struct uni_say_parts *ret, const struct uni_top_vcpu *v);
/* Why what is shown is no profile of the image; since the start, whatever the window. */
bool uni_say_doubt(char out[UNI_QUALITY_METHOD], const struct uni_top *top);
/* Why it is over; "" while it runs. */
void uni_say_end(char *out, size_t cap, const struct uni_top *top);

#endif
