/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/serve_ftrace.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "app/signals.h"
#include "app/term.h"
#include "serve/ftrace_http.h"
#include "tracing/clock.h"

#define READERS_MAX 8
#define ON_MS	    5 /* between looks at the rings */
#define OFF_MS	    200
#define POLL_NS	    (200 * UNI_NSEC_PER_MSEC) /* then clients are served */
#define OURS_NS	    (100 * UNI_NSEC_PER_MSEC)

struct live {
	const struct uni_serve_ftrace_args *o;
	struct uni_tracing t;
	struct uni_choice choice;
	struct uni_tclock clock;
	struct uni_httpd *httpd;
	enum uni_ftrace_tracer tracer; /* that the guest's code is patched for */
	uint64_t poll_until_ns;
	uint64_t ours_ns; /* when to look again whether it still is */
};

static int patch_functions(
	struct live *l, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err)
{
	struct uni_trace_choice choice = l->choice.c;
	struct uni_trace_done done = { 0 };
	int rc;

	choice.disabled = !on;
	/* The tracer `function` names the caller: entries have it, or else it is the newest open
	 * call. */
	if (UNI_TRACE_ENTRIES_ONLY(choice.mode))
		choice.mode = UNI_TRACE_GRAPH;
	if (tracer == UNI_FTRACE_FUNCTION && choice.max_depth == 0 && choice.min_ns == 0 &&
		uni_tracer_tells_callers(l->t.tracer))
		choice.mode = UNI_TRACE_CALLERS;
	rc = uni_tracer_set(l->t.tracer, tracer != UNI_FTRACE_NOP ? &choice : NULL, &done, err);
	if (rc != 0)
		return rc;
	l->tracer = tracer;
	uni_tracing_say(&done);
	return tracer != UNI_FTRACE_NOP &&
	       uni_ring_info(uni_tracer_ring(l->t.tracer))->tells_sessions;
}

/* Functions are switched on with the first recording, and off with tracer nop. Returns 1 if older
 * records in the rings have to be left out from now on. */
static int apply_tracer(void *ctx, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err)
{
	struct live *l = ctx;
	int began = 0, rc;

	if (l->tracer != tracer && (on || l->tracer != UNI_FTRACE_NOP))
		began = patch_functions(l, on ? tracer : UNI_FTRACE_NOP, on, err);
	if (began < 0)
		return began;
	rc = uni_tracer_enable(l->t.tracer, on, err);
	return rc == 0 ? began : rc;
}

static int rings_failed(int rc, struct uni_err *err)
{
	return uni_err_set(err, (enum uni_errcode) - rc, "the guest's rings cannot be read: %s",
		uni_strerror(rc));
}

static bool is_poll_over(void *ctx)
{
	const struct live *l = ctx;

	return atomic_load(uni_signals_stop()) || uni_now_ns() >= l->poll_until_ns;
}

static int poll_rings(void *ctx, uni_ring_packet_fn fn, void *arg, struct uni_err *err)
{
	struct live *l = ctx;
	struct uni_ring *r = uni_tracer_ring(l->t.tracer);
	int rc = 0;

	l->poll_until_ns = uni_now_ns() + POLL_NS;
	uni_ring_until(r, false, is_poll_over, l);
	for (unsigned i = 0; rc == 0 && i < uni_ring_info(r)->nr_cpus; i++) {
		rc = uni_ring_poll(r, i, fn, arg);
		if (rc == 0)
			rc = uni_ring_peek(r, i, false, fn, arg);
	}
	/* The next poll goes on with the rest. */
	return rc == 0 || rc == -UNI_EBUDGET ? 0 : rings_failed(rc, err);
}

static const struct uni_ftrace_ops ops = { .apply = apply_tracer, .poll = poll_rings };

/* Forgets which functions are patched: the next user patches them. */
static void look_at_others(struct live *l, struct uni_ftrace *f)
{
	if (l->tracer == UNI_FTRACE_NOP || uni_now_ns() < l->ours_ns)
		return;
	l->ours_ns = uni_now_ns() + OURS_NS;
	if (uni_tracer_is_ours(l->t.tracer))
		return;
	l->tracer = UNI_FTRACE_NOP;
	uni_ftrace_stopped(f);
	uni_note("somebody else changed what is traced (uniscope trace stop?): tracing_on is 0");
}

static int serve_once(struct uni_ftrace *f, struct uni_httpd *h, struct uni_err *err)
{
	struct pollfd fd = { .fd = uni_httpd_fd(h), .events = POLLIN };
	bool on = uni_ftrace_is_on(f);

	if (poll(&fd, 1, uni_httpd_timeout(h, on ? ON_MS : OFF_MS)) < 0 && errno != EINTR)
		return uni_err_set(err, UNI_EIO, "poll: %s", strerror(errno));
	if (on && uni_ftrace_poll(f, err) != 0)
		return -err->code;
	return uni_httpd_run(h, err);
}

static int serve_until_stopped(struct live *l, struct uni_ftrace *f, struct uni_err *err)
{
	const atomic_bool *stop = uni_signals_stop();
	struct uni_signals signals;
	int rc = 0;

	uni_signals_begin(&signals);
	uni_httpd_set_ctx(l->httpd, f);
	uni_note("serving http://127.0.0.1:%u/ftrace/ (Ctrl-C ends it)", uni_httpd_port(l->httpd));
	while (rc == 0 && !atomic_load(stop)) {
		look_at_others(l, f);
		rc = serve_once(f, l->httpd, err);
	}
	uni_httpd_destroy(l->httpd);
	l->httpd = NULL;
	uni_signals_end(&signals);
	return rc;
}

static int fill_clocks(struct live *l, struct uni_ring_info *info, struct uni_trace_clock *ret,
	struct uni_err *err)
{
	struct uni_record_clock c = { 0 };

	int rc = uni_tclock_open(&l->clock, l->t.g.info.pid, info->nr_cpus, NULL, err);

	for (uint32_t i = info->nr_cpus; rc == 0 && i-- > 0;) {
		uni_tclock_result(&l->clock, info, i, &c);
		ret[i] = (struct uni_trace_clock){ c.cycles, c.ns, c.error_ns };
	}
	info->tsc_hz = c.hz;
	return rc;
}

static int serve_rings(struct live *l, const struct uni_funcs_naming *naming, struct uni_err *err)
{
	struct uni_ring *ring = uni_tracer_ring(l->t.tracer);
	struct uni_ring_info info = *uni_ring_info(ring);
	_cleanup_free_ struct uni_trace_clock *clock = calloc(info.nr_cpus, sizeof(*clock));
	const struct uni_ftrace_cfg cfg = { .ops = &ops,
		.ctx = l,
		.info = &info,
		.clock = clock,
		.naming = naming,
		.tracer = UNI_FTRACE_GRAPH,
		.on = l->o->on,
		.max_bytes = l->o->buffer,
		.max_readers = READERS_MAX };
	struct uni_ring_now now;
	struct uni_ftrace *f;
	int rc = 0;

	if (clock == NULL)
		return uni_err_nomem(err);
	rc = fill_clocks(l, &info, clock, err);
	if (rc != 0)
		return rc;
	for (unsigned i = 0; rc == 0 && i < info.nr_cpus; i++)
		rc = uni_ring_skip(ring, i, &now);
	if (rc != 0)
		return rings_failed(rc, err);
	rc = uni_ftrace_create(&cfg, &f, err);
	if (rc != 0)
		return rc;
	rc = apply_tracer(l, cfg.tracer, cfg.on, err);
	if (rc >= 0)
		rc = serve_until_stopped(l, f, err);
	uni_ftrace_destroy(f);
	return rc;
}

/* Switches tracing off again, also after a failure, if the guest is still there. */
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
	if (l->tracer != UNI_FTRACE_NOP && !l->o->keep) {
		int off = uni_tracer_set(l->t.tracer, NULL, &done, err);

		rc = rc != 0 ? rc : off;
	}
	uni_symtab_destroy(symtab);
	return rc;
}

int uni_serve_ftrace(
	const char *target, const struct uni_serve_ftrace_args *args, struct uni_err *err)
{
	const struct uni_httpd_cfg cfg = uni_ftrace_httpd(NULL, args->port);
	struct live *l = calloc(1, sizeof(*l));
	int rc;

	if (l == NULL)
		return uni_err_nomem(err);
	l->o = args;
	rc = uni_choice_make(&l->choice, args->tracing, err);
	if (rc == 0) {
		/* The socket comes first: a process without rights cannot make any. */
		rc = uni_httpd_create(&cfg, &l->httpd, err);
		if (rc == 0)
			rc = uni_tracing_open(&l->t, target, args->tracing, err);
		if (rc == 0) {
			rc = serve_guest(l, err);
			uni_tracing_close(&l->t);
		}
		uni_choice_free(&l->choice);
	}
	uni_httpd_destroy(l->httpd);
	uni_tclock_close(&l->clock);
	free(l);
	return rc;
}
