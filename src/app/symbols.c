/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/symbols.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "app/term.h"
#include "obj/symtext.h"

#define TEXT_MAX ((size_t)512 << 20)

enum uni_symbols_kind uni_symbols_kind_of(const char *path)
{
	/* Not to wait for the other end, should it be a pipe. */
	_cleanup_close_ int fd =
		uni_door_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	char head[8] = { 0 };

	if (fd < 0 || read(fd, head, sizeof(head)) <= 0 ||
		memcmp(head,
			"\x7f"
			"ELF",
			4) == 0)
		return UNI_SYMBOLS_ELF;
	return memcmp(head, "uniusym", 8) == 0 ? UNI_SYMBOLS_USYM : UNI_SYMBOLS_TEXT;
}

static int load_text(const char *path, struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = uni_read_regular(path, TEXT_MAX, &data, &size, err);

	return rc == 0 ? uni_symtab_of_text(path, data, size, ret, err) : rc;
}

void uni_symbols_add_debug(const struct uni_image *img, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_symtab *s)
{
	struct uni_err err = { 0 };
	struct uni_debug *debug = NULL;

	if (naming == NULL || !uni_naming_wants_places(naming))
		return;
	if (uni_debug_of_image(img, search, &debug, &err) == 0)
		uni_symtab_set_debug(s, debug);
	else if (naming->lines)
		uni_note("%s", err.msg);
}

static int load_elf(const char *path, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_symtab **ret, struct uni_err *err)
{
	struct uni_image *img = NULL;
	int rc = uni_image_load_from(path, search, &img, err);

	if (rc == 0)
		rc = uni_symtab_of_image(img, ret, err);
	if (rc == 0)
		uni_symbols_add_debug(img, search, naming, *ret);
	uni_image_destroy(img);
	return rc;
}

int uni_symbols_load(const char *path, const struct uni_image_search *search,
	const struct uni_naming *naming, struct uni_symtab **ret, struct uni_err *err)
{
	switch (uni_symbols_kind_of(path)) {
	case UNI_SYMBOLS_USYM:
		return uni_symtab_load(path, ret, err);
	case UNI_SYMBOLS_TEXT:
		return load_text(path, ret, err);
	default:
		return load_elf(path, search, naming, ret, err);
	}
}
