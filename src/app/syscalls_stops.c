/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A breakpoint stands where the CPU enters the kernel for a system call. There the registers are
 * still the program's: number and arguments as Linux passes them.
 */
#include "app/syscalls_stops.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/counting.h"
#include "app/images.h"
#include "app/symbols.h"
#include "app/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "syscalls/value.h"

#define TEXT_MAX 512
#define PAGE	 4096

/* The place at which Nanos takes system calls. */
static const char entry_name[] = "syscall_enter";

/* As x86_64's Linux passes them. */
static const unsigned argument[UNI_SYSC_ARGS_MAX] = { UNI_X86_RDI, UNI_X86_RSI, UNI_X86_RDX,
	UNI_X86_R10, UNI_X86_R8, UNI_X86_R9 };

struct seen {
	uint64_t nr, arg[UNI_SYSC_ARGS_MAX];
	struct {
		char byte[TEXT_MAX + 1];
		size_t len;
		bool is_cut;
	} text[UNI_SYSC_ARGS_MAX];
};

struct stops {
	const struct uni_syscalls_args *a;
	struct uni_sysc_log *log;
	size_t text_max, nr_seen;
	struct uni_strbuf args;
	struct seen seen[UNI_VCPU_MAX]; /* of the stop that is served */
};

/* As many bytes as can be read, page by page. */
static size_t read_bytes(struct uni_as *as, uint64_t va, char *buf, size_t cap)
{
	size_t done = 0;

	while (done < cap) {
		size_t part = uni_min(cap - done, (size_t)(PAGE - (va + done) % PAGE));

		if (uni_as_read(as, uni_gva_of(va + done), buf + done, part) != 0)
			break;
		done += part;
	}
	return done;
}

/* A text up to its NUL, or a buffer of as many bytes as the next argument says. */
static void copy_text(
	const struct stops *s, struct uni_as *as, struct seen *to, unsigned i, char kind)
{
	bool is_buffer = kind == 'i';
	uint64_t size = is_buffer && i + 1 < UNI_SYSC_ARGS_MAX ? to->arg[i + 1] : TEXT_MAX + 1;
	size_t most = (size_t)uni_min(size, (uint64_t)s->text_max + 1), n, len;

	n = read_bytes(as, to->arg[i], to->text[i].byte, most);
	len = is_buffer ? n : strnlen(to->text[i].byte, n);
	to->text[i].is_cut = len > s->text_max;
	to->text[i].len = uni_min(len, s->text_max);
	if (n == 0 || (n < most && len == n)) /* not all of it: an address is shown */
		to->text[i].len = SIZE_MAX;
}

/* The guest stands. */
static void look_at_call(void *ctx, struct uni_as *as, const struct uni_regs *regs)
{
	struct stops *s = ctx;
	struct seen *to = &s->seen[s->nr_seen];
	const struct uni_sysc_def *def;

	if (s->nr_seen == uni_array_len(s->seen))
		return;
	s->nr_seen++;
	to->nr = regs->r[UNI_X86_RAX];
	def = uni_sysc_by_number(EM_X86_64, to->nr);
	for (unsigned i = 0; i < UNI_SYSC_ARGS_MAX; i++)
		to->arg[i] = regs->r[argument[i]];
	for (unsigned i = 0; i < UNI_SYSC_ARGS_MAX; i++) {
		to->text[i].len = SIZE_MAX; /* none */
		if (def != NULL && i < uni_sysc_nr_args(def) &&
			(def->kinds[i] == 's' || def->kinds[i] == 'i'))
			copy_text(s, as, to, i, def->kinds[i]);
	}
}

static int add_call(struct stops *s, const struct seen *c, uint64_t at_ns)
{
	const struct uni_sysc_def *def = uni_sysc_by_number(EM_X86_64, c->nr);
	struct uni_trace_copied copied[UNI_TRACE_ARGS] = { { 0 } };
	struct uni_sysc_entry e = {
		.begin_ns = at_ns, .end_ns = at_ns, .end = UNI_SYSC_NO_RESULT, .timed = true
	};
	char number[32];
	const char *name = number;

	(void)snprintf(number, sizeof(number), "syscall_%" PRIu64, c->nr);
	if (def != NULL)
		name = def->name;
	for (unsigned i = 0; i < uni_min(UNI_SYSC_ARGS_MAX, UNI_TRACE_ARGS); i++) {
		if (c->text[i].len != SIZE_MAX)
			copied[i] = (struct uni_trace_copied){ .text = c->text[i].byte,
				.len = (uint16_t)c->text[i].len,
				.flags = c->text[i].is_cut ? UNI_TRACE_TEXT_CUT : 0 };
	}
	uni_strbuf_reset(&s->args);
	uni_sysc_args(def, c->arg, UNI_SYSC_ARGS_MAX, copied, NULL, &s->args);
	if (uni_strbuf_failed(&s->args))
		return -UNI_ENOMEM;
	e.name = uni_sysc_log_text(s->log, name, strlen(name));
	e.args = uni_sysc_log_text(s->log, s->args.s, s->args.len);
	return uni_sysc_log_add(s->log, &e);
}

static int add_seen(void *ctx, uint64_t at_ns)
{
	struct stops *s = ctx;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->nr_seen; i++)
		rc = add_call(s, &s->seen[i], at_ns);
	s->nr_seen = 0;
	return rc;
}

static int check_entry(const struct uni_guest *g, struct uni_err *err)
{
	uint64_t at, size;

	if (g->image != NULL && uni_image_find(g->image, entry_name, &at, &size) == 0)
		return 0;
	return uni_err_set(err, UNI_ENOENT,
		"--stops knows where Nanos takes system calls: %s. It needs the kernel's image "
		"(--image), and this one has no such symbol",
		entry_name);
}

static int stop_at_calls(
	struct uni_guest *g, struct stops *s, uint64_t *realtime_offset_ns_ret, struct uni_err *err)
{
	const struct uni_count_watcher watcher = { look_at_call, add_seen, s };
	const char *const entry = entry_name;
	struct uni_count_args args = { .function = &entry,
		.nr = 1,
		.duration = s->a->duration,
		.max_pause = 1,
		.watcher = &watcher };
	struct uni_count *c = calloc(1, sizeof(*c));
	int rc = c != NULL ? check_entry(g, err) : uni_err_nomem(err);

	if (rc == 0)
		rc = uni_count_find(g, &args, c, err);
	if (rc == 0) {
		*realtime_offset_ns_ret = uni_realtime_ns();
		rc = uni_count_run(g, &args, c, err);
	}
	if (rc == 0 && !s->a->quiet)
		uni_note("%" PRIu64
			 " system call%s; the guest stood %.0f us for each, %.0f %% of the "
			 "time. Their results are not known",
			c->f[0].calls, uni_plural(c->f[0].calls),
			c->stops != 0 ? (double)c->stopped_ns / 1e3 / (double)c->stops : 0,
			100.0 * (double)c->stopped_ns /
				uni_max((double)(c->ran_ns + c->stopped_ns), 1.0));
	if (rc == 0 && !s->a->quiet && uni_guest_is_tcg(g))
		uni_note("TCG runs the page (4 KiB) of the kernel's entry one instruction at a "
			 "time: the times are those of a slower guest");
	if (rc == 0 && c->gaps != 0)
		uni_note("%.3g s are missing, in %" PRIu64 " gap%s", (double)c->gap_ns / 1e9,
			c->gaps, uni_plural(c->gaps));
	if (c != NULL)
		uni_count_deinit(c);
	free(c);
	return rc;
}

int uni_syscalls_by_stops(const char *target, const struct uni_syscalls_args *args,
	struct uni_sysc_log *log, uint64_t *realtime_offset_ns_ret, struct uni_err *err)
{
	struct uni_attach_args attach = { .image = uni_images_first(&args->images),
		.qmp = args->qmp,
		.no_image_ok = true,
		.no_samples = true,
		.search = uni_search_of(&args->debug_dirs) };
	struct uni_guest *g = calloc(1, sizeof(*g));
	struct stops *s = calloc(1, sizeof(*s));
	_cleanup_free_ char *way = NULL;
	int rc = g != NULL && s != NULL ? uni_count_target(target, &way, err) : uni_err_nomem(err);

	if (rc == 0) {
		s->a = args;
		s->log = log;
		s->text_max = (size_t)uni_min(args->string_max, (uint64_t)TEXT_MAX);
		uni_strbuf_init(&s->args);
		attach.target = way;
		rc = uni_guest_open_only(g, &attach, err);
		if (rc == 0) {
			rc = stop_at_calls(g, s, realtime_offset_ns_ret, err);
			uni_guest_close(g);
		}
		uni_strbuf_deinit(&s->args);
	}
	free(s);
	free(g);
	return rc;
}
