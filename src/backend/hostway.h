/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A way to reach guests, as `doctor` explains it: each thing that it needs of this host, and how to
 * get what is missing.
 */
#ifndef UNI_BACKEND_HOSTWAY_H
#define UNI_BACKEND_HOSTWAY_H

#include <stdbool.h>
#include <stdint.h>

#define UNI_HOST_FACTS_MAX 16

struct uni_host_fact {
	const char *name; /* static: "capabilities" */
	bool ok;	  /* false: without it the way does not work, or not as well */
	char text[240];	  /* the finding; if not ok, also what to do */
};

struct uni_host_way {
	const char *name;    /* static: "kvm-bpf" */
	const char *summary; /* static, one line */
	bool ok;
	char advice[640]; /* why not and what to do; "" if ok */
	uint32_t nr;
	struct uni_host_fact fact[UNI_HOST_FACTS_MAX];
};

/* Adds a fact, or drops it if there is no room. Cleans the text. */
void uni_host_fact_add(struct uni_host_way *way, const char *name, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Sets `ok` and `advice` from all the facts: each fact that is not ok counts. */
void uni_host_way_judge(struct uni_host_way *way);

#endif
