/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/svg/colour.h"

#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "format/xml.h"

/* One channel: base + int(span * v[which]). */
struct channel {
	uint8_t base, span, which;
};

struct uni_palette {
	const char *name, *background;
	struct channel rgb[3];
	const char *(*choose)(const char *name); /* by the function's name, another palette */
};

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);

	return n >= t && strcmp(s + n - t, tail) == 0;
}

static const char *choose_java(const char *name)
{
	static const char *const packages[] = { "java/", "javax/", "jdk/", "net/", "org/", "com/",
		"io/", "sun/" };
	const char *s = name[0] == 'L' ? name + 1 : name;

	if (ends_with(name, "_[j]"))
		return "green";
	if (ends_with(name, "_[i]"))
		return "aqua";
	for (size_t i = 0; i < uni_array_len(packages); i++) {
		if (strncmp(s, packages[i], strlen(packages[i])) == 0)
			return "green";
	}
	if (strstr(name, ":::") != NULL)
		return "green";
	if (strstr(name, "::") != NULL)
		return "yellow";
	return ends_with(name, "_[k]") ? "orange" : "red";
}

static const char *choose_perl(const char *name)
{
	if (strstr(name, "::") != NULL)
		return "yellow";
	if (strstr(name, "Perl") != NULL || strstr(name, ".pl") != NULL)
		return "green";
	return ends_with(name, "_[k]") ? "orange" : "red";
}

static const char *choose_js(const char *name)
{
	const char *slash = strchr(name, '/');

	if (ends_with(name, "_[j]"))
		return slash != NULL ? "green" : "aqua";
	if (strstr(name, "::") != NULL)
		return "yellow";
	if (slash != NULL && strstr(slash, ".js") != NULL)
		return "green";
	if (strchr(name, ':') != NULL)
		return "aqua";
	if (strcmp(name, " ") == 0)
		return "green";
	return strstr(name, "_[k]") != NULL ? "orange" : "red";
}

static const char *choose_wakeup(const char *name)
{
	return "aqua";
}

static const char *choose_chain(const char *name)
{
	return strstr(name, "_[w]") != NULL ? "aqua" : "blue";
}

static const struct uni_palette palettes[] = {
	{ "hot", "yellow", { { 205, 50, 2 }, { 0, 230, 0 }, { 0, 55, 1 } }, NULL },
	{ "mem", "green", { { 0, 0, 0 }, { 190, 50, 1 }, { 0, 210, 0 } }, NULL },
	{ "io", "blue", { { 80, 60, 0 }, { 80, 60, 0 }, { 190, 55, 1 } }, NULL },
	{ "red", "grey", { { 200, 55, 0 }, { 50, 80, 0 }, { 50, 80, 0 } }, NULL },
	{ "green", "grey", { { 50, 60, 0 }, { 200, 55, 0 }, { 50, 60, 0 } }, NULL },
	{ "blue", "grey", { { 80, 60, 0 }, { 80, 60, 0 }, { 205, 50, 0 } }, NULL },
	{ "aqua", "grey", { { 50, 60, 0 }, { 165, 55, 0 }, { 165, 55, 0 } }, NULL },
	{ "yellow", "grey", { { 175, 55, 0 }, { 175, 55, 0 }, { 50, 20, 0 } }, NULL },
	{ "purple", "grey", { { 190, 65, 0 }, { 80, 60, 0 }, { 190, 65, 0 } }, NULL },
	{ "orange", "grey", { { 190, 65, 0 }, { 90, 65, 0 }, { 0, 0, 0 } }, NULL },
	{ .name = "java", .background = "yellow", .choose = choose_java },
	{ .name = "js", .background = "yellow", .choose = choose_js },
	{ .name = "perl", .background = "yellow", .choose = choose_perl },
	{ .name = "wakeup", .background = "blue", .choose = choose_wakeup },
	{ .name = "chain", .background = "blue", .choose = choose_chain },
};

const struct uni_palette *uni_palette_by_name(const char *name)
{
	for (size_t i = 0; i < uni_array_len(palettes); i++) {
		if (strcmp(palettes[i].name, name) == 0)
			return &palettes[i];
	}
	return NULL;
}

const char *uni_palette_names(void)
{
	return "hot mem io wakeup chain java js perl red green blue aqua yellow purple orange";
}

const char *uni_palette_background(const struct uni_palette *p)
{
	return p->background;
}

bool uni_background(const char *name, const char **from_ret, const char **to_ret)
{
	static const char *const gradients[][3] = {
		{ "yellow", "#eeeeee", "#eeeeb0" },
		{ "blue", "#eeeeee", "#e0e0ff" },
		{ "green", "#eef2ee", "#e0ffe0" },
		{ "grey", "#f8f8f8", "#e8e8e8" },
	};

	for (size_t i = 0; i < uni_array_len(gradients); i++) {
		if (strcmp(gradients[i][0], name) == 0) {
			*from_ret = gradients[i][1];
			*to_ret = gradients[i][2];
			return true;
		}
	}
	if (name[0] != '#' || strlen(name) != 7)
		return false;
	for (size_t i = 1; i < 7; i++) {
		if (!isxdigit((unsigned char)name[i]))
			return false;
	}
	*from_ret = *to_ret = name;
	return true;
}

/* drand48 as POSIX defines it, with its state in our hands. */
uint64_t uni_rand48_seed(uint32_t seed)
{
	return (uint64_t)seed << 16 | 0x330e;
}

static double rand48_next(uint64_t *state)
{
	*state = (*state * 0x5deece66dull + 0xb) & 0xffffffffffffull;
	return (double)*state / 281474976710656.0; /* 2^48 */
}

static double sum_value(const char *name)
{
	const char *end = name + strlen(name);
	uint32_t sum = 0;
	uint64_t state;

	while (name < end)
		sum += uni_utf8_next(&name, end);
	state = uni_rand48_seed(sum);
	return rand48_next(&state);
}

/*
 * Each of the first three characters falls into one of 10, 11, 12 classes; earlier ones weigh
 * more. All in class 0 gives 1, higher classes less.
 */
static double prefix_value(const uint32_t *cp, size_t nr)
{
	double sum = 0.0, weight = 1.0, max = 1.0;

	for (size_t i = 0; i < nr && i < 3; i++) {
		uint32_t classes = 10 + (uint32_t)i;

		sum += (double)(cp[i] % classes) / (classes - 1) * weight;
		max += weight;
		weight *= 0.7;
	}
	return 1.0 - sum / max;
}

/* "module`function": the part before the quote does not count, if it is not empty. */
static size_t skip_module(const uint32_t *cp, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		if (cp[i] == '`')
			return i + 1;
	}
	return 0;
}

static void prefix_values(const char *name, double *first_ret, double *last_ret)
{
	enum { MAX = 1024 };
	uint32_t cp[MAX] = { 0 }, back[MAX] = { 0 };
	const char *end = name + strlen(name);
	size_t nr = 0, skip;

	while (name < end && nr < MAX)
		cp[nr++] = uni_utf8_next(&name, end);
	for (size_t i = 0; i < nr; i++)
		back[i] = cp[nr - 1 - i];
	skip = skip_module(cp, nr);
	*first_ret = prefix_value(cp + skip, nr - skip);
	skip = skip_module(back, nr);
	*last_ret = prefix_value(back + skip, nr - skip);
}

struct uni_rgb uni_colour_name(struct uni_colours *c, const char *name)
{
	const struct uni_palette *p = c->palette;
	double v[3];
	uint8_t out[3];

	if (strcmp(name, "--") == 0)
		return (struct uni_rgb){ 160, 160, 160 };
	if (strcmp(name, "-") == 0)
		return (struct uni_rgb){ 200, 200, 200 };
	if (c->hash == UNI_COLOUR_RANDOM) {
		for (size_t i = 0; i < 3; i++)
			v[i] = rand48_next(&c->rand);
	} else if (c->hash == UNI_COLOUR_PREFIX) {
		prefix_values(name, &v[0], &v[1]);
		v[2] = v[1];
	} else {
		v[0] = v[1] = v[2] = sum_value(name);
	}
	if (p->choose != NULL)
		p = uni_palette_by_name(p->choose(name));
	for (size_t i = 0; i < 3; i++)
		out[i] = (uint8_t)(p->rgb[i].base + (int)(p->rgb[i].span * v[p->rgb[i].which]));
	return (struct uni_rgb){ out[0], out[1], out[2] };
}

struct uni_rgb uni_colour_inlined(struct uni_colours *c, const char *name)
{
	struct uni_colours aqua = *c;
	struct uni_rgb ret;

	aqua.palette = uni_palette_by_name("aqua");
	ret = uni_colour_name(&aqua, name);
	c->rand = aqua.rand;
	return ret;
}

/* From white to a colour; both channels that fade differ from it in brightness. */
static struct uni_rgb fade_towards(struct uni_rgb full, double share)
{
	return (struct uni_rgb){ (uint8_t)(255.0 - (255.0 - full.r) * share),
		(uint8_t)(255.0 - (255.0 - full.g) * share),
		(uint8_t)(255.0 - (255.0 - full.b) * share) };
}

struct uni_rgb uni_colour_delta(double delta, double max, bool safe)
{
	static const struct uni_rgb orange = { 213, 94, 0 }, blue = { 0, 90, 178 };
	double size = delta < 0 ? -delta : delta;
	uint8_t fade = (uint8_t)(210.0 * (max - size) / max);

	if (delta == 0.0)
		return (struct uni_rgb){ 255, 255, 255 };
	if (safe) /* the least change is a little coloured, as in the other palette */
		return fade_towards(delta > 0 ? orange : blue, 0.18 + 0.82 * size / max);
	if (delta > 0)
		return (struct uni_rgb){ 255, fade, fade };
	return (struct uni_rgb){ fade, fade, 255 };
}
