/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/ftrace.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "serve/ftrace_text.h"
#include "serve/store.h"

static const char *const tracers[] = {
	[UNI_FTRACE_NOP] = "nop",
	[UNI_FTRACE_FUNCTION] = "function",
	[UNI_FTRACE_GRAPH] = "function_graph",
};

struct uni_ftrace {
	struct uni_ftrace_cfg cfg;
	struct uni_tstore *store;
	struct uni_ftrace_text *pipe; /* NULL: nobody has read from it yet, or its reader failed */
	bool piped;		      /* a reader is at the pipe's text */
	enum uni_ftrace_tracer tracer;
	bool on;
	unsigned readers;
};

struct uni_ftrace_reader {
	struct uni_ftrace *f;
	struct uni_ftrace_text *text;
	bool pipe, ended;
};

int uni_ftrace_create(
	const struct uni_ftrace_cfg *cfg, struct uni_ftrace **ret, struct uni_err *err)
{
	struct uni_ftrace *f = calloc(1, sizeof(*f));
	int rc = f == NULL ? uni_err_nomem(err)
			   : uni_tstore_create(cfg->info, cfg->max_bytes, &f->store, err);

	if (rc != 0) {
		free(f);
		return rc;
	}
	f->cfg = *cfg;
	f->tracer = cfg->tracer;
	f->on = cfg->on;
	*ret = f;
	return 0;
}

void uni_ftrace_destroy(struct uni_ftrace *f)
{
	if (f == NULL)
		return;
	uni_ftrace_text_destroy(f->pipe);
	uni_tstore_destroy(f->store);
	free(f);
}

int uni_ftrace_poll(struct uni_ftrace *f, struct uni_err *err)
{
	return f->cfg.ops->poll(f->cfg.ctx, uni_tstore_put, f->store, err);
}

void uni_ftrace_stopped(struct uni_ftrace *f)
{
	f->on = false;
}

bool uni_ftrace_is_on(const struct uni_ftrace *f)
{
	return f->on;
}

static void fail_reply(struct uni_ftrace_reply *ret, unsigned status, const char *why)
{
	ret->status = status;
	uni_strbuf_reset(&ret->body);
	uni_strbuf_addf(&ret->body, "%s\n", why);
}

static void fail_err(struct uni_ftrace_reply *ret, const struct uni_err *err)
{
	fail_reply(ret, err->code == UNI_EGONE ? 503 : 500, err->msg);
}

static void apply_ftrace(
	struct uni_ftrace *f, enum uni_ftrace_tracer tracer, bool on, struct uni_ftrace_reply *ret)
{
	struct uni_err err = { 0 };
	bool other = tracer != f->tracer;
	int rc;

	/* Reads what was recorded so far, before the change gives new records another meaning. */
	rc = uni_ftrace_poll(f, &err);
	if (rc == 0)
		rc = f->cfg.ops->apply(f->cfg.ctx, tracer, on, &err);
	if (rc < 0) {
		fail_err(ret, &err);
		return;
	}
	if (rc > 0)
		uni_tstore_restart(f->store);
	f->tracer = tracer;
	f->on = on;
	if (!other)
		return;
	/*
	 * As in the original, another tracer begins with empty rings. If the rings tell sessions
	 * apart, all that comes later is from this tracer.
	 */
	if (rc == 0)
		(void)uni_ftrace_poll(f, NULL);
	uni_tstore_clear(f->store);
	if (f->pipe != NULL && !uni_ftrace_text_busy(f->pipe)) {
		if (!f->piped) /* otherwise its reader destroys it */
			uni_ftrace_text_destroy(f->pipe);
		f->pipe = NULL;
	}
}

static void clear_trace(struct uni_ftrace *f, struct uni_ftrace_reply *ret)
{
	struct uni_err err = { 0 };

	if (uni_ftrace_poll(f, &err) != 0)
		fail_err(ret, &err);
	uni_tstore_clear(f->store);
}

static struct uni_ftrace_text_cfg text_cfg(const struct uni_ftrace *f, bool pipe)
{
	static const enum uni_trace_text_kind kinds[] = {
		[UNI_FTRACE_NOP] = UNI_TRACE_TEXT_NOP,
		[UNI_FTRACE_FUNCTION] = UNI_TRACE_TEXT_FUNCTION,
		[UNI_FTRACE_GRAPH] = UNI_TRACE_TEXT_GRAPH,
	};

	return (struct uni_ftrace_text_cfg){ .info = f->cfg.info,
		.clock = f->cfg.clock,
		.naming = f->cfg.naming,
		.kind = kinds[f->tracer],
		.live = pipe };
}

/* The text of the pipe goes on at the end of the previous reader's. */
static int begin_text(struct uni_ftrace *f, struct uni_ftrace_reader *r, struct uni_err *err)
{
	const struct uni_ftrace_text_cfg cfg = text_cfg(f, r->pipe);
	struct uni_tstore_copy copy;
	int rc = uni_ftrace_poll(f, err);

	if (rc == 0 && uni_tstore_copy(f->store, r->pipe, &copy) != 0)
		rc = uni_err_nomem(err);
	if (rc != 0)
		return rc;
	if (r->pipe && f->pipe != NULL) {
		uni_ftrace_text_more(f->pipe, &copy);
		r->text = f->pipe;
		return 0;
	}
	rc = uni_ftrace_text_create(&cfg, &copy, &r->text, err);
	if (rc == 0 && r->pipe)
		f->pipe = r->text;
	return rc;
}

static void open_reader(struct uni_ftrace *f, bool pipe, struct uni_ftrace_reply *ret)
{
	struct uni_ftrace_reader *r;
	struct uni_err err = { 0 };

	if (f->readers >= f->cfg.max_readers ||
		(pipe && (f->piped || (f->pipe != NULL && uni_ftrace_text_busy(f->pipe))))) {
		fail_reply(ret, 503, pipe ? "another reader is at it" : "too many readers at once");
		return;
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		fail_reply(ret, 500, "out of memory");
		return;
	}
	r->f = f;
	r->pipe = pipe;
	f->piped = f->piped || pipe;
	f->readers++;
	if (begin_text(f, r, &err) != 0) {
		fail_err(ret, &err);
		uni_ftrace_reader_close(r);
		return;
	}
	ret->reader = r;
}

long uni_ftrace_read(struct uni_ftrace_reader *r, char *buf, size_t len)
{
	long n = uni_ftrace_text_read(r->text, buf, len);

	r->ended = n == 0;
	return n;
}

void uni_ftrace_reader_close(struct uni_ftrace_reader *r)
{
	if (r == NULL)
		return;
	if (r->pipe)
		r->f->piped = false;
	/* Text that a client did not fetch from the pipe is lost; the next client begins anew. */
	if (!r->ended || r->text != r->f->pipe) {
		if (r->text == r->f->pipe)
			r->f->pipe = NULL;
		uni_ftrace_text_destroy(r->text);
	}
	r->f->readers--;
	free(r);
}

/* "function\n" */
static bool parse_tracer(const char *body, size_t len, enum uni_ftrace_tracer *ret)
{
	while (len != 0 && (body[len - 1] == '\n' || body[len - 1] == '\r'))
		len--;
	for (unsigned i = 0; i < uni_array_len(tracers); i++) {
		if (strlen(tracers[i]) == len && memcmp(tracers[i], body, len) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static void write_tracer(
	struct uni_ftrace *f, const char *body, size_t len, struct uni_ftrace_reply *ret)
{
	enum uni_ftrace_tracer tracer;

	if (parse_tracer(body, len, &tracer))
		apply_ftrace(f, tracer, f->on, ret);
	else
		fail_reply(ret, 400, "tracers are nop, function and function_graph");
}

static void write_on(
	struct uni_ftrace *f, const char *body, size_t len, struct uni_ftrace_reply *ret)
{
	bool newline = len == 2 && body[1] == '\n';

	if ((len == 1 || newline) && (body[0] == '0' || body[0] == '1'))
		apply_ftrace(f, f->tracer, body[0] == '1', ret);
	else
		fail_reply(ret, 400, "write 0 or 1");
}

struct request {
	enum uni_ftrace_method method;
	const char *body;
	size_t len;
};

static void on_tracers(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	if (q->method != UNI_FTRACE_READ)
		fail_reply(ret, 405, "it can be read only");
	else
		uni_strbuf_adds(&ret->body, "nop function function_graph\n");
}

static void on_tracer(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	if (q->method == UNI_FTRACE_READ)
		uni_strbuf_addf(&ret->body, "%s\n", tracers[f->tracer]);
	else if (q->method == UNI_FTRACE_WRITE)
		write_tracer(f, q->body, q->len, ret);
	else
		fail_reply(ret, 405, "read or write it");
}

/* There is only one clock: writes are ignored, as in the original. */
static void on_clock(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	if (q->method == UNI_FTRACE_READ)
		uni_strbuf_adds(&ret->body, "x86-tsc\n");
}

static void on_tracing_on(
	struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	if (q->method == UNI_FTRACE_READ)
		uni_strbuf_adds(&ret->body, f->on ? "1\n" : "0\n");
	else if (q->method == UNI_FTRACE_WRITE)
		write_on(f, q->body, q->len, ret);
	else
		fail_reply(ret, 405, "read or write it");
}

static void on_enable(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	apply_ftrace(f, f->tracer, true, ret);
}

static void on_disable(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	apply_ftrace(f, f->tracer, false, ret);
}

static void on_trace(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	if (q->method == UNI_FTRACE_READ)
		open_reader(f, false, ret);
	else
		clear_trace(f, ret);
}

static void on_pipe(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret)
{
	if (q->method == UNI_FTRACE_READ)
		open_reader(f, true, ret);
	else
		fail_reply(ret, 400, "the pipe can be read only; write to trace to empty it");
}

static const struct {
	const char *path, *what;
	/*
	 * The effect of reading. CHANGE takes something away, or switches: for our user and root
	 * only. PLACE takes a reader's place.
	 */
	enum { NOTHING, PLACE, CHANGE } acts;
	void (*on)(struct uni_ftrace *f, const struct request *q, struct uni_ftrace_reply *ret);
} files[] = {
	{ "available_tracers", "the tracers there are", NOTHING, on_tracers },
	{ "current_tracer", "the one that is used; PUT another one's name", NOTHING, on_tracer },
	{ "trace_clock", "the clock of the time stamps", NOTHING, on_clock },
	{ "tracing_on", "1 while it records; PUT 0 or 1", NOTHING, on_tracing_on },
	{ "tracing_enable/on", "begin to record", CHANGE, on_enable },
	{ "tracing_enable/off", "end it", CHANGE, on_disable },
	{ "trace", "what was recorded; PUT anything, or DELETE, to forget it", PLACE, on_trace },
	{ "trace_pipe", "the same, each call once: what was read is gone", CHANGE, on_pipe },
};

static void list_files(struct uni_ftrace_reply *ret, bool html)
{
	if (html) {
		ret->type = "text/html; charset=utf-8";
		uni_strbuf_adds(&ret->body, "<!DOCTYPE html>\n<title>ftrace</title>\n"
					    "<h1>ftrace</h1>\n<table>\n");
	} else {
		uni_strbuf_adds(&ret->body, "ftrace files available:\n");
	}
	for (size_t i = 0; i < uni_array_len(files); i++) {
		if (html)
			uni_strbuf_addf(&ret->body, "<tr><td><a href=\"/ftrace/%s\">%s</a><td>%s\n",
				files[i].path, files[i].path, files[i].what);
		else
			uni_strbuf_addf(&ret->body, "\t%s\n", files[i].path);
	}
	if (html)
		uni_strbuf_adds(&ret->body, "</table>\n");
}

bool uni_ftrace_changes(enum uni_ftrace_method method, const char *path)
{
	size_t len = strlen(path);

	if (method == UNI_FTRACE_WRITE || method == UNI_FTRACE_CLEAR)
		return true;
	for (size_t i = 0; i < uni_array_len(files); i++) {
		size_t n = strlen(files[i].path);

		if (method == UNI_FTRACE_READ && files[i].acts == CHANGE && len >= n &&
			strcmp(path + len - n, files[i].path) == 0)
			return true;
	}
	return false;
}

void uni_ftrace_request(struct uni_ftrace *f, enum uni_ftrace_method method, const char *path,
	const char *body, size_t len, struct uni_ftrace_reply *ret)
{
	static const char base[] = "/ftrace/";
	struct request q = { method, body, len };
	const char *name = path + sizeof(base) - 1;

	*ret = (struct uni_ftrace_reply){ .status = 200, .type = "text/plain; charset=utf-8" };
	uni_strbuf_init(&ret->body);
	if (strcmp(path, "/") == 0 || strcmp(path, "/ftrace") == 0 || strcmp(path, base) == 0) {
		if (method == UNI_FTRACE_READ || method == UNI_FTRACE_HEAD)
			list_files(ret, path[1] == '\0');
		else
			fail_reply(ret, 405, "it can be read only");
		return;
	}
	if (strncmp(path, base, sizeof(base) - 1) != 0)
		name = "";
	for (size_t i = 0; i < uni_array_len(files); i++) {
		if (strcmp(files[i].path, name) != 0)
			continue;
		if (method == UNI_FTRACE_HEAD)
			q.method = UNI_FTRACE_READ;
		if (method != UNI_FTRACE_HEAD || files[i].acts == NOTHING)
			files[i].on(f, &q, ret);
		return;
	}
	fail_reply(ret, 404, "no such file; /ftrace lists them");
}
