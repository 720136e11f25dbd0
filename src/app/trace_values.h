/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and return values of traced calls, with names and types if the image has debug data. */
#ifndef UNI_APP_TRACE_VALUES_H
#define UNI_APP_TRACE_VALUES_H

#include "app/options.h"
#include "base/strbuf.h"
#include "obj/image.h"
#include "obj/params.h"
#include "obj/variable.h"
#include "recording/recording.h"
#include "trace/calls.h"

struct uni_known_params {
	bool looked;
	struct uni_params *params; /* NULL: nothing is known of it */
};

struct uni_known_variable {
	uint32_t low; /* half of its address */
	char name[UNI_VARIABLE_NAME];
};

struct uni_trace_values {
	const struct uni_recording *rec;
	uint32_t guest;
	const struct uni_calls *calls; /* for texts; or NULL */
	const char *
		symbols; /* --symbols, or NULL: the image that was recorded, if it is still there */
	struct uni_image_search search;
	bool looked, loaded; /* for debug data, for the image */
	struct uni_image *image;
	uint32_t objects;			/* that were looked up */
	struct uni_debug *debug;		/* NULL: registers are shown as they were */
	UNI_VEC(struct uni_known_params) known; /* by function */
	UNI_VEC(struct uni_known_variable) variable;
	struct uni_strbuf text;
};

/* Reads nothing yet. All is borrowed. */
void uni_trace_values_init(struct uni_trace_values *v, const struct uni_recording *rec,
	uint32_t guest, const char *symbols, const struct uni_opt_list *debug_dirs);
void uni_trace_values_deinit(struct uni_trace_values *v);

/* The parameters of a function at this address; NULL: nothing is known. */
const struct uni_params *uni_trace_values_params(void *values, uint32_t func, uint64_t address);
/* The name of a variable that has this low half of its address in the guest. */
const char *uni_trace_values_variable(void *values, uint32_t low);
/* The name of the guest's variable at this address, "locks+0x28"; "": none is known. */
void uni_trace_values_at(void *values, uint64_t address, char *ret, size_t cap);
/* Values of an event of v->calls, whose function is at this address. */
void uni_trace_values_text(struct uni_trace_values *v, uint64_t address,
	const struct uni_call_event *e, char *buf, size_t size);

#endif
