/* SPDX-License-Identifier: BSD-2-Clause */
/* The plugin's file, and its options on QEMU's command line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/exact.h"
#include "app/input.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "app/term.h"
#include "config.h"

#define QEMU_MAX ((size_t)256 << 20) /* bytes of the program */

static bool find_plugin_beside(const char *where, char *ret, size_t cap)
{
	char exe[2048];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;
	int len;

	if (n <= 0)
		return false;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	len = snprintf(ret, cap, "%s/%s" UNI_EXACT_PLUGIN, exe, where);
	return len > 0 && (size_t)len < cap && access(ret, R_OK) == 0;
}

int uni_exact_plugin(char *ret, size_t cap, struct uni_err *err)
{
	/* A copy, then the tree in which both were built, then the installed files. */
	if (find_plugin_beside("", ret, cap) || find_plugin_beside("../../plugin/", ret, cap))
		return 0;
	(void)snprintf(ret, cap, UNI_PLUGIN_DIR "/" UNI_EXACT_PLUGIN);
	if (access(ret, R_OK) == 0)
		return 0;
	return uni_err_set(err, UNI_ENOENT,
		"the plugin for QEMU is not installed (%s): install uniscope as a whole", ret);
}

/* A QEMU without plugins does not export their interface. */
bool uni_exact_can_load(const char *qemu)
{
	static const char name[] = "qemu_plugin_register_vcpu_tb_trans_cb";
	_cleanup_free_ char *data = NULL;
	struct uni_err err = { 0 };
	size_t size;

	return uni_read_regular(qemu, QEMU_MAX, &data, &size, &err) == 0 &&
	       memmem(data, size, name, sizeof(name)) != NULL;
}

static int find_place(
	const struct uni_image *image, const char *name, uint64_t *ret, struct uni_err *err)
{
	uint64_t size;

	if (name == NULL || uni_image_find(image, name, ret, &size) == 0)
		return 0;
	return uni_err_set(err, UNI_ENOENT,
		"%s has no function %s: names are those that `nm` prints", uni_image_path(image),
		name);
}

int uni_exact_places(const struct uni_exact_args *args, const struct uni_image *image,
	struct uni_exact_places *ret, struct uni_err *err)
{
	int rc = find_place(image, args->begin_at, &ret->begin, err);

	return rc == 0 ? find_place(image, args->end_at, &ret->end, err) : rc;
}

static const char *const mode_names[] = {
	[UNI_EXACT_COUNTS] = "counts",
	[UNI_EXACT_TREE] = "tree",
	[UNI_EXACT_TRACE] = "calls",
};

int uni_exact_mode_of(const char *name, enum uni_exact_mode *ret)
{
	for (unsigned i = UNI_EXACT_COUNTS; i < uni_array_len(mode_names); i++) {
		if (strcmp(name, mode_names[i]) == 0) {
			*ret = (enum uni_exact_mode)i;
			return 0;
		}
	}
	return -UNI_EUSAGE;
}

/* Functions of the trace, and its other options. */
static void add_calls(const struct uni_exact_args *args, struct uni_strbuf *b, const char *counts)
{
	uni_strbuf_adds(b, ",calls=");
	uni_qemu_add_value(b, counts);
	uni_strbuf_adds(b, UNI_EXACT_CALLS_FILE);
	if (args->repeatable)
		uni_strbuf_adds(b, ",times=guest");
	if (args->depth != 0)
		uni_strbuf_addf(b, ",depth=%" PRIu64, args->depth);
}

char *uni_exact_option(const struct uni_exact_args *args, const struct uni_exact_places *at,
	const char *counts, const char *table, struct uni_err *err)
{
	char path[4096];
	struct uni_strbuf b;

	if (uni_exact_plugin(path, sizeof(path), err) != 0)
		return NULL;
	uni_strbuf_init(&b);
	uni_qemu_add_value(&b, path);
	uni_strbuf_adds(&b, ",out=");
	uni_qemu_add_value(&b, counts);
	uni_strbuf_adds(&b, ",functions=");
	uni_qemu_add_value(&b, table);
	uni_strbuf_addf(&b, ",mode=%s", mode_names[args->mode]);
	if (args->mode == UNI_EXACT_TRACE)
		add_calls(args, &b, counts);
	if (args->begin_at != NULL)
		uni_strbuf_addf(&b, ",begin=0x%" PRIx64, at->begin);
	if (args->end_at != NULL)
		uni_strbuf_addf(&b, ",end=0x%" PRIx64, at->end);
	if (uni_strbuf_failed(&b))
		(void)uni_err_nomem(err);
	return uni_strbuf_detach(&b);
}

/* The guest's clocks follow its instructions, and chance begins at the same number. */
static const char *const repeatable[] = { "-seed", "1", "-rtc", "base=2000-01-01T00:00:00,clock=vm",
	"-icount" };

/* Options of QEMU by which something comes in that no run repeats. */
static const char *const inputs[] = { "-netdev", "-nic", "-net", "-drive", "-blockdev", "-hda",
	"-cdrom", "-chardev", "-virtfs", "-fsdev" };

void uni_exact_note_inputs(const struct uni_qemu_args *args)
{
	if (args->disk != NULL && !args->disk_replays)
		uni_note("the times at which --disk answers are not fixed: the counts may differ. "
			 "--inputs FILE fixes them");
	for (char **p = args->extra; p != NULL && *p != NULL; p++) {
		for (size_t i = 0; i < uni_array_len(inputs); i++) {
			if (strcmp(*p, inputs[i]) == 0)
				uni_note("input through %s is not fixed: if it differs, the "
					 "counts differ",
					*p);
		}
	}
}

/* QEMU writes the number of its format into the first word when the recording has ended. */
static int check_recorded(const char *path, struct uni_err *err)
{
	struct uni_input file;
	bool ended;
	int rc = uni_input_open_part(path, 4, &file, err);

	if (rc != 0)
		return rc;
	ended = file.size >= 4 && memcmp(file.data, "\0\0\0", 4) != 0;
	uni_input_close(&file);
	return ended ? 0
		     : uni_err_set(err, UNI_EFORMAT,
			       "%s: the run that recorded it did not end as it should: remove it, "
			       "and run again",
			       path);
}

static int make_recorded(const struct uni_exact_args *args, struct uni_err *err)
{
	struct uni_sink *out;
	int rc;

	if (args->end_at != NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"%s is not there: first record it, without --end-at, until the guest ends",
			args->inputs);
	rc = uni_sink_open_file(args->inputs, &out, err);
	if (rc == 0)
		rc = uni_sink_close(out, err);
	if (rc == 0 && !args->rec->quiet)
		uni_note("this run records %s: the next ones with it repeat each other",
			args->inputs);
	return rc;
}

char *uni_exact_icount(const struct uni_exact_args *args, struct uni_err *err)
{
	struct uni_strbuf b;
	struct stat st;
	bool there = args->inputs != NULL && stat(args->inputs, &st) == 0;
	int rc = 0;

	if (args->inputs != NULL)
		rc = there ? check_recorded(args->inputs, err) : make_recorded(args, err);
	if (rc != 0)
		return NULL;
	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, "shift=0,");
	if (args->inputs != NULL) {
		uni_strbuf_addf(&b, "rr=%s,rrfile=", there ? "replay" : "record");
		uni_qemu_add_value(&b, args->inputs);
	} else {
		uni_strbuf_adds(&b, "sleep=off");
	}
	if (uni_strbuf_failed(&b))
		(void)uni_err_nomem(err);
	return uni_strbuf_detach(&b);
}

char **uni_exact_repeatable(char **extra, char *icount)
{
	size_t nr = 0;
	char **all;

	while (extra != NULL && extra[nr] != NULL)
		nr++;
	all = calloc(nr + uni_array_len(repeatable) + 2, sizeof(*all));
	for (size_t i = 0; all != NULL && i < nr; i++)
		all[i] = extra[i];
	for (size_t i = 0; all != NULL && i < uni_array_len(repeatable); i++)
		all[nr + i] = (char *)(uintptr_t)repeatable[i];
	if (all != NULL)
		all[nr + uni_array_len(repeatable)] = icount;
	return all;
}
