/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads and promises of a trace in the form in which MirageOS recorded its own. The output is
 * a folder with a trace file for each CPU, which mirage-trace-viewer opens. The folder also has a
 * complete CTF description, which the old files never had.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "format/folder.h"
#include "format/opts.h"
#include "format/mirage/mirage.h"
#include "promise/model.h"
#include "promise/record.h"

struct options {
	uint64_t packet;
};

struct cpu {
	int fd;
	struct uni_sink *out;
	struct uni_mirage_writer *w; /* NULL: no event of it yet */
	bool lost;		     /* something before that */
};

struct writer {
	const struct uni_timeline *tl;
	const char *path;
	size_t packet;
	int dir_fd;
	uint64_t events, last_ns;
	struct uni_mirage_ids *ids;
	struct cpu cpu[UNI_PROMISE_CPUS];
};

static int write_dir(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	const char *path, struct uni_err *err);

static const struct uni_export_optdef defs[] = {
	{ "packet", "BYTES", "size of a packet, 256 to 2^28 (1048576)", UNI_OPT_U64,
		offsetof(struct options, packet) },
	{ 0 },
};

const struct uni_exporter uni_exporter_mirage = {
	.name = "mirage",
	.ext = "mirage",
	.mime = "application/x-directory",
	.summary = "a folder with threads and promises as MirageOS traced them: CTF, a file a CPU",
	.needs = UNI_NEEDS_TIMELINE | UNI_TAKES_PROMISES,
	.options = defs,
	.write_folder = write_dir,
};

static int open_cpu(struct writer *w, uint32_t nr, struct uni_err *err)
{
	struct cpu *c = &w->cpu[nr];
	char name[16];
	int rc;

	(void)snprintf(name, sizeof(name), "cpu%u", nr);
	rc = uni_export_folder_file(w->dir_fd, w->path, name, &c->fd, &c->out, err);
	if (rc == 0)
		rc = uni_mirage_writer_open(c->out, w->packet, &c->w, err);
	if (rc == 0 && c->lost)
		rc = uni_mirage_writer_add(
			c->w, &(struct uni_promise_event){ .kind = UNI_PE_LOST });
	return rc;
}

/* A CPU's losses before its first event are written with that event. */
static int write_mirage_event(
	struct writer *w, const struct uni_call_event *call, struct uni_err *err)
{
	struct uni_promise_event e;
	bool keep = true;
	int rc = 0;

	if (!uni_promise_of_call(w->tl, call, &e) || e.cpu >= UNI_PROMISE_CPUS)
		return 0;
	if (w->cpu[e.cpu].w == NULL && e.kind == UNI_PE_LOST) {
		w->cpu[e.cpu].lost = true;
		return 0;
	}
	if (w->cpu[e.cpu].w == NULL)
		rc = open_cpu(w, e.cpu, err);
	w->events++;
	w->last_ns = e.time;
	if (rc == 0 && uni_mirage_ids_replace(w->ids, &e, &keep) != 0)
		rc = uni_err_nomem(err);
	return rc != 0 || !keep ? rc : uni_mirage_writer_add(w->cpu[e.cpu].w, &e);
}

static int write_events(struct writer *w, struct uni_err *err)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	while ((rc = w->tl->read(w->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr; i++) {
			rc = write_mirage_event(w, &e[i], err);
			/* The caller that closes the file reports a failed write. */
			if (rc != 0)
				return rc == -UNI_EIO ? 0 : rc;
		}
	}
	return rc == 0 ? 0 : uni_err_nomem(err);
}

/* Any CPU will do, because they are one trace. */
static int write_end(struct writer *w)
{
	const struct uni_promise_event e = uni_mirage_end(w->tl->end_ns);
	unsigned i = 0;

	while (i < UNI_PROMISE_CPUS && w->cpu[i].w == NULL)
		i++;
	if (i == UNI_PROMISE_CPUS || e.time <= w->last_ns)
		return 0;
	return uni_mirage_writer_add(w->cpu[i].w, &e) == -UNI_ENOMEM ? -UNI_ENOMEM : 0;
}

static int close_cpu(struct cpu *c, struct uni_err *err)
{
	int rc = 0;

	if (c->w != NULL)
		(void)uni_mirage_writer_close(c->w, NULL);
	if (c->out != NULL)
		rc = uni_sink_close(c->out, err);
	if (c->out != NULL)
		(void)close(c->fd);
	return rc;
}

static int put_metadata(struct writer *w, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	struct uni_sink *out;
	int rc = uni_export_folder_file(w->dir_fd, w->path, "metadata", &fd, &out, err);

	if (rc != 0)
		return rc;
	uni_mirage_metadata(out);
	return uni_sink_close(out, err);
}

static int fill_folder(void *arg, int dir_fd, struct uni_err *err)
{
	struct writer *w = arg;
	int rc;

	w->dir_fd = dir_fd;
	rc = put_metadata(w, err);
	if (rc == 0)
		rc = write_events(w, err);
	if (rc == 0 && write_end(w) != 0)
		rc = uni_err_nomem(err);
	for (unsigned i = 0; i < UNI_PROMISE_CPUS; i++) {
		int rc2 = close_cpu(&w->cpu[i], rc == 0 ? err : NULL);

		rc = rc != 0 ? rc : rc2;
	}
	if (rc == 0 && w->events == 0)
		rc = uni_err_set(err, UNI_ENOENT,
			"there are no events of waiting threads or promises: `trace record "
			"--threads` "
			"records them");
	return rc;
}

static int write_dir(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	const char *path, struct uni_err *err)
{
	_cleanup_free_ struct writer *w = calloc(1, sizeof(*w));
	struct options o = { .packet = 1u << 20 };
	int rc = uni_export_opts_parse(&uni_exporter_mirage, opts, nr_opts, &o, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_mirage, v, err);
	if (rc == 0 && v->timeline->words == NULL)
		rc = uni_err_set(
			err, UNI_ENOTSUP, "a text of ftrace has no events of threads and promises");
	if (rc == 0 && (o.packet < 256 || o.packet > 1u << 28))
		rc = uni_err_set(err, UNI_EUSAGE,
			"format mirage: packets have 256 to 2^28 bytes, not %llu",
			(unsigned long long)o.packet);
	if (rc == 0 && w == NULL)
		rc = uni_err_nomem(err);
	if (rc != 0)
		return rc;
	w->tl = v->timeline;
	w->path = path;
	w->packet = (size_t)o.packet;
	w->ids = uni_mirage_ids_create();
	rc = w->ids == NULL ? uni_err_nomem(err) : uni_export_folder(path, fill_folder, w, err);
	uni_mirage_ids_destroy(w->ids);
	return rc;
}
