/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/promises.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/cmd.h"
#include "cli/input.h"
#include "cli/term.h"
#include "promise/mirage.h"
#include "promise/record.h"
#include "promise/text.h"
#include "session/sdir.h"
#include "session/tinput.h"
#include "trace/timeline.h"

#define FILE_MAX (UINT64_C(4) << 30)

/* Who takes the events. */
struct taker {
	uni_promise_event_fn fn;
	void *arg;
	struct uni_promise_builder *names; /* gets names that are no events; NULL: nobody */
};

static int add(void *arg, const struct uni_promise_event *event)
{
	return uni_promise_builder_add(arg, event);
}

static void say_damage(const char *path, const struct uni_mirage_stats *st)
{
	if (st->missing != 0)
		uni_note("%s: %" PRIu64 " packets are missing", path, st->missing);
	if (st->damaged != 0)
		uni_note("%s: %" PRIu64 " packets are damaged, the first at byte %zu: %" PRIu64
			 " bytes were not read",
			path, st->damaged, st->first_damage, st->damaged_bytes);
}

static int from_rings(const struct taker *to, const char *path, const struct uni_mirage_file *files,
	size_t nr, struct uni_err *err)
{
	struct uni_mirage_stats st;
	int rc = uni_mirage_merge(files, nr, to->fn, to->arg, &st, err);

	if (rc != 0)
		return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "out of memory") : rc;
	say_damage(path, &st);
	return 0;
}

static int from_ring(
	const struct taker *to, const char *path, const struct uni_input *in, struct uni_err *err)
{
	const struct uni_mirage_file file = { .data = in->data, .size = in->size };

	if (!uni_mirage_is(in->data, in->size))
		return uni_err_set(err, UNI_EFORMAT,
			"%s is neither a session (NAME.uniscope) nor a trace of MirageOS", path);
	return from_rings(to, path, &file, 1, err);
}

/* What `export -f mirage` made: cpu0, cpu1 ... */
static int from_folder(const struct taker *to, const char *path, struct uni_err *err)
{
	struct uni_mirage_file files[UNI_PROMISE_CPUS];
	size_t nr = 0, size;
	char *data;
	int rc = 0;

	for (uint32_t cpu = 0; rc == 0 && cpu < UNI_PROMISE_CPUS; cpu++) {
		_cleanup_strbuf_ struct uni_strbuf name;

		uni_strbuf_init(&name);
		uni_strbuf_addf(&name, "%s/cpu%u", path, cpu);
		if (uni_strbuf_failed(&name))
			rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
		else if (access(name.s, F_OK) != 0)
			continue;
		else
			rc = uni_read_regular(name.s, FILE_MAX, &data, &size, err);
		if (rc == 0)
			files[nr++] = (struct uni_mirage_file){ data, size, cpu };
	}
	if (rc == 0)
		rc = from_rings(to, path, files, nr, err);
	while (nr-- > 0)
		free((void *)(uintptr_t)files[nr].data);
	return rc;
}

static int from_timeline(const struct taker *to, const struct uni_timeline *tl, struct uni_err *err)
{
	const struct uni_call_event *e;
	struct uni_promise_event p;
	size_t nr;
	int rc;

	while ((rc = tl->read(tl->ctx, &e, &nr)) == 1) {
		rc = 0;
		for (size_t i = 0; rc == 0 && i < nr; i++)
			rc = uni_promise_of_call(tl, &e[i], &p) ? to->fn(to->arg, &p) : 0;
		if (rc != 0)
			break;
	}
	return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "out of memory") : rc;
}

static int from_calls(const struct taker *to, const struct uni_trace_input *in, struct uni_err *err)
{
	const struct uni_funcs_naming nameless = { 0 };
	struct uni_trace_timeline *t = NULL;
	struct uni_timeline tl;
	int rc = uni_trace_timeline_open(in, NULL, &nameless, &t, err);

	if (rc != 0)
		return rc;
	tl = uni_trace_timeline_get(t);
	rc = from_timeline(to, &tl, err);
	/* Of two with one address the later one is the guest's last. */
	for (size_t i = in->nr_threads; rc == 0 && to->names != NULL && i-- > 0;)
		rc = uni_promise_builder_name(to->names, in->thread[i].id, in->thread[i].name);
	uni_trace_timeline_close(t);
	return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "out of memory") : rc;
}

static int from_session(const struct taker *to, const char *path,
	const struct uni_promises_args *args, struct uni_err *err)
{
	struct uni_recording *rec = NULL;
	struct uni_tinput *t = NULL;
	uint32_t guest = 0;
	int rc = uni_recording_open(path, &rec, err);

	if (rc == 0 && args->guest != NULL)
		rc = uni_recording_find_guest(rec, args->guest, &guest, err);
	else if (rc == 0)
		rc = uni_tinput_find(rec, &guest, err);
	if (rc == 0)
		rc = uni_tinput_open(rec, guest, &t, err);
	if (rc == 0)
		rc = from_calls(to, uni_tinput_get(t), err);
	uni_tinput_close(t);
	uni_recording_close(rec);
	return rc;
}

bool uni_promises_is_exported(const char *folder)
{
	_cleanup_strbuf_ struct uni_strbuf name;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/" UNI_SDIR_JSON, folder);
	if (uni_strbuf_failed(&name) || access(name.s, F_OK) == 0)
		return false;
	uni_strbuf_reset(&name);
	uni_strbuf_addf(&name, "%s/metadata", folder);
	return !uni_strbuf_failed(&name) && access(name.s, F_OK) == 0;
}

static int read_in(const struct taker *to, const char *path, const struct uni_input *in,
	const struct uni_promises_args *args, struct uni_err *err)
{
	if (in->folder == NULL)
		return from_ring(to, path, in, err);
	if (uni_promises_is_exported(in->folder))
		return from_folder(to, in->folder, err);
	return from_session(to, in->folder, args, err);
}

int uni_promises_each(const char *path, const struct uni_promises_args *args,
	uni_promise_event_fn fn, void *arg, struct uni_err *err)
{
	struct uni_input in;
	int rc = uni_input_open(path, FILE_MAX, &in, err);

	if (rc != 0)
		return rc;
	rc = read_in(&(struct taker){ fn, arg, NULL }, path, &in, args, err);
	uni_input_close(&in);
	return rc;
}

int uni_promises_read(struct uni_promise_builder *b, const char *path, const struct uni_input *in,
	const struct uni_promises_args *args, struct uni_err *err)
{
	return read_in(&(struct taker){ add, b, b }, path, in, args, err);
}

static int fill(struct uni_promises *p, const char *path, const char *output,
	const struct uni_promises_args *args, struct uni_err *err)
{
	struct uni_input in;
	int rc = uni_input_open(path, FILE_MAX, &in, err);

	if (rc != 0)
		return rc;
	rc = uni_promises_read(p->builder, path, &in, args, err);
	uni_input_close(&in);
	if (rc != 0)
		return rc;
	p->m = uni_promise_builder_finish(p->builder);
	if (p->m->all.nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no events of threads or promises: `trace record --threads` "
			"records them",
			path);
	return uni_sink_open_file(output, &p->out, err);
}

int uni_promises_open_to(struct uni_promises *ret, const char *path, const char *output,
	const struct uni_promises_args *args, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_promises){ .builder = uni_promise_builder_create() };
	if (ret->builder == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = fill(ret, path, output, args, err);
	if (rc != 0)
		uni_promise_builder_destroy(ret->builder);
	return rc;
}

int uni_promises_open(struct uni_promises *ret, const char *path,
	const struct uni_promises_args *args, struct uni_err *err)
{
	return uni_promises_open_to(ret, path, "-", args, err);
}

static void say_quality(const struct uni_promise_model *m)
{
	if (m->gaps != 0)
		uni_note("%" PRIu64 " events are missing in %" PRIu64
			 " places: what came then may have woken whom you see waiting",
			m->lost, m->gaps);
	if (m->backwards != 0)
		uni_note("%" PRIu64 " events were out of order", m->backwards);
	if (m->not_kept != 0)
		uni_note("%" PRIu64 " waits of promises that had %d others were not kept",
			m->not_kept, UNI_PROMISE_WAITS);
}

int uni_promises_close(struct uni_promises *p, int rc, struct uni_err *err)
{
	if (rc == 0)
		rc = uni_sink_close(p->out, err);
	else
		uni_sink_abort(p->out);
	if (rc == 0)
		say_quality(p->m);
	if (rc == -UNI_ENOMEM && err->code == 0)
		(void)uni_err_set(err, UNI_ENOMEM, "out of memory");
	uni_promise_builder_destroy(p->builder);
	return uni_exit_of(rc);
}

int uni_promises_find(
	const struct uni_promises *p, const char *text, uint32_t *ret, struct uni_err *err)
{
	char buf[96];
	uint64_t id;

	if (uni_parse_u64(text, &id)) {
		*ret = uni_promise_find(p->builder, id);
		if (*ret != UNI_PROMISE_NONE)
			return 0;
	}
	for (uint32_t i = (uint32_t)p->m->all.nr; i-- > 0;) {
		if (strcmp(uni_promise_name(p->m, i, buf, sizeof(buf)), text) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return uni_err_set(err, UNI_ENOENT,
		"no thread or promise '%s': `uniscope trace threads` lists them", text);
}
