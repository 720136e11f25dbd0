/* SPDX-License-Identifier: BSD-2-Clause */
/* Exporters: one const table a file. They see views, never targets or descriptors. */
#ifndef UNI_FORMAT_EXPORT_H
#define UNI_FORMAT_EXPORT_H

#include "base/err.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "profile/profile.h"
#include "trace/timeline.h"

struct uni_build_opts;
struct uni_promise_model;
struct uni_recording;
struct uni_sample_filter;
struct uni_symtab;

/* The input of an exporter. Each field may be NULL; `needs` lists those that the exporter
 * requires. */
struct uni_view {
	const struct uni_profile *profile;
	const struct uni_timeline *timeline; /* of one guest; an exporter reads it to its end */
	const struct uni_promise_model *promises; /* UNI_TAKES_PROMISES: threads and promises */
	struct uni_recording *samples;		  /* single samples in time order */
	const struct uni_sample_filter *filter;	  /* of the samples; NULL: all */
	const struct uni_symtab *symtab; /* instead of what travelled with the samples, or NULL */
	const struct uni_build_opts *build; /* how samples become stacks; NULL: as they come */
	const char *title, *subtitle;	    /* subtitle: NULL none */
	/* For each frame of a profile with two columns: its function is known to have grown (1) or
	 * shrunk (-1). NULL: all differences are shown. Formats without such marks show all. */
	const int8_t *sure;
	bool mangled;		 /* names from symtab as the linker has them */
	struct uni_strbuf *lost; /* lines about data that the format cannot hold, or NULL */
};

/* The string of a frame's name where its line has a place of its own; that it is a guess has none.
 */
static inline uint32_t uni_frame_said(const struct uni_frame *f)
{
	return f->plain != 0 && !f->guess ? f->plain : f->name;
}

enum uni_view_needs {
	UNI_NEEDS_PROFILE = 1u << 0,
	UNI_NEEDS_TIMELINE = 1u << 1,
	UNI_NEEDS_SAMPLES = 1u << 2,
	/* With a profile: also single samples, if there are any, for their times and threads. */
	UNI_TAKES_SAMPLES = 1u << 3,
	/* A timeline, or a profile (with its samples), or both. */
	UNI_TAKES_ALL = 1u << 4,
	/* The threads and promises of a timeline; it need not have any calls. */
	UNI_TAKES_PROMISES = 1u << 5,
	/* With samples: also VM exits. */
	UNI_TAKES_EXITS = 1u << 6,
	/* A profile, if there is no timeline. */
	UNI_OR_PROFILE = 1u << 7,
	/* With a profile that is one of calls: these calls with their times, as a timeline. */
	UNI_TAKES_CALLS = 1u << 8,
	/* Uses a profile's nodes only by their parents and siblings; the output does not depend on
	 * node numbers. */
	UNI_WALKS_TREE = 1u << 9,
	/* With samples: exact counts of their session (recording/exact.h). */
	UNI_NEEDS_EXACT = 1u << 11,
	/* A sorted pile (profile/pile.h) will do instead of a tree. */
	UNI_TAKES_PILE = 1u << 10,
};

struct uni_export_opt { /* --option name=value of this exporter */
	const char *name, *value;
};

/* One option that an exporter knows: for its parser, for --help and for the man page. */
struct uni_export_optdef {
	const char *name;   /* "width" */
	const char *value;  /* "PIXELS"; NULL: a switch (no value, or yes/no) */
	const char *help;   /* one line with the default */
	unsigned char type; /* enum uni_export_opt_type, see format/opts.h */
	size_t offset;	    /* of the member that takes the value */
	bool ordered;	    /* it needs the stacks in the order in which they came */
	const char *output; /* its value is a file that is written, this one without a value */
};

struct uni_exporter {
	const char *name; /* "folded" */
	const char *ext;  /* "folded" */
	const char *mime;
	const char *summary;
	const char *lost; /* parts of samples that it cannot hold: "times, vCPUs"; NULL: none */
	unsigned needs;	  /* enum uni_view_needs */
	const struct uni_export_optdef *options; /* ends with a NULL name; NULL = none */
	/*
	 * Writes everything to out. The owner of out closes it and sees failed writes. Returns
	 * -UNI_EUSAGE before the first byte if an option is not in the table or its value is
	 * invalid.
	 */
	int (*write)(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
		struct uni_sink *out, struct uni_err *err);
	/* Used instead of write() by formats that are folders. Makes the folder; refuses one that
	 * exists. */
	int (*write_folder)(const struct uni_view *v, const struct uni_export_opt *opts,
		size_t nr_opts, const char *path, struct uni_err *err);
};

extern const struct uni_exporter *const uni_exporters[]; /* ends with NULL */
const struct uni_exporter *uni_exporter_by_name(const char *name);
/* Does an option that is given need the stacks in their order? */
bool uni_export_opts_ordered(
	const struct uni_exporter *e, const struct uni_export_opt *opts, size_t nr_opts);
/* The file that an option asks to write beside the output, or NULL. */
const char *uni_export_opts_output(
	const struct uni_exporter *e, const struct uni_export_opt *opts, size_t nr_opts);

#endif
