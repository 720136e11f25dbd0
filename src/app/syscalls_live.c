/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/syscalls_live.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "app/term.h"
#include "serve/store.h"

#define STORE_MAX                                                                             \
	((size_t)256 << 20)	   /* what comes faster than it can be told counts as missing \
				    */
#define HELD_MAX ((size_t)4 << 20) /* of a CPU, while another one is waited for */

struct uni_sysc_live {
	struct uni_sysc_live_args a;
	struct uni_trecord_watcher watcher;
	const struct uni_trecord_cfg *cfg;
	struct uni_tstore *store;
	struct uni_tstore_copy data; /* what `in` shows */
	struct uni_trace_input in;
	struct uni_record_thread *thread;
	struct uni_trace_thread_name *name;
	struct uni_symtab *symtab;
	struct uni_funcs *funcs;
	struct uni_calls *calls; /* NULL: nothing came yet */
	struct uni_timeline tl;
	struct uni_sysc_log log;
	struct uni_sysc_told told;
	struct uni_sysc_reader *reader;
	struct uni_sysc_printer *printer;
	struct uni_strbuf lines;
	struct uni_sink *text; /* into `lines` */
	/* For each CPU: its number of words when the recording began. `known`: up to this time, by
	 * CPU 0's counter, all its words are known. */
	struct live_cpu {
		struct uni_trace_clock clock;
		uint64_t first, known;
	} * cpu;
	uint64_t *until; /* for each CPU: printed so far, by its own counter */
	uint64_t newest; /* of all CPUs at the last look */
};

static uint32_t nr_cpus(const struct uni_sysc_live *l)
{
	return l->in.info.nr_cpus;
}

static void on_told(void *ctx, uint32_t entry, bool end)
{
	struct uni_sysc_live *l = ctx;

	uni_sysc_printer_put(l->printer, entry, end);
}

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_sysc_live *l = ctx;

	return uni_calls_read(l->calls, ret, nr_ret);
}

static const char *func_name(void *ctx, uint32_t func)
{
	struct uni_sysc_live *l = ctx;

	return uni_funcs_name(l->funcs, func);
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	struct uni_sysc_live *l = ctx;

	return uni_calls_thread_name(l->calls, thread, number_ret);
}

static const uint64_t *call_words(void *ctx, const struct uni_call_event *e)
{
	struct uni_sysc_live *l = ctx;

	return uni_calls_words(l->calls, e);
}

/* Uses the relations known by now; one found later would make times go back. If a counter was never
 * seen moving, its newest record counts as made just now. */
static void set_clocks(struct uni_sysc_live *l)
{
	const struct uni_ring_info info = l->in.info;
	struct uni_trace_clock just = {
		.tsc = l->newest, .ns = uni_now_ns(), .error_ns = UNI_NSEC_PER_SEC
	};
	struct uni_record_clock c = { 0 };

	for (uint32_t i = nr_cpus(l); i-- > 0;) {
		uni_tclock_result(l->cfg->clock, &info, i, &c);
		l->cpu[i].clock = c.error_ns == UINT64_MAX
					  ? just
					  : (struct uni_trace_clock){ c.cycles, c.ns, c.error_ns };
	}
	l->in.info.tsc_hz = c.hz;
}

static int set_names(struct uni_sysc_live *l)
{
	size_t nr;

	if (l->cfg->names == NULL)
		return 0;
	if (uni_tnames_get(l->cfg->names, &l->thread, &nr) != 0)
		return -UNI_ENOMEM;
	l->name = calloc(nr + 1, sizeof(*l->name));
	if (l->name == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++)
		l->name[i] = (struct uni_trace_thread_name){ .id = l->thread[i].object,
			.number =
				l->thread[i].has_number ? l->thread[i].number : l->thread[i].object,
			.name = l->thread[i].name };
	l->in.thread = l->name;
	l->in.nr_threads = nr;
	return 0;
}

static int on_begin(void *ctx, const struct uni_trecord_cfg *cfg, const uint64_t *words)
{
	struct uni_sysc_live *l = ctx;

	l->cfg = cfg;
	for (uint32_t i = 0; i < nr_cpus(l); i++)
		l->cpu[i].first = words[i];
	return set_names(l);
}

static int on_packet(void *ctx, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct uni_sysc_live *l = ctx;
	int rc = uni_tstore_put(l->store, cpu, packet, content);

	if (rc == 0 && l->calls == NULL) {
		l->newest = uni_tstore_newest(l->store, cpu).time;
		set_clocks(l);
	}
	return rc;
}

static int show_calls(struct uni_sysc_live *l, struct uni_tstore_copy *copy)
{
	struct uni_err err = { 0 };

	uni_tstore_copy_free(&l->data);
	l->data = *copy;
	for (uint32_t i = 0; i < nr_cpus(l); i++)
		l->data.cpu[i].clock = l->cpu[i].clock;
	l->in.cpu = l->data.cpu;
	if (l->calls != NULL) {
		uni_calls_more(l->calls);
		return 0;
	}
	return uni_calls_open(&l->in, NULL, l->funcs, &l->calls, &err);
}

/* Writes the finished lines. */
static int put_lines(struct uni_sysc_live *l)
{
	const char *end;
	size_t len;

	uni_sink_flush(l->text);
	end = l->lines.len != 0 ? memrchr(l->lines.s, '\n', l->lines.len) : NULL;
	len = l->a.parts ? l->lines.len : end != NULL ? (size_t)(end + 1 - l->lines.s) : 0;
	if (len != 0) {
		uni_sink_write(l->a.out, l->lines.s, len);
		uni_sink_flush(l->a.out);
		l->lines.len -= len;
		memmove(l->lines.s, l->lines.s + len, l->lines.len + 1);
	}
	return uni_sink_failed(l->a.out) || uni_sink_failed(l->text) ? -UNI_EIO : 0;
}

/* The records up to `until`, of each CPU's own counter; NULL: all. */
static int tell_until(struct uni_sysc_live *l, const uint64_t *until)
{
	struct uni_tstore_copy copy;
	int rc = uni_tstore_take(l->store, until, &copy);

	if (rc == 0)
		rc = show_calls(l, &copy);
	if (rc == 0)
		rc = uni_sysc_reader_read(l->reader);
	return rc == 0 ? put_lines(l) : rc;
}

/* By CPU 0's counter. */
static uint64_t offset_of(const struct uni_sysc_live *l, uint32_t cpu)
{
	return l->in.cpu != NULL ? uni_trace_offset(&l->in, cpu) : 0;
}

/*
 * A CPU whose words at this look are all read is known up to the newest record of any CPU at the
 * look before. Newer records may have to wait for older ones of another CPU, because threads move
 * between CPUs. False: some CPU has so much that it does not wait any more.
 */
static bool learn_newest(struct uni_sysc_live *l, const uint64_t *words, uint64_t *until_ret)
{
	uint64_t newest = l->newest, until = UINT64_MAX;
	bool wait = nr_cpus(l) > 1;

	for (uint32_t i = 0; i < nr_cpus(l); i++) {
		struct uni_tstore_newest n = uni_tstore_newest(l->store, i);

		if (uni_max(n.words, l->cpu[i].first) >= words[i])
			l->cpu[i].known = l->newest;
		until = uni_min(until, l->cpu[i].known);
		if (n.words != 0)
			newest = uni_max(newest, n.time + offset_of(l, i));
		wait = wait && n.held < HELD_MAX;
	}
	l->newest = newest;
	*until_ret = until;
	return wait;
}

static int on_looked(void *ctx, const uint64_t *words)
{
	struct uni_sysc_live *l = ctx;
	uint64_t all;
	bool wait = learn_newest(l, words, &all);

	if (l->newest == 0)
		return 0;
	if (l->calls == NULL) {
		/* From here on times of different CPUs compare. */
		struct uni_tstore_copy none = { .nr_cpus = nr_cpus(l),
			.cpu = calloc(nr_cpus(l) + 1u, sizeof(*none.cpu)) };

		l->newest = 0;
		return none.cpu == NULL ? -UNI_ENOMEM : show_calls(l, &none);
	}
	for (uint32_t i = 0; i < nr_cpus(l); i++)
		l->until[i] = all - offset_of(l, i);
	return tell_until(l, wait ? l->until : NULL);
}

static int name_functions(struct uni_sysc_live *l, struct uni_err *err)
{
	const struct uni_guest *g = &l->a.t->g;
	struct uni_funcs_naming naming = { .symtab = g->symtab, .bias = g->bias, .mangled = true };
	int rc = 0;

	if (naming.symtab == NULL && g->image != NULL) {
		rc = uni_symtab_of_image(g->image, &l->symtab, err);
		naming.symtab = l->symtab;
	}
	if (rc != 0)
		return rc;
	l->funcs = uni_funcs_create(&naming);
	return l->funcs != NULL ? 0 : uni_err_nomem(err);
}

static int create_all(struct uni_sysc_live *l, struct uni_err *err)
{
	struct uni_sysc_print how = *l->a.print;
	int rc;

	l->cpu = calloc(nr_cpus(l), sizeof(*l->cpu));
	l->until = calloc(nr_cpus(l), sizeof(*l->until));
	if (l->cpu == NULL || l->until == NULL)
		return uni_err_nomem(err);
	rc = uni_tstore_create(&l->in.info, STORE_MAX, &l->store, err);
	if (rc == 0)
		rc = name_functions(l, err);
	if (rc != 0)
		return rc;
	how.realtime_offset_ns = uni_realtime_ns() - uni_now_ns();
	if (uni_sink_open_strbuf(&l->lines, &l->text) == 0 &&
		uni_sysc_log_init(&l->log, l->a.filter) == 0) {
		l->printer = uni_sysc_printer_create(&l->log, &how, l->text);
		l->reader = uni_sysc_reader_create(
			&l->tl, l->a.prefixes, l->a.memory, &l->log, &l->told);
	}
	if (l->printer == NULL || l->reader == NULL)
		return uni_err_nomem(err);
	return 0;
}

int uni_sysc_live_create(
	const struct uni_sysc_live_args *args, struct uni_sysc_live **ret, struct uni_err *err)
{
	struct uni_sysc_live *l = calloc(1, sizeof(*l));
	int rc;

	if (l == NULL)
		return uni_err_nomem(err);
	l->a = *args;
	l->in = (struct uni_trace_input){ .info = *uni_ring_info(uni_tracer_ring(args->t->tracer)),
		.mode = UNI_TRACE_MODE_GRAPH,
		.live = true };
	l->watcher = (struct uni_trecord_watcher){
		.begin = on_begin, .packet = on_packet, .looked = on_looked, .ctx = l
	};
	l->tl = (struct uni_timeline){ .ctx = l,
		.read = read_calls,
		.func = func_name,
		.thread = thread_name,
		.words = call_words };
	l->told = (struct uni_sysc_told){ on_told, l };
	uni_strbuf_init(&l->lines);
	rc = create_all(l, err);
	if (rc != 0) {
		uni_sysc_live_destroy(l);
		return rc;
	}
	*ret = l;
	return 0;
}

void uni_sysc_live_destroy(struct uni_sysc_live *l)
{
	if (l == NULL)
		return;
	uni_sysc_reader_destroy(l->reader);
	uni_sysc_printer_destroy(l->printer);
	uni_sysc_log_deinit(&l->log);
	uni_sink_abort(l->text);
	uni_strbuf_deinit(&l->lines);
	uni_calls_close(l->calls);
	uni_funcs_destroy(l->funcs);
	uni_symtab_destroy(l->symtab);
	uni_tstore_copy_free(&l->data);
	uni_tstore_destroy(l->store);
	free(l->name);
	free(l->thread);
	free(l->cpu);
	free(l->until);
	free(l);
}

const struct uni_trecord_watcher *uni_sysc_live_watcher(struct uni_sysc_live *l)
{
	return &l->watcher;
}

static void say_missing(const struct uni_sysc_live *l, const char *what)
{
	const struct uni_calls_stats *st = uni_calls_stats(l->calls);

	if (what[0] == '\0')
		what = "the guest"; /* nothing is written, so no file has a name */
	if (st->events == 0)
		uni_note("%s: no call was recorded", what);
	if (st->lost != 0)
		uni_note("%s: %" PRIu64
			 " events are missing: calls that were open then are cut off there",
			what, st->lost);
	if (st->damaged != 0)
		uni_note("%s: %" PRIu64 " bytes could not be read: the trace is damaged", what,
			st->damaged);
}

int uni_sysc_live_end(struct uni_sysc_live *l, const char *what, struct uni_err *err)
{
	int rc;

	if (l->cfg == NULL)
		return 0;
	rc = tell_until(l, NULL);
	l->in.live = false;
	if (rc == 0)
		rc = uni_sysc_reader_read(l->reader);
	if (rc == 0)
		rc = put_lines(l);
	if (rc == 0)
		say_missing(l, what);
	/* The sink reports a failed write when it is closed. */
	return rc == 0 || rc == -UNI_EIO ? 0 : uni_err_nomem(err);
}
