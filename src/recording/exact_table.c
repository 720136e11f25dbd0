/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions that QEMU's plugin is given: start and end of each, none over another. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sink.h"
#include "base/text.h"
#include "obj/image.h"
#include "recording/exact.h"

/* The innermost symbol wins, as in every look-up of an address: a start within another ends that.
 */
static size_t fill_functions(const struct uni_image *img, struct uni_exact_function *out, size_t nr)
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

/* By function: 1 if no glob matches its name. *nr_ret: how many match. */
static void hide_functions(const struct uni_image *img, const struct uni_exact_function *f,
	size_t n, const char *const *glob, size_t nr_globs, uint8_t *hidden, size_t *nr_ret)
{
	*nr_ret = 0;
	for (size_t i = 0; i < n; i++) {
		const struct uni_symbol *sym = uni_image_lookup(img, f[i].start);

		hidden[i] = 1;
		for (size_t k = 0; sym != NULL && hidden[i] != 0 && k < nr_globs; k++)
			hidden[i] = !uni_glob_match(glob[k], uni_image_sym_name(img, sym));
		*nr_ret += hidden[i] == 0;
	}
}

int uni_exact_write_table(const struct uni_image *img, const char *const *glob, size_t nr_globs,
	const char *path, struct uni_err *err)
{
	size_t nr = uni_image_nr_symbols(img), n, shown;
	_cleanup_free_ struct uni_exact_function *f = calloc(nr + 1, sizeof(*f));
	_cleanup_free_ uint8_t *hidden = calloc(nr + 1, 1);
	uint64_t head[2] = { UNI_EXACT_TABLE, 0 };
	struct uni_sink *out;
	int rc;

	if (f == NULL || hidden == NULL)
		return uni_err_nomem(err);
	n = fill_functions(img, f, nr);
	if (n == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s names no functions: give the ELF with the symbols by -e",
			uni_image_path(img));
	if (n > UNI_EXACT_FUNCTIONS)
		return uni_err_set(err, UNI_ERANGE, "%s has more than %u functions",
			uni_image_path(img), UNI_EXACT_FUNCTIONS);
	hide_functions(img, f, n, glob, nr_globs, hidden, &shown);
	if (nr_globs != 0 && shown == 0)
		return uni_err_set(err, UNI_ENOENT, "%s has no function whose name matches %s",
			uni_image_path(img), glob[0]);
	head[1] = n;
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, head, sizeof(head));
	uni_sink_write(out, f, n * sizeof(*f));
	if (nr_globs != 0)
		uni_sink_write(out, hidden, n);
	return uni_sink_close(out, err);
}
