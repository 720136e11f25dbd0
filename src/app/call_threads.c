/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/call_threads.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"

static bool thread_is(const struct uni_trace_thread_name *t, const char *text)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%" PRIu64, t->number);
	return uni_glob_match(text, t->name) || uni_glob_match(text, number);
}

static int no_thread(const struct uni_trace_input *in, const char *text, struct uni_err *err)
{
	char names[400] = "";
	size_t len = 0;

	for (size_t i = 0; i < in->nr_threads && len < sizeof(names) - 64; i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.30s-%" PRIu64,
			i != 0 ? ", " : "", in->thread[i].name, in->thread[i].number);
	return uni_err_set(err, UNI_ENOENT, "no thread '%s' in this trace; known are: %s", text,
		len != 0 ? names : "none by name, only by number");
}

int uni_call_threads_add(struct uni_call_threads *t, const struct uni_trace_input *in,
	const char *text, struct uni_err *err)
{
	size_t before = t->ids.nr;
	uint64_t id;

	for (size_t i = 0; i < in->nr_threads; i++) {
		if (thread_is(&in->thread[i], text) && !uni_vec_push(&t->ids, in->thread[i].id))
			return uni_err_nomem(err);
	}
	if (uni_parse_u64(text, &id) && !uni_vec_push(&t->ids, id))
		return uni_err_nomem(err);
	return t->ids.nr != before ? 0 : no_thread(in, text, err);
}

void uni_call_threads_set(const struct uni_call_threads *t, struct uni_calls_filter *filter)
{
	filter->thread = t->ids.nr != 0 ? t->ids.v : NULL;
	filter->nr_thread = t->ids.nr;
}

int uni_call_part(const struct uni_part *part, const char *path, const struct uni_trace_input *in,
	uint64_t begin_ns, struct uni_calls_filter *filter, struct uni_err *err)
{
	uint64_t end_ns;
	int rc = uni_part_check(part, err);

	if (rc != 0)
		return rc;
	if (part->vcpu_given && part->vcpu >= in->info.nr_cpus)
		return uni_err_set(err, UNI_ENOENT, "the trace has CPUs 0 to %u, no CPU %" PRIu64,
			in->info.nr_cpus - 1, part->vcpu);
	if (part->vcpu_given)
		filter->cpu = uni_only(part->vcpu);
	uni_part_window(part, begin_ns, &filter->from_ns, &filter->to_ns);
	end_ns = uni_part_has_time(part) ? uni_trace_end_ns(in) : 0;
	/* Between two events there are calls that have begun. */
	if (end_ns != 0 && filter->from_ns > end_ns)
		return uni_part_empty(part, path, "event", begin_ns, end_ns, err);
	return 0;
}

void uni_call_threads_free(struct uni_call_threads *t)
{
	uni_vec_free(&t->ids);
}
