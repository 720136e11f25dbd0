/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lookups IMAGE [SECONDS]: how fast addresses become names, by one core. Prints a line of each.
 * cold: from nothing to the names of one stack, ms. index: the rest of the debug data, ms. symbols,
 * places: lookups a second; places have inlined functions and lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "obj/debug.h"

#define STACK_DEPTH 20
#define ADDRESSES   65536u /* asked for by turns; they do not fit the nearest cache */

static uint64_t state = 88172645463325252ull;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* An address in a function, as samples have them. */
static uint64_t pick(const struct uni_image *img)
{
	const struct uni_symbol *s = uni_image_symbol(img, rnd() % uni_image_nr_symbols(img));

	return s->addr + rnd() % s->size;
}

static void fail(const struct uni_err *err)
{
	(void)fprintf(stderr, "lookups: %s\n", err->msg);
	exit(1);
}

static struct uni_debug *cold(const char *path, struct uni_image **img_ret)
{
	uint64_t begin = uni_now_ns();
	struct uni_place place[UNI_INLINE_MAX];
	struct uni_err err = { 0 };
	struct uni_debug *d;

	if (uni_image_load(path, img_ret, &err) != 0 ||
		uni_debug_of_image(*img_ret, NULL, &d, &err) != 0)
		fail(&err);
	for (unsigned i = 0; i < STACK_DEPTH; i++) {
		uint64_t addr = pick(*img_ret);

		(void)uni_image_lookup(*img_ret, addr);
		(void)uni_debug_lookup(d, addr, place, NULL);
	}
	(void)printf("cold %.2f\n", (double)(uni_now_ns() - begin) / 1e6);
	begin = uni_now_ns();
	uni_debug_load_all(d);
	(void)printf("index %.2f\n", (double)(uni_now_ns() - begin) / 1e6);
	return d;
}

int main(int argc, char **argv)
{
	double seconds = 1.0;
	struct uni_image *img = NULL;
	struct uni_debug *d;
	static uint64_t addr[ADDRESSES];
	struct uni_place place[UNI_INLINE_MAX];
	uint64_t begin, n, frames = 0, known = 0;

	if (argc < 2 || argc > 3 || (argc == 3 && !uni_parse_double(argv[2], &seconds))) {
		(void)fputs("usage: lookups IMAGE [SECONDS]\n", stderr);
		return 2;
	}
	d = cold(argv[1], &img);
	for (size_t i = 0; i < ADDRESSES; i++) {
		addr[i] = pick(img);
		/* Names are looked up once, as a profile does. */
		frames += uni_debug_lookup(d, addr[i], place, NULL);
	}
	begin = uni_now_ns();
	for (n = 0; (double)(uni_now_ns() - begin) < seconds * 1e9; n += ADDRESSES) {
		for (size_t i = 0; i < ADDRESSES; i++)
			known += uni_image_lookup(img, addr[i]) != NULL;
	}
	(void)printf("symbols %.4g\n", (double)n * 1e9 / (double)(uni_now_ns() - begin));
	begin = uni_now_ns();
	for (n = 0; (double)(uni_now_ns() - begin) < seconds * 1e9; n += ADDRESSES) {
		for (size_t i = 0; i < ADDRESSES; i++)
			known += uni_debug_lookup(d, addr[i], place, NULL) != 0;
	}
	(void)printf("places %.4g\n", (double)n * 1e9 / (double)(uni_now_ns() - begin));
	(void)printf(
		"frames %.3f a lookup; %" PRIu64 " known\n", (double)frames / ADDRESSES, known);
	uni_debug_destroy(d);
	uni_image_destroy(img);
	return 0;
}
