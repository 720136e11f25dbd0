/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that go with a flame graph: colours that functions keep, and attributes of frames. */
#ifndef UNI_FORMAT_SVG_FILES_H
#define UNI_FORMAT_SVG_FILES_H

#include "base/err.h"
#include "base/sink.h"
#include "format/svg/colour.h"

struct uni_palette_map;

/* Lines "FUNCTION->rgb(R,G,B)"; a file that is not there is empty. */
int uni_palette_map_open(const char *path, struct uni_palette_map **ret, struct uni_err *err);
/* The function's colour in the map; if it has none, adds `otherwise` for it. */
struct uni_rgb uni_palette_map_colour(
	struct uni_palette_map *m, const char *name, struct uni_rgb otherwise);
/* Writes the file, sorted. */
int uni_palette_map_save(struct uni_palette_map *m, const char *path, struct uni_err *err);
void uni_palette_map_close(struct uni_palette_map *m); /* NULL-safe */

struct uni_name_attrs;

/* Lines "FUNCTION<TAB>NAME=VALUE<TAB>..." with title, href, target, id, class, g_extra, a_extra. */
int uni_name_attrs_open(const char *path, struct uni_name_attrs **ret, struct uni_err *err);
/* Its value for a function, borrowed; NULL: none. a may be NULL. */
const char *uni_name_attr(const struct uni_name_attrs *a, const char *function, const char *name);
/* Number of links and extras left out because a browser would run them. */
uint64_t uni_name_attrs_refused(const struct uni_name_attrs *a);
void uni_name_attrs_close(struct uni_name_attrs *a); /* NULL-safe */

#endif
