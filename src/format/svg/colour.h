/* SPDX-License-Identifier: BSD-2-Clause */
/* Colours of frames: flamegraph.pl's palettes, so that graphs of both look alike. */
#ifndef UNI_FORMAT_SVG_COLOUR_H
#define UNI_FORMAT_SVG_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uni_rgb {
	uint8_t r, g, b;
};

struct uni_palette;

/* How a name becomes the numbers that a palette turns into a colour. */
enum uni_colour_hash {
	UNI_COLOUR_SUM,	   /* of its code points, as seed of drand48: the default */
	UNI_COLOUR_PREFIX, /* its first three characters weigh: alike names, alike colours */
	UNI_COLOUR_RANDOM, /* the next three of drand48, in drawing order */
};

struct uni_colours {
	const struct uni_palette *palette;
	enum uni_colour_hash hash;
	uint64_t rand; /* drand48 state of UNI_COLOUR_RANDOM */
};

/* "hot", "mem", ...; NULL if there is none. */
const struct uni_palette *uni_palette_by_name(const char *name);
/* All names, "hot mem io ...". */
const char *uni_palette_names(void);
/* The background that goes with it: "yellow", "green", "blue" or "grey". */
const char *uni_palette_background(const struct uni_palette *p);
/* Start and end of a background gradient: a name of above or "#rrggbb"; false if neither. */
bool uni_background(const char *name, const char **from_ret, const char **to_ret);

/* The state that srand48(seed) sets. */
uint64_t uni_rand48_seed(uint32_t seed);

struct uni_rgb uni_colour_name(struct uni_colours *c, const char *name);
/* Inlined functions look different in every palette. */
struct uni_rgb uni_colour_inlined(struct uni_colours *c, const char *name);
/* Differential: delta in [-max, max]; white, red (safe: orange) for more, blue for less. */
struct uni_rgb uni_colour_delta(double delta, double max, bool safe);

#endif
