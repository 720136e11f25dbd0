/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/uktrace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/privilege.h"
#include "base/io.h"
#include "base/text.h"
#include "app/attach.h"
#include "app/term.h"
#include "tracing/guest_memory.h"
#include "format/uktrace/fetch.h"

#define FILE_MAX_BYTES (UINT64_C(1) << 30)

static int fetch_from(struct uni_guest *g, struct uni_ukt_file *ret, struct uni_err *err)
{
	struct uni_ring_source memory;
	struct uni_tmem *m;
	int rc;

	if (g->image == NULL)
		return uni_err_set(err, UNI_ENOENT,
			"the guest's image is not known: give it, with debug data, as -e");
	rc = uni_tmem_open(g->t, &m, err);
	if (rc != 0)
		return rc;
	memory = uni_tmem_source(m);
	rc = uni_ukt_fetch(g->image, g->bias, &memory, ret, err);
	uni_tmem_close(m);
	return rc;
}

int uni_uktrace_fetch(const char *target, const struct uni_uktrace_args *args,
	struct uni_ukt_file *ret, struct uni_err *err)
{
	const struct uni_attach_args attach = { .target = target,
		.image = args->image,
		.qmp = args->qmp,
		.shared = args->shared,
		.method = "pause",
		.once = true,
		.search = uni_search_of(&args->debug_dirs),
		.wait_ns = (uint64_t)(args->wait * 1e9) };
	struct uni_guest g;
	int rc;

	if (args->wait < 0 || args->wait > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--wait must be between 0 and 10000000 s");
	/* It was given up, or not, with what is shared. */
	rc = args->shared != NULL ? uni_guest_open(&g, &attach, err)
				  : uni_guest_open_only(&g, &attach, err);
	if (rc != 0)
		return rc;
	rc = fetch_from(&g, ret, err);
	uni_guest_close(&g);
	return rc;
}

static int from_image(const char *path, const struct uni_uktrace_args *args,
	struct uni_ukt_file *ret, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&args->debug_dirs);
	struct uni_image *img;
	int rc = uni_image_load_from(path, &search, &img, err);

	if (rc != 0)
		return rc;
	rc = uni_ukt_image_defs(img, ret, err);
	uni_image_destroy(img);
	return rc;
}

/* Unikraft's own fetch saves a file without definitions where its objcopy leaves them out. */
static int complete_from_image(
	const struct uni_uktrace_args *args, struct uni_ukt_file *f, struct uni_err *err)
{
	const char *path = args->image != NULL ? args->image : f->elf;
	struct uni_ukt_file image;
	struct uni_err why = { 0 };
	int rc;

	if (path == NULL || (args->image == NULL && f->defs_size != 0))
		return 0;
	rc = from_image(path, args, &image, args->image != NULL ? err : &why);
	if (rc != 0)
		return args->image != NULL ? rc : 0;
	free(f->defs);
	f->defs = image.defs;
	f->defs_size = image.defs_size;
	image.defs = NULL;
	uni_ukt_file_free(&image);
	return 0;
}

int uni_uktrace_of(const char *path, const char *data, size_t size,
	const struct uni_uktrace_args *args, struct uni_ukt_file *ret, struct uni_err *err)
{
	int rc = uni_ukt_file_read(data, size, ret, err);

	if (rc == 0) {
		rc = complete_from_image(args, ret, err);
		if (rc != 0)
			uni_ukt_file_free(ret);
	}
	if (rc != 0 && err != NULL && err->code != 0)
		return uni_err_prefix(err, "%s", path);
	return rc;
}

static int from_file(const char *path, const struct uni_uktrace_args *args,
	struct uni_ukt_file *ret, struct uni_err *err)
{
	char *data;
	size_t size;
	int rc = uni_privilege_drop(err);

	if (rc == 0)
		rc = uni_read_input(path, FILE_MAX_BYTES, &data, &size, err);

	if (rc != 0)
		return rc;
	if (size >= 4 && memcmp(data,
				 "\x7f"
				 "ELF",
				 4) == 0)
		rc = from_image(path, args, ret, err);
	else
		rc = uni_uktrace_of(path, data, size, args, ret, err);
	free(data);
	return rc;
}

int uni_uktrace_open(const char *what, const struct uni_uktrace_args *args,
	struct uni_ukt_file *ret, struct uni_err *err)
{
	struct stat st;

	if (strcmp(what, "-") == 0 || (stat(what, &st) == 0 && S_ISREG(st.st_mode)) ||
		strchr(what, '/') == what)
		return from_file(what, args, ret, err);
	return uni_uktrace_fetch(what, args, ret, err);
}

static void note_tracepoints(
	const char *what, uint64_t nr, const char *noun, const char *one, const char *many)
{
	if (nr != 0)
		uni_note("%s: %" PRIu64 " %s%s %s", what, nr, noun, uni_plural(nr),
			nr == 1 ? one : many);
}

void uni_uktrace_note(const char *what, const struct uni_ukt_trace *t)
{
	if (t->file->version > UNI_UKT_VERSION)
		uni_note("%s: its format is version %" PRIu64
			 ", newer than %d: what follows may be "
			 "wrong",
			what, t->file->version, UNI_UKT_VERSION);
	note_tracepoints(what, t->defs.damaged, "byte", "of the definitions makes no sense",
		"of the definitions make no sense");
	note_tracepoints(what, t->stats.damaged, "byte",
		"of the buffer is no record, and was passed over",
		"of the buffer are no records, and were passed over");
	note_tracepoints(what, t->stats.unknown, "record",
		"is of a tracepoint that the image does not have",
		"are of tracepoints that the image does not have");
	note_tracepoints(what, t->unordered, "record", "lay behind a later one: shown by time",
		"lay behind a later one: shown by time");
	if (t->file->cut)
		uni_note("%s: the file is cut short: the end of the buffer is missing", what);
	if (t->file->full)
		uni_note("%s: the guest's buffer is full: it has stopped tracing "
			 "(CONFIG_LIBUKDEBUG_TRACE_BUFFER_SIZE is %" PRIu64 ")",
			what, t->file->capacity);
}
