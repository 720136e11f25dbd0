/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A data directory as `uftrace record` leaves it (format 4), for uftrace's report, replay, graph,
 * tui and others. The guest is a program with functions at every 16 bytes, and its threads are
 * tasks. Calls deeper than 1,023 are left out, because uftrace has no room for them.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "format/folder.h"
#include "format/opts.h"
#include "format/uftrace/data_write.h"

#define BASE	  0x400000u
#define STEP	  16u
#define FIRST	  0x1000u
#define SID	  "756e6973636f7065"
#define HEADER	  40
#define VERSION	  4
#define FEATURES  0x62u /* tasks and sessions, addresses relative to the image, depth */
#define INFOS	  0x89u /* exename, cmdline, taskinfo */
#define MAX_STACK 1024

struct writer {
	const struct uni_timeline *tl;
	const char *path; /* for messages */
	struct uni_uftrace_data data;
	uint32_t nr_funcs;
	uint64_t others; /* events of no call */
};

static int write_dir(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	const char *path, struct uni_err *err);

const struct uni_exporter uni_exporter_uftrace = {
	.name = "uftrace",
	.ext = "uftrace",
	.mime = "application/x-directory",
	.summary = "a folder that uftrace replay, report, graph and tui open",
	.needs = UNI_NEEDS_TIMELINE,
	.write_folder = write_dir,
};

static uint64_t function_address(struct writer *w, uint32_t func)
{
	w->nr_funcs = uni_max(w->nr_funcs, func + 1);
	return BASE + FIRST + (uint64_t)func * STEP;
}

static int put_uftrace_record(
	struct writer *w, const struct uni_call_event *e, enum uni_uftrace_type type)
{
	return uni_uftrace_put(
		&w->data, e->thread, type, e->ns, e->depth, function_address(w, e->func));
}

static int write_call(struct writer *w, const struct uni_call_event *e)
{
	struct uni_uftrace_task *t = uni_uftrace_task(&w->data, e->thread);

	if (t == NULL)
		return -UNI_ENOMEM;
	if (e->depth > UNI_UFTRACE_DEPTH_MAX)
		return 0;
	if (e->type == UNI_CALL_ENTER) {
		t->open++;
		return put_uftrace_record(w, e, UNI_UFTRACE_ENTRY);
	}
	if (t->open == 0 || ((e->flags & UNI_CALL_BEGAN) != 0 && t->open <= e->depth))
		return 0; /* its beginning is not there */
	t->open--;
	return put_uftrace_record(w, e, UNI_UFTRACE_EXIT);
}

static int write_event(struct writer *w, const struct uni_call_event *e)
{
	int rc;

	switch (e->type) {
	case UNI_CALL_ENTER:
	case UNI_CALL_LEAVE:
		return write_call(w, e);
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		if (e->depth > UNI_UFTRACE_DEPTH_MAX)
			return 0;
		rc = put_uftrace_record(w, e, UNI_UFTRACE_ENTRY);
		return rc != 0 ? rc : put_uftrace_record(w, e, UNI_UFTRACE_EXIT);
	case UNI_CALL_LOST:
		return uni_uftrace_put(&w->data, e->thread, UNI_UFTRACE_LOST, e->ns, 0,
			uni_min(e->count, 0xffffffu));
	default:
		w->others++;
		return 0;
	}
}

static int write_records(struct writer *w)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	while ((rc = w->tl->read(w->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr; i++) {
			rc = write_event(w, &e[i]);
			if (rc != 0)
				return rc;
		}
	}
	return rc != 0 ? rc : uni_uftrace_flush(&w->data);
}

/* A file of the folder, made of a buffer that is freed. */
static int put_file(struct writer *w, const char *name, struct uni_strbuf *b, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	struct uni_sink *out;
	int rc = uni_strbuf_failed(b) ? uni_err_nomem(err) : 0;

	if (rc == 0)
		rc = uni_export_folder_file(w->data.dir_fd, w->path, name, &fd, &out, err);
	if (rc == 0) {
		uni_sink_write(out, b->s, b->len);
		rc = uni_sink_close(out, err);
	}
	uni_strbuf_deinit(b);
	return rc;
}

static int put_symbols(struct writer *w, struct uni_err *err)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, "# path name: /guest\n");
	for (uint32_t i = 0; i < w->nr_funcs; i++) {
		const char *name = w->tl->func(w->tl->ctx, i);

		uni_strbuf_addf(&b, "%016llx T %s\n",
			(unsigned long long)FIRST + (uint64_t)i * STEP,
			name[0] != '\0' ? name : "[unknown]");
	}
	uni_strbuf_addf(&b, "%016llx ? __sym_end\n",
		(unsigned long long)FIRST + (uint64_t)w->nr_funcs * STEP);
	return put_file(w, "guest.sym", &b, err);
}

static int put_map(struct writer *w, struct uni_err *err)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_addf(&b,
		"%x-%llx r-xp 00000000 00:00 0                          /guest\n"
		"7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0        [stack]\n",
		BASE, (BASE + FIRST + (uint64_t)w->nr_funcs * STEP + 0xfff) & ~0xfffull);
	return put_file(w, "sid-" SID ".map", &b, err);
}

static uint64_t begin_ns(const struct writer *w)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 0; i < w->data.tasks.nr; i++) {
		if (w->data.tasks.v[i].used)
			ns = uni_min(ns, w->data.tasks.v[i].first_ns);
	}
	return ns == UINT64_MAX ? 0 : ns;
}

static int put_tasks(struct writer *w, struct uni_err *err)
{
	uint64_t ns = begin_ns(w);
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_addf(&b, "SESS timestamp=%llu.%09llu pid=%u sid=" SID " exename=\"/guest\"\n",
		ns / UNI_NSEC_PER_SEC, ns % UNI_NSEC_PER_SEC, UNI_UFTRACE_FIRST_TID);
	for (size_t i = 0; i < w->data.tasks.nr; i++) {
		const struct uni_uftrace_task *t = &w->data.tasks.v[i];

		if (t->used)
			uni_strbuf_addf(&b, "TASK timestamp=%llu.%09llu tid=%zu pid=%u\n",
				t->first_ns / UNI_NSEC_PER_SEC, t->first_ns % UNI_NSEC_PER_SEC,
				i + UNI_UFTRACE_FIRST_TID, UNI_UFTRACE_FIRST_TID);
	}
	return put_file(w, "task.txt", &b, err);
}

static void add_header(struct uni_strbuf *b)
{
	uint8_t h[HEADER] = { 'F', 't', 'r', 'a', 'c', 'e', '!', 0, VERSION, 0, 0, 0, HEADER, 0,
		1 /* little-endian */, 2 /* 64 bits */, FEATURES };

	h[24] = INFOS;
	h[32] = MAX_STACK & 0xff;
	h[33] = MAX_STACK >> 8;
	uni_strbuf_add(b, h, sizeof(h));
}

static int put_info(struct writer *w, struct uni_err *err)
{
	struct uni_strbuf b;
	size_t nr = 0;

	uni_strbuf_init(&b);
	for (size_t i = 0; i < w->data.tasks.nr; i++)
		nr += w->data.tasks.v[i].used;
	add_header(&b);
	uni_strbuf_addf(&b,
		"exename:/guest\ncmdline:uniscope export -f uftrace\n"
		"taskinfo:lines=2\ntaskinfo:nr_tid=%zu\ntaskinfo:tids=",
		nr);
	for (size_t i = 0; i < w->data.tasks.nr; i++) {
		if (w->data.tasks.v[i].used)
			uni_strbuf_addf(&b, "%s%zu", b.s[b.len - 1] == '=' ? "" : ",",
				i + UNI_UFTRACE_FIRST_TID);
	}
	uni_strbuf_adds(&b, "\n");
	return put_file(w, "info", &b, err);
}

static int fill_uftrace(struct writer *w, struct uni_err *err)
{
	int rc = write_records(w);

	if (rc == -UNI_ENOMEM)
		return uni_err_nomem(err);
	if (rc != 0)
		return uni_err_set(
			err, UNI_EIO, "cannot write in %s: %s", w->path, strerror(w->data.error));
	if (w->nr_funcs == 0 && w->others != 0)
		return uni_err_set(err, UNI_ENOENT,
			"the trace has no calls of functions, only what threads and promises did");
	rc = put_symbols(w, err);
	if (rc == 0)
		rc = put_map(w, err);
	if (rc == 0)
		rc = put_tasks(w, err);
	return rc == 0 ? put_info(w, err) : rc;
}

static int fill_dir(void *arg, int dir_fd, struct uni_err *err)
{
	struct writer *w = arg;

	w->data.dir_fd = dir_fd;
	return fill_uftrace(w, err);
}

static int write_dir(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	const char *path, struct uni_err *err)
{
	struct writer w = { .tl = v->timeline, .path = path };
	int rc = uni_export_opts_parse(&uni_exporter_uftrace, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_uftrace, v, err);
	if (rc == 0)
		rc = uni_export_folder(path, fill_dir, &w, err);
	uni_uftrace_deinit(&w.data);
	return rc;
}
