/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/signals.h"
#include "cli/term.h"
#include "cli/tracing.h"
#include "serve/ftrace.h"
#include "serve/httpd.h"
#include "session/tclock.h"

#define PORT	    9090 /* Nanos' */
#define BUFFER	    (64u << 20)
#define READERS_MAX 8
#define ON_MS	    5 /* between looks at the rings */
#define OFF_MS	    200

static struct {
	struct uni_tracing_args a;
	uint64_t port, buffer;
	bool ftrace, on, keep;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "ftrace", UNI_OPT_FLAG, &o.ftrace, NULL,
			"what Nanos serves below /ftrace/: tracers, switches, traces as text", NULL,
			NULL },
		{ 'p', "port", UNI_OPT_U64, &o.port, "N",
			"TCP port on the loopback interface; 0: any (default 9090)", NULL, NULL },
		{ 0, "on", UNI_OPT_FLAG, &o.on, NULL,
			"record from the start on (default: from tracing_enable/on on)", NULL,
			NULL },
		{ 0, "keep", UNI_OPT_FLAG, &o.keep, NULL,
			"leave the functions switched on in the end", NULL, NULL },
		{ 0, "buffer", UNI_OPT_SIZE, &o.buffer, "SIZE",
			"how much of the trace is kept (default 64M)", NULL, NULL },
		UNI_CHOICE_OPTIONS(o.a),
		UNI_TRACING_OPTIONS(o.a),
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .port = PORT, .buffer = BUFFER };
	return table;
}

struct live {
	struct uni_tracing t;
	struct uni_choice choice;
	struct uni_tclock clock;
	enum uni_ftrace_tracer tracer; /* that the guest's code is patched for */
};

static int patch(struct live *l, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err)
{
	struct uni_trace_done done = { 0 };
	int rc;

	l->choice.c.disabled = !on;
	if (tracer == UNI_FTRACE_FUNCTION)
		l->choice.c.mode = UNI_TRACE_FUNCTION;
	else if (l->choice.c.mode == UNI_TRACE_FUNCTION)
		l->choice.c.mode = UNI_TRACE_GRAPH;
	rc = uni_tracer_set(
		l->t.tracer, tracer != UNI_FTRACE_NOP ? &l->choice.c : NULL, &done, err);
	if (rc != 0)
		return rc;
	l->tracer = tracer;
	uni_tracing_say(&done);
	return 0;
}

/* Functions are switched on when something is to be recorded first, and off with tracer nop. */
static int apply(void *ctx, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err)
{
	struct live *l = ctx;
	int rc = 0;

	if (l->tracer != tracer && (on || l->tracer != UNI_FTRACE_NOP))
		rc = patch(l, on ? tracer : UNI_FTRACE_NOP, on, err);
	if (rc == 0)
		rc = uni_tracer_enable(l->t.tracer, on, err);
	return rc;
}

static int rings_failed(int rc, struct uni_err *err)
{
	return uni_err_set(err, (enum uni_errcode) - rc, "the guest's rings cannot be read: %s",
		uni_strerror(rc));
}

static int poll_rings(void *ctx, uni_ring_packet_fn fn, void *arg, struct uni_err *err)
{
	struct live *l = ctx;
	struct uni_ring *r = uni_tracer_ring(l->t.tracer);
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < uni_ring_info(r)->nr_cpus; i++) {
		rc = uni_ring_poll(r, i, fn, arg);
		if (rc == 0)
			rc = uni_ring_peek(r, i, l->tracer == UNI_FTRACE_FUNCTION, fn, arg);
	}
	return rc == 0 ? 0 : rings_failed(rc, err);
}

static const struct uni_ftrace_ops ops = { .apply = apply, .poll = poll_rings };

static int look(struct uni_ftrace *f, struct uni_httpd *h, struct uni_err *err)
{
	struct pollfd fd = { .fd = uni_httpd_fd(h), .events = POLLIN };
	bool on = uni_ftrace_is_on(f);

	if (poll(&fd, 1, uni_httpd_timeout(h, on ? ON_MS : OFF_MS)) < 0 && errno != EINTR)
		return uni_err_set(err, UNI_EIO, "poll: %s", strerror(errno));
	if (on && uni_ftrace_poll(f, err) != 0)
		return -err->code;
	return uni_httpd_run(h, err);
}

static int serve(struct uni_ftrace *f, struct uni_err *err)
{
	const atomic_bool *stop = uni_signals_stop();
	struct uni_signals signals;
	struct uni_httpd *h;
	int rc;

	uni_signals_begin(&signals);
	rc = uni_httpd_create(f, (uint16_t)o.port, &h, err);
	if (rc == 0) {
		uni_note("serving http://127.0.0.1:%u/ftrace/ (Ctrl-C ends it)", uni_httpd_port(h));
		while (rc == 0 && !atomic_load(stop))
			rc = look(f, h, err);
		uni_httpd_destroy(h);
	}
	uni_signals_end(&signals);
	return rc;
}

static void fill_clocks(struct live *l, struct uni_ring_info *info, struct uni_trace_clock *ret)
{
	struct uni_record_clock c = { 0 };

	uni_tclock_open(&l->clock, l->t.g.info.pid, info->nr_cpus, NULL);
	for (uint32_t i = info->nr_cpus; i-- > 0;) {
		uni_tclock_result(&l->clock, info, i, &c);
		ret[i] = (struct uni_trace_clock){ c.cycles, c.ns, c.error_ns };
	}
	info->tsc_hz = c.hz;
}

static int serve_rings(struct live *l, const struct uni_funcs_naming *naming, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(l->t.tracer);
	struct uni_ring_info info = *uni_ring_info(ring);
	struct uni_trace_clock clock[UNI_VCPU_MAX];
	const struct uni_ftrace_cfg cfg = { .ops = &ops,
		.ctx = l,
		.info = &info,
		.clock = clock,
		.naming = naming,
		.tracer = UNI_FTRACE_GRAPH,
		.on = o.on,
		.max_bytes = (size_t)o.buffer,
		.max_readers = READERS_MAX };
	struct uni_ring_now now;
	struct uni_ftrace *f;
	int rc = 0;

	if (info.nr_cpus > UNI_VCPU_MAX)
		return uni_err_set(
			err, UNI_ENOTSUP, "the guest traces more than %d CPUs", UNI_VCPU_MAX);
	fill_clocks(l, &info, clock);
	for (unsigned i = 0; rc == 0 && i < info.nr_cpus; i++)
		rc = uni_ring_skip(ring, i, &now);
	if (rc != 0)
		return rings_failed(rc, err);
	rc = uni_ftrace_create(&cfg, &f, err);
	if (rc != 0)
		return rc;
	rc = apply(l, cfg.tracer, cfg.on, err);
	if (rc == 0)
		rc = serve(f, err);
	uni_ftrace_destroy(f);
	return rc;
}

/* What was switched on is switched off, also when something failed, if the guest is still there. */
static int serve_guest(struct live *l, struct uni_err *err)
{
	struct uni_funcs_naming naming = { .symtab = l->t.g.symtab, .bias = l->t.g.bias };
	struct uni_symtab *symtab = NULL;
	struct uni_trace_done done;
	int rc = 0;

	if (naming.symtab == NULL && l->t.g.image != NULL) {
		rc = uni_symtab_of_image(l->t.g.image, &symtab, err);
		naming.symtab = symtab;
	}
	if (rc == 0)
		rc = serve_rings(l, &naming, err);
	if (l->tracer != UNI_FTRACE_NOP && !o.keep) {
		int off = uni_tracer_set(l->t.tracer, NULL, &done, err);

		rc = rc != 0 ? rc : off;
	}
	uni_symtab_destroy(symtab);
	return rc;
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct live *l;
	int rc;

	if (!o.ftrace)
		return uni_exit_of(
			uni_err_set(err, UNI_EUSAGE, "say what to serve: --ftrace (see --help)"));
	if (o.port > UINT16_MAX)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--port is at most 65535"));
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return uni_exit_of(uni_err_set(err, UNI_ENOMEM, "out of memory"));
	rc = uni_choice_make(&l->choice, &o.a, err);
	if (rc == 0) {
		rc = uni_tracing_open(&l->t, ctx->operands[0], &o.a, err);
		if (rc == 0) {
			rc = serve_guest(l, err);
			uni_tracing_close(&l->t);
		}
		uni_choice_free(&l->choice);
	}
	free(l);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_serve = {
	.name = "serve",
	.operands = "TARGET",
	.summary = "serve what a guest traces over HTTP, as Nanos does from inside",
	.details =
		"With --ftrace the files below http://127.0.0.1:9090/ftrace/ are those that Nanos "
		"serves:\n"
		"available_tracers, current_tracer, trace_clock, tracing_on, tracing_enable/on, "
		"tracing_enable/off,\n"
		"trace and trace_pipe. Only this machine can ask, and no web page. Functions are "
		"switched on when\n"
		"recording is, and off in the end.",
	.examples = "  uniscope serve --ftrace kvm:pid=4121 &\n"
		    "  wget -qO- http://127.0.0.1:9090/ftrace/tracing_enable/on\n"
		    "  wget -qO trace http://127.0.0.1:9090/ftrace/trace\n"
		    "  wget -qO- --method=PUT --body-data=0 "
		    "http://127.0.0.1:9090/ftrace/tracing_on",
	.min_operands = 1,
	.max_operands = 1,
	.options = options,
	.run = run,
};
