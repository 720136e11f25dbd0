/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace of MirageOS' threads and promises: the time that each ran, below those that created it.
 * Promises have their labels as names, else their kinds: by number, each promise would be a name of
 * its own.
 */
#include "format/mirage/mirage.h"

#include <string.h>

#include "base/checked.h"
#include "format/stack.h"
#include "promise/model.h"

#define CREATORS_MAX 64 /* of one promise: chains of binds get long, and say little further up */

static int sniff_mirage(const char *data, size_t size)
{
	return uni_mirage_is(data, size) ? 100 : 0;
}

static int add_event(void *arg, const struct uni_promise_event *event)
{
	return uni_promise_builder_add(arg, event);
}

static void push_promise(struct uni_stack *s, const struct uni_promise_model *m, uint32_t promise)
{
	const struct uni_promise *p = &m->all.v[promise];
	const char *name;

	if (p->label != 0)
		name = uni_strtab_get(m->text, p->label);
	else
		name = p->type == UNI_PROMISE_TYPE_UNKNOWN ? "thread"
							   : uni_promise_type_name(p->type);
	uni_stack_push(s, uni_stack_name(s, name, strlen(name)));
}

static int add_runs(
	struct uni_stack *s, const struct uni_promise_model *m, struct uni_import_stats *st)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->all.nr; i++) {
		uint32_t at = (uint32_t)i;

		if (m->all.v[i].run_ns == 0)
			continue;
		for (unsigned k = 0; k < CREATORS_MAX && at < m->all.nr; k++) {
			push_promise(s, m, at);
			at = m->all.v[at].creator;
		}
		uni_stack_reverse(s);
		rc = uni_stack_flush(s, false, (double)m->all.v[i].run_ns, 0.0, st);
	}
	for (size_t i = 0; rc == 0 && i < m->pauses.nr; i++) {
		const struct uni_promise_pause *p = &m->pauses.v[i];

		if (p->end <= p->begin)
			continue;
		uni_stack_push(
			s, uni_stack_synthetic(s, p->kind == UNI_PE_GC ? "[gc]" : "[sleep]"));
		rc = uni_stack_flush(s, false, (double)(p->end - p->begin), 0.0, st);
	}
	return rc;
}

/* Makes a profile from a file or a folder that was read. */
static int make_profile(struct uni_promise_builder *b, const struct uni_mirage_stats *read,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_import_stats st = { .damaged = read->damaged };
	struct uni_stack s;
	int rc = uni_stack_init(&s, p) ? 0 : -UNI_ENOMEM;

	if (rc == 0)
		rc = add_runs(&s, uni_promise_builder_finish(b), &st);
	uni_stack_deinit(&s);
	if (rc == -UNI_ENOMEM)
		return uni_err_nomem(err);
	if (rc == 0 && st.stacks == 0)
		rc = uni_err_set(err, UNI_EFORMAT, "a trace in which no thread ever ran");
	if (rc != 0)
		return rc;
	uni_profile_set_unit(p, "ns");
	*stats_ret = st;
	return 0;
}

static int read_mirage(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_promise_builder *b = uni_promise_builder_create();
	struct uni_mirage_stats read = { 0 };
	int rc = b != NULL ? uni_mirage_read(data, size, add_event, b, &read, err) : -UNI_ENOMEM;

	if (rc == 0)
		rc = make_profile(b, &read, p, stats_ret, err);
	uni_promise_builder_destroy(b);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}

static int read_folder(const char *path, const struct uni_import_opts *opts, struct uni_profile *p,
	struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_promise_builder *b = uni_promise_builder_create();
	struct uni_mirage_stats read = { 0 };
	int rc = b != NULL ? uni_mirage_read_folder(path, add_event, b, &read, err) : -UNI_ENOMEM;

	if (rc == 0)
		rc = make_profile(b, &read, p, stats_ret, err);
	uni_promise_builder_destroy(b);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}

const struct uni_importer uni_importer_mirage = {
	.name = "mirage",
	.summary = "threads and promises as MirageOS traces them: the time that each ran",
	.lost = "a profile has only the running times of threads and promises, and "
		"pauses. `uniscope trace findings`, `report --html` and `export -f "
		"mirage` also have the waits",
	.far = true,
	.gives = UNI_GIVES_PROMISES,
	.sniff = sniff_mirage,
	.read = read_mirage,
	.is_folder = uni_mirage_is_folder,
	.read_folder = read_folder,
};
