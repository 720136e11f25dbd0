/* SPDX-License-Identifier: BSD-2-Clause */
/* A function's code with the numbers that a session has for it; as text, and as JSON. */
#ifndef UNI_ANNOTATE_ANNOTATION_H
#define UNI_ANNOTATE_ANNOTATION_H

#include "annotate/code.h"
#include "annotate/lines.h"
#include "base/json.h"
#include "base/sink.h"
#include "recording/recording.h"

enum uni_annotation_of {
	UNI_ANNOTATE_SAMPLES,
	UNI_ANNOTATE_EXACT, /* executions of each instruction */
	UNI_ANNOTATE_CALLS, /* of a trace: no numbers of instructions */
};

/* A function that this one called, by a trace or exact counts. */
struct uni_annotation_callee {
	uint64_t addr;	/* SVMA */
	char name[256]; /* demangled */
	uint64_t calls; /* made by this function */
	double value;	/* in them: ns, or instructions */
	uint32_t sites; /* call instructions of this function that name it */
};

struct uni_annotation {
	struct uni_code code;
	enum uni_annotation_of of;
	const char *image; /* path; borrowed */
	char part[256];	   /* the part of the session, "2 s to 3.5 s only"; "" all of it */
	struct uni_record_part only; /* the same, if it is a part; its thread is borrowed */
	/* It was asked for, and is inlined in this function, which has that many of its samples.
	 * "": the function itself was asked for. */
	char inlined[512];
	double inlined_here, inlined_all;
	uint32_t guest;
	uint64_t bias;	    /* AVMA - SVMA */
	bool blocks;	    /* the vCPU stops only where a block of code begins */
	double self, total; /* of the function, in the unit */
	double all;	    /* of the guest: what 100 % is */
	double somewhere;   /* of self: at no known instruction */
	uint64_t calls;	    /* of the function; traces and exact counts */
	uint32_t serial;    /* of samples; ours */
	UNI_VEC(struct uni_annotation_callee) callees;
};

void uni_annotation_deinit(struct uni_annotation *a);
/* Takes all samples out again; the code stays. */
void uni_annotation_clear(struct uni_annotation *a);
/* A sample that was chosen; others of the session are not added. */
void uni_annotation_add(struct uni_annotation *a, const struct uni_sample *s);
/* Calls of one callee, of which others may come. False: out of memory. */
bool uni_annotation_add_call(
	struct uni_annotation *a, uint64_t addr, const char *name, uint64_t calls, double value);
/* All was added: gives callees to the instructions that call them. */
void uni_annotation_finish(struct uni_annotation *a);
const char *uni_annotation_unit(const struct uni_annotation *a); /* of self and total */

struct uni_annotation_text {
	bool colour;
	unsigned width; /* columns; 0: do not cut */
};

/* 0 or -UNI_ENOMEM. */
int uni_annotation_print(const struct uni_annotation *a, struct uni_lines *lines,
	const struct uni_annotation_text *opts, struct uni_sink *out);
void uni_annotation_json(
	const struct uni_annotation *a, struct uni_lines *lines, struct uni_sink *out);
/* The same as a value, with the jumps drawn beside each instruction ("arrows"). False: out of
 * memory. */
bool uni_annotation_drawn(
	const struct uni_annotation *a, struct uni_lines *lines, struct uni_json *j);

#endif
