/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that go with a flame graph: colours of functions, and attributes of frames. Colours that
 * were read are read again after they were saved. No attribute that is given out runs a script.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "format/svg/files.h"
#include "files.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/uni-svgfiles-XXXXXX", in[64], out[64];

static void remove_files(void)
{
	(void)unlink(in);
	(void)unlink(out);
	(void)rmdir(folder);
}

static void make_files(void)
{
	if (in[0] != '\0')
		return;
	require(mkdtemp(folder) != NULL && atexit(remove_files) == 0);
	(void)snprintf(in, sizeof(in), "%s/in", folder);
	(void)snprintf(out, sizeof(out), "%s/out", folder);
}

static void try_palette(void)
{
	static const struct uni_rgb grey = { 1, 2, 3 };
	struct uni_palette_map *m, *again;
	struct uni_err err = { 0 };
	struct uni_rgb a, b;

	if (uni_palette_map_open(in, &m, &err) != 0) {
		require(err.msg[0] != '\0');
		return;
	}
	a = uni_palette_map_colour(m, "main", grey);
	told(&a, sizeof(a));
	require(uni_palette_map_save(m, out, &err) == 0);
	require(uni_palette_map_open(out, &again, &err) == 0);
	b = uni_palette_map_colour(again, "main", (struct uni_rgb){ 9, 9, 9 });
	require(memcmp(&a, &b, sizeof(a)) == 0);
	uni_palette_map_close(again);
	uni_palette_map_close(m);
	(void)unlink(out);
}

static void try_attrs(void)
{
	static const char *const names[] = { "title", "href", "class", "g_extra", "a_extra", "no" };
	struct uni_name_attrs *a;
	struct uni_err err = { 0 };

	if (uni_name_attrs_open(in, &a, &err) != 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = uni_name_attr(a, "main", names[i]);

		told_text(value != NULL ? value : "none");
		require(value == NULL || strcmp(names[i], "no") != 0);
		if (value != NULL && strcmp(names[i], "href") == 0)
			require(strncasecmp(value, "javascript:", 11) != 0);
		if (value != NULL && strcmp(names[i], "a_extra") == 0)
			require(strncasecmp(value, "onclick=", 8) != 0);
	}
	told_u64(uni_name_attrs_refused(a));
	uni_name_attrs_close(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	make_files();
	write_file(AT_FDCWD, in, data, size);
	try_palette();
	try_attrs();
	return 0;
}
