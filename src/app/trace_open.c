/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/trace_open.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "app/symbols.h"
#include "app/term.h"

static int set_last(struct uni_trace_open *t, const struct uni_trace_args *a, struct uni_err *err)
{
	uint64_t last_ns, end_ns = uni_trace_end_ns(t->in);

	if (uni_part_has_time(&a->part) || !uni_parse_time(a->last, 1e9, &last_ns))
		return uni_err_set(err, UNI_EUSAGE,
			"--last takes a time such as 10ms, and neither --from nor --to with it");
	/* 0 would be no window at all. */
	t->filter.from_ns = end_ns > last_ns ? end_ns - last_ns : 1;
	return 0;
}

static int set_filter(struct uni_trace_open *t, const char *path, const struct uni_trace_args *a,
	struct uni_err *err)
{
	int rc;

	t->filter = (struct uni_calls_filter){ .function = a->function,
		.rules = uni_call_rules_get(&t->rules) };
	t->begin_ns = uni_trace_begin_ns(t->in);
	rc = uni_call_part(&a->part, path, t->in, t->begin_ns, &t->filter, err);
	if (rc != 0)
		return rc;
	if (a->last != NULL)
		rc = set_last(t, a, err);
	for (size_t i = 0; rc == 0 && i < a->threads.items.nr; i++)
		rc = uni_call_threads_add(&t->threads, t->in, a->threads.items.v[i], err);
	if (rc != 0)
		return rc;
	uni_call_threads_set(&t->threads, &t->filter);
	return 0;
}

static int set_names(struct uni_trace_open *t, const struct uni_trace_args *a, uint32_t guest,
	struct uni_err *err)
{
	const struct uni_recorded_guest g = uni_recording_guest(t->rec, guest);
	struct uni_image_search search = uni_search_of(&a->debug_dirs);
	struct uni_funcs_naming naming = {
		.symtab = g.symtab, .bias = g.meta->bias, .mangled = a->mangled
	};

	if (a->symbols != NULL) {
		int rc = uni_symbols_load(a->symbols, &search, NULL, &t->symtab, err);

		if (rc != 0)
			return rc;
		naming.symtab = t->symtab;
	} else if (g.symtab_problem != NULL) {
		uni_note("%s: addresses stay without names (--symbols can give some)",
			g.symtab_problem);
	}
	t->funcs = uni_funcs_create(&naming);
	return t->funcs != NULL ? 0 : uni_err_nomem(err);
}

static int open_all(struct uni_trace_open *t, const char *path, const struct uni_trace_args *a,
	struct uni_err *err)
{
	uint32_t guest;
	int rc = uni_input_session(path, &t->input, err);

	if (rc == 0)
		rc = uni_recording_open(t->input.folder, &t->rec, err);
	if (rc == 0 && a->guest != NULL)
		rc = uni_recording_find_guest(t->rec, a->guest, &guest, err);
	else if (rc == 0)
		rc = uni_tinput_find(t->rec, &guest, err);
	if (rc == 0)
		rc = uni_tinput_open(t->rec, guest, &t->tinput, err);
	if (rc != 0)
		return rc;
	t->guest = guest;
	uni_trace_values_init(&t->values, t->rec, guest, a->symbols, &a->debug_dirs);
	t->in = uni_tinput_get(t->tinput);
	rc = set_names(t, a, guest, err);
	return rc != 0 ? rc : set_filter(t, path, a, err);
}

int uni_trace_open(const char *path, const struct uni_trace_args *args, struct uni_trace_open *ret,
	struct uni_err *err)
{
	int rc;

	*ret = (struct uni_trace_open){ 0 };
	rc = uni_call_rules_parse(&args->rules, &ret->values, &ret->rules, err);
	if (rc == 0)
		rc = open_all(ret, path, args, err);
	if (rc != 0)
		uni_trace_close(ret);
	return rc;
}

void uni_trace_close(struct uni_trace_open *t)
{
	uni_call_rules_free(&t->rules);
	uni_trace_values_deinit(&t->values);
	uni_funcs_destroy(t->funcs);
	uni_symtab_destroy(t->symtab);
	uni_tinput_close(t->tinput);
	uni_recording_close(t->rec);
	uni_input_close(&t->input);
	uni_call_threads_free(&t->threads);
}

static bool lost_at_most(const struct uni_trace_open *t)
{
	return t->rec != NULL &&
	       uni_record_trace_lost_at_most(&uni_recording_guest(t->rec, t->guest).meta->trace);
}

static uint64_t after_freeze(const struct uni_trace_open *t)
{
	const struct uni_record_trace *trace;
	uint64_t sum = 0;

	if (t->rec == NULL)
		return 0;
	trace = &uni_recording_guest(t->rec, t->guest).meta->trace;
	for (uint32_t i = 0; i < trace->nr_cpus; i++)
		sum += trace->cpu[i].after_freeze;
	return sum;
}

void uni_trace_note_rate(const char *path, const struct uni_record_trace *trace)
{
	const struct uni_record_clock *c = trace->nr_cpus != 0 ? &trace->cpu[0].clock : NULL;

	if (c != NULL && c->error_ns == UINT64_MAX && trace->info.tsc_hz == 0)
		uni_note("%s: the frequency of the guest's counter is not known: a second "
			 "in the output is %" PRIu64 " ticks of it",
			path, c->hz);
}

void uni_trace_note_only(const char *path, const struct uni_record_trace *trace)
{
	if (strcmp(trace->mode, "lite") == 0)
		uni_note("%s: mode lite: calls that made no call have no time of their own. It "
			 "counts for their callers",
			path);
	if (trace->only[0] != '\0')
		uni_note("%s: the guest recorded only such calls: %s. Calls that were "
			 "left out count for the caller's own time",
			path, trace->only);
}

void uni_trace_note(
	const struct uni_trace_open *t, const char *path, const struct uni_calls_stats *st)
{
	bool windowed = t->filter.from_ns != 0 || t->filter.to_ns != 0;
	bool chosen = t->filter.cpu.chosen || t->filter.thread != NULL;

	if (st->events == 0)
		uni_note("%s: no call was recorded%s", path,
			chosen	   ? " in the part that was chosen"
			: windowed ? " in that time"
				   : "");
	if (t->rec != NULL) {
		uni_trace_note_rate(path, &uni_recording_guest(t->rec, t->guest).meta->trace);
		uni_trace_note_only(path, &uni_recording_guest(t->rec, t->guest).meta->trace);
	}
	if (st->lost != 0)
		uni_note("%s: %s%" PRIu64
			 " events are missing: calls that were open then are cut off there",
			path, lost_at_most(t) ? "at most " : "", st->lost);
	if (uni_calls_are_woven(st, t->in))
		uni_note("%s: the guest has several threads, but records no switch "
			 "between them (uni_trace_switch()): calls of one may be shown "
			 "below another's",
			path);
	else if (uni_calls_may_be_woven(st))
		uni_note("%s: calls returned on several stacks, and no switch of threads is "
			 "recorded (uni_trace_switch()). They are of interrupts' handlers, or "
			 "calls of one thread are shown below another's",
			path);
	if (after_freeze(t) != 0)
		uni_note("%s: %" PRIu64
			 " events came after the rings were frozen, and are not in it",
			path, after_freeze(t));
	if (st->damaged != 0)
		uni_note("%s: %" PRIu64 " bytes could not be read: the trace is damaged", path,
			st->damaged);
	if (st->too_deep != 0)
		uni_note("%s: %" PRIu64 " calls lay more than %d deep and are not shown", path,
			st->too_deep, UNI_CALLS_DEPTH_MAX);
	uni_call_rules_note(&t->rules);
}
