/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions that QEMU's plugin is given: start and end of each, none over another. And
 * the code, by which the plugin finds it where it runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/text.h"
#include "obj/image.h"
#include "recording/exact.h"

/* Functions, bytes for each, and code. */
#define TABLE_MAX ((size_t)UNI_EXACT_FUNCTIONS * 17 + UNI_EXACT_CODE + 8192)

struct row {
	struct uni_exact_function f;
	uint8_t hidden; /* 1: no glob matches its name */
};

struct table {
	const struct uni_exact_image *image;
	size_t nr_images;
	const struct uni_exact_choice *choice;
	struct row *row;
	size_t nr, nr_shown;
	uint64_t names; /* of the first image's functions */
};

static bool is_hidden(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->choice->nr_globs; i++) {
		if (uni_glob_match(t->choice->glob[i], name))
			return false;
	}
	return t->choice->nr_globs != 0;
}

static uint64_t hash_of(const struct uni_image *img, const struct uni_symbol *sym)
{
	const char *name = uni_image_sym_name(img, sym);

	return uni_hash_bytes(name, strlen(name), sym->addr);
}

/* The innermost symbol wins, as in every look-up of an address: a start within another ends that.
 */
static void add_functions(struct table *t, const struct uni_exact_image *of)
{
	const struct uni_image *img = of->image;
	size_t first = t->nr;

	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *sym = uni_image_symbol(img, i);
		struct uni_exact_function f = { sym->addr + of->bias, 0 };
		struct row *last = t->nr != first ? &t->row[t->nr - 1] : NULL;

		if (__builtin_add_overflow(f.start, sym->size, &f.end) || sym->size == 0)
			continue;
		if (uni_image_lookup(img, sym->addr) != sym) /* a label within a function */
			continue;
		if (last != NULL && last->f.end > f.start)
			last->f.end = f.start;
		if (of == t->image)
			t->names = uni_hash_pair(t->names, hash_of(img, sym));
		t->row[t->nr] = (struct row){ f, is_hidden(t, uni_image_sym_name(img, sym)) };
		t->nr_shown += !t->row[t->nr++].hidden;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->f.start < y->f.start ? -1 : x->f.start > y->f.start;
}

static int collect_rows(struct table *t, struct uni_err *err)
{
	const char *path = uni_image_path(t->image[0].image);
	size_t cap = 1;

	for (size_t i = 0; i < t->nr_images; i++)
		cap += uni_image_nr_symbols(t->image[i].image);
	t->row = calloc(cap, sizeof(*t->row));
	if (t->row == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < t->nr_images; i++) {
		add_functions(t, &t->image[i]);
		if (t->nr == 0)
			return uni_err_set(err, UNI_ENOENT,
				"%s names no functions: give the ELF with the symbols by -e", path);
	}
	if (t->nr > UNI_EXACT_FUNCTIONS)
		return uni_err_set(err, UNI_ERANGE, "%s has more than %u functions", path,
			UNI_EXACT_FUNCTIONS);
	if (t->choice->nr_globs != 0 && t->nr_shown == 0)
		return uni_err_set(err, UNI_ENOENT, "%s has no function whose name matches %s",
			path, t->choice->glob[0]);
	qsort(t->row, t->nr, sizeof(*t->row), by_start);
	return 0;
}

static const struct uni_segment *next_code(const struct uni_image *img, size_t *at)
{
	while (*at < uni_image_nr_segments(img)) {
		const struct uni_segment *s = uni_image_segment(img, (*at)++);

		if (s->exec && s->file_size != 0)
			return s;
	}
	return NULL;
}

/* Each image's code, all of it or none. By image, how many pieces. */
static uint64_t count_code(const struct table *t, uint64_t *nr_of)
{
	uint64_t all = 0, left = UNI_EXACT_CODE;

	for (size_t i = 0; i < t->nr_images; i++) {
		const struct uni_segment *s;
		uint64_t size = 0;

		nr_of[i] = 0;
		for (size_t at = 0; (s = next_code(t->image[i].image, &at)) != NULL; nr_of[i]++)
			size += s->file_size;
		if (size > left || nr_of[i] > UNI_EXACT_PIECES - all)
			nr_of[i] = size = 0;
		all += nr_of[i];
		left -= size;
	}
	return all;
}

static void put_code(const struct table *t, const uint64_t *nr_of, struct uni_sink *out)
{
	const struct uni_segment *s;

	for (unsigned bytes = 0; bytes < 2; bytes++) {
		for (size_t i = 0; i < t->nr_images; i++) {
			size_t at = 0;

			while (nr_of[i] != 0 && (s = next_code(t->image[i].image, &at)) != NULL) {
				const uint64_t range[2] = { s->vaddr + t->image[i].bias,
					s->file_size };

				if (bytes != 0)
					uni_sink_write(out, s->bytes, s->file_size);
				else
					uni_sink_write(out, range, sizeof(range));
			}
		}
	}
}

static int write_table(const struct table *t, const char *path, struct uni_err *err)
{
	_cleanup_free_ uint64_t *nr_of = calloc(t->nr_images, sizeof(*nr_of));
	struct uni_exact_table head = { .magic = UNI_EXACT_TABLE,
		.nr = t->nr,
		.nr_hidden = t->choice->nr_globs != 0 ? t->nr : 0,
		.depth = t->choice->depth,
		.names = t->names };
	struct uni_sink *out;
	int rc;

	if (nr_of == NULL)
		return uni_err_nomem(err);
	head.nr_pieces = count_code(t, nr_of);
	head.nr_own = nr_of[0];
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, &head, sizeof(head));
	for (size_t i = 0; i < t->nr; i++)
		uni_sink_write(out, &t->row[i].f, sizeof(t->row[i].f));
	for (size_t i = 0; i < head.nr_hidden; i++)
		uni_sink_write(out, &t->row[i].hidden, 1);
	put_code(t, nr_of, out);
	return uni_sink_close(out, err);
}

int uni_exact_write_table(const struct uni_exact_image *image, size_t nr,
	const struct uni_exact_choice *choice, const char *path, struct uni_err *err)
{
	struct table t = { .image = image, .nr_images = nr, .choice = choice };
	int rc = collect_rows(&t, err);

	if (rc == 0)
		rc = write_table(&t, path, err);
	free(t.row);
	return rc;
}

/* The pieces in the file. NULL: it is none of ours. */
static const char *find_pieces(const char *data, size_t size, struct uni_exact_table *ret)
{
	uint64_t at = sizeof(*ret);

	if (size < sizeof(*ret))
		return NULL;
	memcpy(ret, data, sizeof(*ret));
	if (ret->magic != UNI_EXACT_TABLE || ret->nr > UNI_EXACT_FUNCTIONS ||
		ret->nr_hidden > ret->nr || ret->nr_pieces > UNI_EXACT_PIECES ||
		ret->nr_own > ret->nr_pieces)
		return NULL;
	at += ret->nr * sizeof(struct uni_exact_function) + ret->nr_hidden;
	return uni_range_contains(0, size, at, ret->nr_pieces * 16) ? data + at : NULL;
}

static bool same_code(const struct uni_exact_table *head, const char *piece, const char *end,
	const struct uni_image *img)
{
	const char *bytes = piece + head->nr_pieces * 16;
	const struct uni_segment *s;
	uint64_t i = 0;

	for (size_t at = 0; (s = next_code(img, &at)) != NULL; i++) {
		uint64_t range[2];

		if (i == head->nr_own)
			return false;
		memcpy(range, piece + i * 16, sizeof(range));
		if (range[0] != s->vaddr || range[1] != s->file_size ||
			(size_t)(end - bytes) < s->file_size ||
			memcmp(bytes, s->bytes, s->file_size) != 0)
			return false;
		bytes += s->file_size;
	}
	return i == 0 || i == head->nr_own; /* 0: symbols alone */
}

/* Does an image with symbols name the functions as the one did that the table was written for? */
static bool same_names(const struct uni_exact_table *head, struct uni_image *img)
{
	const struct uni_exact_image one = { .image = img };
	const struct uni_exact_choice all = { 0 };
	struct table t = { .image = &one, .nr_images = 1, .choice = &all };
	struct uni_err none = { 0 };
	bool same = collect_rows(&t, &none) != 0 || t.names == head->names;

	free(t.row);
	return same;
}

int uni_exact_check_table(
	const char *path, struct uni_image *image, char *only_ret, size_t cap, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	struct uni_exact_table head;
	const char *piece = NULL;
	struct uni_err none = { 0 };
	size_t size = 0;

	only_ret[0] = '\0';
	if (uni_read_regular(path, TABLE_MAX, &data, &size, &none) == 0)
		piece = find_pieces(data, size, &head);
	if (piece == NULL)
		return 0;
	if ((head.nr_own != 0 && !same_code(&head, piece, data + size, image)) ||
		!same_names(&head, image))
		return uni_err_set(err, UNI_EMISMATCH,
			"%s has other code or functions than the image that %s was written for: "
			"give that one",
			uni_image_path(image), path);
	if (head.depth != 0 || head.nr_hidden != 0)
		(void)snprintf(only_ret, cap, "%s%s", head.nr_hidden != 0 ? "--filter" : "",
			head.nr_hidden != 0 && head.depth != 0 ? " " : "");
	if (head.depth != 0)
		(void)snprintf(only_ret + strlen(only_ret), cap - strlen(only_ret),
			"--depth %" PRIu64, head.depth);
	return 0;
}
