/* SPDX-License-Identifier: BSD-2-Clause */
/* Importers: other people's profiles become ours. */
#ifndef UNI_FORMAT_IMPORT_H
#define UNI_FORMAT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/usym.h"
#include "profile/build.h"
#include "profile/profile.h"

#define UNI_IMPORT_DEPTH 4096 /* frames kept of one stack, then [deeper] or [truncated] */

struct uni_import_stats {
	uint64_t stacks;	  /* accepted */
	uint64_t truncated;	  /* of those: marked as broken by their format */
	uint64_t empty;		  /* of those: without a frame; shown as [empty] */
	uint64_t cut;		  /* of those: deeper than UNI_IMPORT_DEPTH */
	uint64_t first_cut;	  /* the number of the first of these, 1-based; 0 = none */
	uint64_t bad_lines;	  /* skipped */
	uint64_t first_bad_line;  /* 1-based, 0 = none */
	uint64_t too_large;	  /* lines skipped because of a number that is too large for sums */
	uint64_t first_too_large; /* 1-based, 0 = none */
	uint64_t damaged;	  /* invalid parts of a binary format, skipped */
	uint64_t missed;	  /* missed deadlines, according to the tool that wrote it */
	double samples;		  /* that the values come from, if the file says; 0: not known */
	uint64_t left_out;	  /* samples with values that cannot be added to the others */
	const char *left_why;	  /* "of other events"; NULL: none */
};

struct uni_import_opts {
	const struct uni_symtab *symtab; /* names for raw addresses, or NULL */
	bool diff;    /* folded: the last two numbers are two columns; else only one is */
	bool mangled; /* names from symtab as the linker has them */
	bool reverse; /* frames of each stack leaf first */
	const struct uni_build_watch *watch; /* NULL: none */
};

enum uni_importer_gives {
	UNI_GIVES_CALLS = 1u << 0,    /* single calls (app/call_source.h), not only a profile */
	UNI_GIVES_PROMISES = 1u << 1, /* threads and promises, and no calls */
	UNI_GIVES_NAMES = 1u << 2,    /* frames are names: without images and lines */
};

struct uni_importer {
	const char *name;
	const char *summary;
	const char *lost; /* data that a profile cannot hold, and where to see it, or NULL */
	unsigned gives;	  /* enum uni_importer_gives */
	bool far; /* sniff looks at all of it, and is not asked where another one is rather sure */
	/* Does it look like this format? 0 no .. 100 certainly. */
	int (*sniff)(const char *data, size_t size);
	/* For formats that are folders: is the path such a folder? If so, read_folder is called. A
	 * format that also has read exists in both forms. NULL: the format is a file. */
	bool (*is_folder)(const char *path);
	int (*read_folder)(const char *path, const struct uni_import_opts *opts,
		struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err);
	/* Reads a file of which `head` was read already; fd has the rest. Refuses a file of more
	 * than max bytes. NULL: the format needs the whole file at once. */
	int (*read_stream)(int fd, const char *head, size_t have, uint64_t max,
		const struct uni_import_opts *opts, struct uni_profile *p,
		struct uni_import_stats *stats_ret, struct uni_err *err);
	/* Adds to an unfinished profile. Only an input without one good line is an error. */
	int (*read)(const char *data, size_t size, const struct uni_import_opts *opts,
		struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err);
};

extern const struct uni_importer *const uni_importers[]; /* ends with NULL */
const struct uni_importer *uni_importer_by_name(const char *name);
const struct uni_importer *uni_importer_sniff(const char *data, size_t size);
/* Does nothing that may follow make it another one's? */
bool uni_importer_is_sure(const struct uni_importer *i, const char *head, size_t have);
const struct uni_importer *uni_importer_of_folder(const char *path);

#endif
