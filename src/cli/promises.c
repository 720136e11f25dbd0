/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/promises.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/cmd.h"
#include "cli/term.h"
#include "promise/mirage.h"
#include "promise/record.h"
#include "promise/text.h"
#include "session/tinput.h"
#include "trace/calls.h"

#define FILE_MAX (UINT64_C(4) << 30)

static int add(void *arg, const struct uni_promise_event *event)
{
	return uni_promise_builder_add(arg, event);
}

static int from_mirage(struct uni_promise_builder *b, const char *path, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	struct uni_mirage_stats st;
	size_t size;
	int rc = uni_read_file(path, FILE_MAX, &data, &size, err);

	if (rc != 0)
		return rc;
	if (!uni_mirage_is(data, size))
		return uni_err_set(err, UNI_EFORMAT,
			"%s is neither a session (NAME.uniscope) nor a trace of MirageOS", path);
	rc = uni_mirage_read(data, size, add, b, &st, err);
	if (rc != 0)
		return rc == -UNI_ENOMEM ? uni_err_set(err, UNI_ENOMEM, "out of memory") : rc;
	if (st.missing != 0)
		uni_note("%s: %" PRIu64 " packets are missing", path, st.missing);
	if (st.damaged != 0)
		uni_note("%s: %" PRIu64 " packets are damaged, the first at byte %zu: %" PRIu64
			 " bytes were not read",
			path, st.damaged, st.first_damage, st.damaged_bytes);
	return 0;
}

/* One event of the trace, if it is of this kind. */
static int add_call(struct uni_promise_builder *b, const struct uni_calls *c,
	const struct uni_call_event *e, double ns_per_cycle)
{
	struct uni_promise_event p = { .kind = UNI_PE_LOST,
		.time = e->ns,
		.cpu = e->cpu,
		.thread = UNI_PROMISE_NOBODY,
		.other = UNI_PROMISE_NOBODY };

	if (e->type == UNI_CALL_LOST)
		p.value = (int64_t)e->count;
	else if (e->type != UNI_CALL_EXT || !uni_promise_of_record(e->cls, uni_calls_words(c, e),
						    e->nr, e->cpu, e->ns, ns_per_cycle, &p))
		return 0;
	return uni_promise_builder_add(b, &p);
}

static int from_calls(
	struct uni_promise_builder *b, const struct uni_trace_input *in, struct uni_err *err)
{
	double ns_per_cycle = (double)uni_trace_rate(in).mult / 4294967296.0;
	struct uni_funcs *funcs = uni_funcs_create(&(struct uni_funcs_naming){ 0 });
	const struct uni_call_event *e;
	struct uni_calls *c = NULL;
	size_t nr;
	int rc = funcs == NULL ? uni_err_set(err, UNI_ENOMEM, "out of memory")
			       : uni_calls_open(in, NULL, funcs, &c, err);

	while (rc == 0) {
		int got = uni_calls_read(c, &e, &nr);

		if (got <= 0) {
			rc = got;
			break;
		}
		for (size_t i = 0; rc == 0 && i < nr; i++)
			rc = add_call(b, c, &e[i], ns_per_cycle);
	}
	if (rc == -UNI_ENOMEM)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	return rc;
}

static int from_session(struct uni_promise_builder *b, const char *path,
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
		rc = from_calls(b, uni_tinput_get(t), err);
	uni_tinput_close(t);
	uni_recording_close(rec);
	return rc;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int uni_promises_read(struct uni_promise_builder *b, const char *path,
	const struct uni_promises_args *args, struct uni_err *err)
{
	return is_folder(path) ? from_session(b, path, args, err) : from_mirage(b, path, err);
}

static int fill(struct uni_promises *p, const char *path, const struct uni_promises_args *args,
	struct uni_err *err)
{
	int rc = uni_promises_read(p->builder, path, args, err);

	if (rc != 0)
		return rc;
	p->m = uni_promise_builder_finish(p->builder);
	if (p->m->all.nr == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no events of threads or promises: `trace record --threads` "
			"records them",
			path);
	return uni_sink_open_file("-", &p->out, err);
}

int uni_promises_open(struct uni_promises *ret, const char *path,
	const struct uni_promises_args *args, struct uni_err *err)
{
	int rc;

	*ret = (struct uni_promises){ .builder = uni_promise_builder_create() };
	if (ret->builder == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	rc = fill(ret, path, args, err);
	if (rc != 0)
		uni_promise_builder_destroy(ret->builder);
	return rc;
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
