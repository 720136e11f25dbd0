/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * places IMAGE <addresses: prints what uniscope knows of each, in the words of `eu-addr2line -a -f
 * -i`. So a test can compare the two line by line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "obj/debug.h"

static void put_place(
	const struct uni_image *img, uint64_t addr, const struct uni_place *p, bool last)
{
	const struct uni_symbol *sym = last ? uni_image_lookup(img, addr) : NULL;
	const char *name = sym != NULL ? uni_image_sym_name(img, sym) : p->function;

	(void)printf("%s\n%s:%" PRIu32 "\n", name != NULL ? name : "??",
		p->file != NULL ? p->file : "??", p->line);
}

static void put_address(const struct uni_image *img, struct uni_debug *d, uint64_t addr)
{
	struct uni_place place[UNI_INLINE_MAX] = { 0 };
	struct uni_span span;
	size_t n = uni_debug_lookup(d, addr, place, &span);

	(void)printf("0x%016" PRIx64 "\n", addr);
	for (size_t i = 0; i < n || i == 0; i++)
		put_place(img, addr, &place[i], i + 1 >= n);
}

int main(int argc, char **argv)
{
	struct uni_err err = { 0 };
	struct uni_image *img = NULL;
	struct uni_debug *d = NULL;
	char line[64];

	if (argc != 2) {
		(void)fputs("usage: places IMAGE <ADDRESSES\n", stderr);
		return 2;
	}
	if (uni_image_load(argv[1], &img, &err) != 0 ||
		uni_debug_of_image(img, NULL, &d, &err) != 0) {
		(void)fprintf(stderr, "places: %s\n", err.msg);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin) != NULL) {
		uint64_t addr;

		line[strcspn(line, "\n")] = '\0';
		if (uni_parse_u64(line, &addr))
			put_address(img, d, addr);
	}
	if (uni_debug_note(d) != NULL)
		(void)fprintf(stderr, "places: %s\n", uni_debug_note(d));
	uni_debug_destroy(d);
	uni_image_destroy(img);
	return 0;
}
