/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a guest is sampled: the meaning of the method's name in a session, and the choices of a user.
 */
#ifndef UNI_BACKEND_METHOD_H
#define UNI_BACKEND_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/spec.h"

enum uni_method_flags {
	UNI_METHOD_STREAMED = 1u << 0, /* somebody else makes the samples; we read them */
	UNI_METHOD_INSIDE = 1u << 1,   /* the guest makes them */
	UNI_METHOD_KERNEL = 1u << 2, /* our programs in the kernel: they can count, and see exits */
	UNI_METHOD_UNPAUSED = 1u << 3, /* the guest is not stopped for samples */
	UNI_METHOD_COUNTED = 1u << 4,  /* all frames are functions' first bytes */
	UNI_METHOD_ON_CPU = 1u << 5,   /* its clock is CPU time: no samples of other time */
};

struct uni_method {
	const char *name; /* "bpf" */
	const char *text; /* for reports */
	unsigned flags;
};

/* NULL: the name is not known. */
const struct uni_method *uni_method_by_name(const char *name);
/* The method's flags; 0 if the name is not known, or NULL. */
unsigned uni_method_flags(const char *name);

/* The values of --method. */
enum uni_asked {
	UNI_ASKED_AUTO,
	UNI_ASKED_KERNEL,
	UNI_ASKED_PAUSE,
};
/* NULL is "auto". False: there is no such method. */
bool uni_asked_parse(const char *method, enum uni_asked *ret);

/* How the user wants a guest to be sampled. */
struct uni_way_wish {
	enum uni_asked asked;
	bool no_pause;
	bool threads;	     /* all threads, running or not */
	bool once;	     /* look at it once, do not record */
	bool no_samples;     /* neither of these */
	bool switches;	     /* the image's code switches stacks (arch/cfi.h) */
	bool pops;	     /* it pops return addresses, and goes on (arch/cfi.h) */
	const char *because; /* with UNI_ASKED_AUTO: why stopping the guest is better, or NULL */
};

/* A check_wish() of targets whose registers are read by stopping them: one look without a pause is
 * impossible. */
int uni_way_needs_stop(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_err *err);

/* A key that makes a target sample as the user wants. */
struct uni_way_key {
	const char *key, *value; /* NULL: no key is needed */
	const char *why;	 /* why its best way is not used, or NULL */
};

#endif
