/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples a guest and writes uniprof's text as it goes. */
#ifndef UNI_COMPAT_UNIPROF_PRINT_H
#define UNI_COMPAT_UNIPROF_PRINT_H

#include "base/sink.h"
#include "app/attach.h"
#include "app/pace.h"

struct uni_tracer_args {
	double frequency, duration;	 /* Hz, seconds; 0 s: until a signal */
	const struct uni_symtab *symtab; /* names for addresses; NULL: addresses */
	const char *target;		 /* for the header */
	const struct uni_pace *pace;
	bool say_missed; /* a line on stderr for each missed deadline */
	bool quiet;	 /* nothing else on stderr */
};

/* Runs until the time is over, a signal, the guest's end, or the reader has gone away. */
int uni_tracer_run(struct uni_guest *g, const struct uni_tracer_args *args, struct uni_sink *out,
	struct uni_err *err);

#endif
