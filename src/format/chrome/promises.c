/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives and waits are asynchronous spans ("b", "e"), each with its own id, because they overlap.
 * Runs are spans of a thread for each CPU. Flows ("s", "f") lead from the waker to the thread that
 * ran.
 */
#include "format/chrome/promises.h"

#include <inttypes.h>

#include "base/json.h"
#include "format/chrome/time.h"
#include "format/promises.h"

#define PROMISES 1000000 /* process; samples are below it */
#define PAUSES	 1000	 /* threads, above those of CPUs */

struct writer {
	struct uni_sink *out;
	bool any;						   /* an event was written */
	bool run_of[UNI_PROMISE_CPUS], pause_of[UNI_PROMISE_CPUS]; /* named */
};

static void put_name(struct writer *w, const char *name)
{
	struct uni_json j;

	uni_json_init(&j, w->out, false);
	uni_json_str(&j, name);
}

static void begin_chrome_part(struct writer *w, char ph, uint32_t tid, const char *name)
{
	uni_sink_puts(w->out, w->any ? ",\n" : "\n");
	w->any = true;
	uni_sink_printf(w->out, "{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu32 ",\"name\":", ph,
		PROMISES, tid);
	put_name(w, name);
}

/* Overlapping spans of one kind differ by category and number. */
static void put_async(
	struct writer *w, char ph, const char *cat, const struct uni_promise_part *p, uint64_t ns)
{
	begin_chrome_part(w, ph, 0, p->name);
	uni_sink_printf(w->out, ",\"cat\":\"%s\",\"id\":%" PRIu32, cat, p->nr);
	uni_chrome_us(w->out, "ts", ns);
	if (ph == 'b' && p->fate != NULL && p->fate[0] != '\0')
		uni_sink_printf(w->out, ",\"args\":{\"fate\":\"%s\"}", p->fate);
	uni_sink_putc(w->out, '}');
}

static void put_thread(struct writer *w, bool *named, uint32_t tid, const char *of, uint32_t cpu)
{
	if (*named)
		return;
	*named = true;
	begin_chrome_part(w, 'M', tid, "thread_name");
	uni_sink_printf(w->out, ",\"args\":{\"name\":\"%s CPU %" PRIu32 "\"}}", of, cpu);
}

static void put_span(struct writer *w, uint32_t tid, const struct uni_promise_part *p)
{
	begin_chrome_part(w, 'X', tid, p->name);
	uni_chrome_span(w->out, p->begin, p->end);
	uni_sink_putc(w->out, '}');
}

static void put_flow(struct writer *w, char ph, uint32_t tid, uint64_t ns, uint32_t nr)
{
	begin_chrome_part(w, ph, tid, "wakes");
	uni_sink_printf(w->out, ",\"cat\":\"wake\",\"id\":%" PRIu32 "%s", nr,
		ph == 'f' ? ",\"bp\":\"e\"" : "");
	uni_chrome_us(w->out, "ts", ns);
	uni_sink_putc(w->out, '}');
}

static int put_chrome_part(void *arg, const struct uni_promise_part *p)
{
	struct writer *w = arg;
	uint32_t cpu = p->cpu % UNI_PROMISE_CPUS;

	switch ((enum uni_promise_part_kind)p->kind) {
	case UNI_PART_LIFE:
	case UNI_PART_WAIT:
		put_async(w, 'b', p->kind == UNI_PART_LIFE ? "promise" : "wait", p, p->begin);
		put_async(w, 'e', p->kind == UNI_PART_LIFE ? "promise" : "wait", p, p->end);
		break;
	case UNI_PART_LABEL:
		put_async(w, 'n', "promise", p, p->begin);
		break;
	case UNI_PART_RUN:
		put_thread(w, &w->run_of[cpu], cpu, "run by", cpu);
		put_span(w, cpu, p);
		break;
	case UNI_PART_PAUSE:
		put_thread(w, &w->pause_of[cpu], PAUSES + cpu, "pauses of", cpu);
		put_span(w, PAUSES + cpu, p);
		break;
	case UNI_PART_WAKE:
		put_flow(w, 's', p->from % UNI_PROMISE_CPUS, p->begin, p->nr);
		put_flow(w, 'f', cpu, p->end, p->nr);
		break;
	case UNI_PART_COUNT:
		begin_chrome_part(w, 'C', 0, p->name);
		uni_chrome_us(w->out, "ts", p->begin);
		uni_sink_printf(w->out, ",\"args\":{\"value\":%" PRId64 "}}", p->value);
		break;
	}
	return 0;
}

bool uni_chrome_promises(const struct uni_promise_model *m, struct uni_sink *out, bool any)
{
	struct writer w = { .out = out, .any = any };

	begin_chrome_part(&w, 'M', 0, "process_name");
	uni_sink_puts(out, ",\"args\":{\"name\":\"threads and promises\"}}");
	(void)uni_promise_parts(m, put_chrome_part, &w);
	return w.any;
}
