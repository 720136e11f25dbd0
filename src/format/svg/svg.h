/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the SVG exporter: what svg.c decides once and svg_draw.c draws with. */
#ifndef UNI_FORMAT_SVG_SVG_H
#define UNI_FORMAT_SVG_SVG_H

#include "base/sink.h"
#include "format/svg/colour.h"
#include "format/svg/files.h"
#include "profile/profile.h"

#define UNI_SVG_XPAD	 10.0
#define UNI_SVG_FRAMEPAD 1.0 /* between rows */

struct uni_svg {
	/* Options */
	const char *title, *subtitle, *notes, *fonttype, *countname, *nametype;
	const char *colors, *bgcolors, *minwidth, *encoding;
	double width, height; /* pixels; height of a row */
	double fontsize, fontwidth;
	double total, factor; /* total 0: the profile's */
	uint64_t seed;
	bool inverted, reverse, negate, hash, random;
	bool flamechart, compat;
	const char *cp, *nameattr, *diffcolors;
	const int8_t *sure; /* as of the view */

	/* Derived from the options and the profile */
	const struct uni_profile *p;
	struct uni_sink *out;
	struct uni_colours colours;
	struct uni_palette_map *map;  /* of cp, or NULL */
	struct uni_name_attrs *attrs; /* of nameattr, or NULL */
	bool diff, ascii, safe;	      /* safe: for readers who cannot tell red from other colours */
	bool dark;		      /* follows the reader's preference */
	double max;		      /* value of the whole width */
	double min_value;	      /* narrower is not drawn */
	double max_delta;
	size_t max_depth; /* of the drawn frames; the root has 0 */
	double top_pad, bottom_pad, image_height;
};

/* Finds max_depth and max_delta. 0 or -UNI_ENOMEM. */
int uni_svg_measure(struct uni_svg *g);
/* Writes one <g> a frame, callers before callees. */
int uni_svg_draw_frames(struct uni_svg *g);

#endif
