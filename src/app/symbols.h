/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with symbols that a user names, and the options that say how names are shown. */
#ifndef UNI_APP_SYMBOLS_H
#define UNI_APP_SYMBOLS_H

#include "app/options.h"
#include "obj/usym.h"
#include "profile/namer.h"

/* For the help of options that take one. */
#define UNI_SYMBOL_TABLE                                                                         \
	"a table of them in text: nm, System.map, kallsyms, objdump -t or -x, or three columns " \
	"(address, flag, name)"

enum uni_symbols_kind {
	UNI_SYMBOLS_ELF,
	UNI_SYMBOLS_USYM,
	UNI_SYMBOLS_TEXT,
};

/* By its first bytes. A file that cannot be read counts as ELF: loading it reports the error. */
enum uni_symbols_kind uni_symbols_kind_of(const char *path);

/* ELF, .usym, or a table in text. ELF brings its lines and inlined functions if the naming wants
 * them (NULL: it does not), as below. */
int uni_symbols_load(const char *path, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_symtab **ret, struct uni_err *err);

/* Lines and inlined functions for the symbols of img. If it has none, and lines were asked for, a
 * message on stderr says so. */
void uni_symbols_add_debug(const struct uni_image *img, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_symtab *s);

#define UNI_DEBUG_DIR_OPTION(list)                                                            \
	{                                                                                     \
		0, "debug-dir", UNI_OPT_LIST, &(list), "DIR",                                 \
			"look for split-off debug files here, before /usr/lib/debug; may be " \
			"given several times",                                                \
			"FILE", NULL                                                          \
	}

static inline struct uni_image_search uni_search_of(const struct uni_opt_list *debug_dirs)
{
	return (struct uni_image_search){ debug_dirs->items.v, debug_dirs->items.nr };
}

/* Option entries for a struct uni_naming. */
#define UNI_NAMING_OPTIONS(n)                                                                   \
	{ 0, "inline", UNI_OPT_FLAG, &(n).inlined, NULL, NULL, NULL, NULL },                    \
		{ 0, "no-inline", UNI_OPT_OFF, &(n).inlined, NULL,                              \
			"no frame of its own for an inlined function", NULL, NULL },            \
		{ 0, "lines", UNI_OPT_FLAG, &(n).lines, NULL,                                   \
			"tell source lines apart: function (file.c:12)", NULL, NULL },          \
		{ 0, "no-marks", UNI_OPT_FLAG, &(n).unmarked, NULL,                             \
			"no ? behind frames that were found by a scan, and may be wrong", NULL, \
			NULL },                                                                 \
	{                                                                                       \
		0, "no-demangle", UNI_OPT_FLAG, &(n).mangled, NULL,                             \
			"C++, Rust and OCaml names as the linker has them", NULL, NULL          \
	}

#endif
