/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image whose debug data was split off: the name of the other file is the image's. Only files in
 * the given folder and in the image's may be tried, and what is found is of the same build.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obj/debugfile.h"
#include "obj/image.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/uni-debugfile-XXXXXX", image[64], other[64];

static void remove_files(void)
{
	(void)unlink(other);
	(void)rmdir(folder);
}

/* The link of the seeds leads to a file that is the image itself, under another name. */
static void write_other(const uint8_t *data, size_t size)
{
	if (image[0] == '\0') {
		require(mkdtemp(folder) != NULL && atexit(remove_files) == 0);
		(void)snprintf(image, sizeof(image), "%s/a", folder);
		(void)snprintf(other, sizeof(other), "%s/a.debug", folder);
	}
	write_file(AT_FDCWD, other, data, size);
}

static bool any_file(const struct uni_elf *e)
{
	(void)uni_elf_has_dwarf(e);
	return uni_elf_has_symtab(e) || true;
}

static void check_note(const struct uni_strbuf *note)
{
	static const char *const dirs[] = { folder, "/usr/lib/debug/" };

	for (const char *p = note->s; p != NULL && *p != '\0';) {
		bool known = false;

		for (size_t i = 0; i < 2; i++)
			known = known || strncmp(p, dirs[i], strlen(dirs[i])) == 0;
		require(known && strstr(p, "/../") == NULL);
		p = strstr(p, ", /");
		p = p != NULL ? p + 2 : NULL;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const dirs[] = { folder };
	const struct uni_image_search search = { .debug_dirs = dirs, .nr_debug_dirs = 1 };
	struct uni_objfile f = { 0 }, found = { 0 };
	struct uni_err err = { 0 };
	struct uni_strbuf note;

	write_other(data, size);
	if (uni_objfile_from_memory(image, data, size, &f, &err) != 0)
		return 0;
	uni_strbuf_init(&note);
	if (uni_objfile_find_debug(&f, &search, any_file, &found, &note)) {
		require(strcmp(found.path, other) == 0);
		uni_objfile_deinit(&found);
	}
	check_note(&note);
	uni_strbuf_deinit(&note);
	uni_objfile_deinit(&f);
	return 0;
}
