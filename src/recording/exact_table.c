/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions that QEMU's plugin is given: start and end of each, none over another. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "obj/image.h"
#include "recording/exact.h"

/* The innermost symbol wins, as in every look-up of an address: a start within another ends that.
 */
static size_t fill(const struct uni_image *img, struct uni_exact_function *out, size_t nr)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct uni_symbol *sym = uni_image_symbol(img, i);
		struct uni_exact_function f = { sym->addr, 0 };

		if (__builtin_add_overflow(sym->addr, sym->size, &f.end) || sym->size == 0)
			continue;
		if (uni_image_lookup(img, sym->addr) != sym) /* a label within a function */
			continue;
		if (n != 0 && out[n - 1].end > f.start)
			out[n - 1].end = f.start;
		out[n++] = f;
	}
	return n;
}

int uni_exact_write_table(const struct uni_image *img, const char *path, struct uni_err *err)
{
	size_t nr = uni_image_nr_symbols(img), n;
	_cleanup_free_ struct uni_exact_function *f = calloc(nr + 1, sizeof(*f));
	_cleanup_close_ int fd = -1;
	uint64_t head[2] = { UNI_EXACT_TABLE, 0 };
	int r;

	if (f == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	n = fill(img, f, nr);
	if (n == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s names no functions: give the ELF with the symbols by -e",
			uni_image_path(img));
	if (n > UNI_EXACT_FUNCTIONS)
		return uni_err_set(err, UNI_ERANGE, "%s has more than %u functions",
			uni_image_path(img), UNI_EXACT_FUNCTIONS);
	head[1] = n;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : uni_write_full(fd, head, sizeof(head));
	if (r == 0)
		r = uni_write_full(fd, f, n * sizeof(*f));
	if (r != 0)
		return uni_err_set(err, UNI_EIO, "cannot write %s: %s", path, strerror(-r));
	return 0;
}
