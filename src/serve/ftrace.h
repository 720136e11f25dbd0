/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host serves the files that Nanos serves below /ftrace/. It makes them from the guest's rings:
 * the current tracer, whether it records, and the recorded trace as text. One thread; no sockets
 * here (serve/httpd.h has them).
 *
 * `trace` shows what is kept and does not consume it; several readers at once are possible.
 * `trace_pipe` gives each call once, and continues with the stacks that the previous reader left.
 */
#ifndef UNI_SERVE_FTRACE_H
#define UNI_SERVE_FTRACE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "trace/funcs.h"
#include "trace/input.h"

enum uni_ftrace_tracer {
	UNI_FTRACE_NOP,
	UNI_FTRACE_FUNCTION,
	UNI_FTRACE_GRAPH,
};

/* The guest. Each returns 0, or -UNI_E* with err saying why. */
struct uni_ftrace_ops {
	/*
	 * From now on traces these functions, recording or not. 1: poll starts anew from here on,
	 * and the records before are left out.
	 */
	int (*apply)(void *ctx, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err);
	/*
	 * Gives the records since the last call, also from sub-buffers that are still written.
	 * Takes a short time only.
	 */
	int (*poll)(void *ctx, uni_ring_packet_fn fn, void *arg, struct uni_err *err);
};

struct uni_ftrace_cfg {
	const struct uni_ftrace_ops *ops;
	void *ctx;
	const struct uni_ring_info *info;      /* of the rings */
	const struct uni_trace_clock *clock;   /* [info->nr_cpus], or NULL: one counter for all */
	const struct uni_funcs_naming *naming; /* NULL: addresses */
	enum uni_ftrace_tracer tracer;	       /* at first, while not recording */
	bool on;			       /* it records already */
	size_t max_bytes;		       /* for the trace that is kept */
	unsigned max_readers;		       /* at the same time */
};

struct uni_ftrace;	  /* opaque */
struct uni_ftrace_reader; /* opaque: a text that is being read */

int uni_ftrace_create(
	const struct uni_ftrace_cfg *cfg, struct uni_ftrace **ret, struct uni_err *err);
/* Call it after the last reader was closed. NULL-safe. */
void uni_ftrace_destroy(struct uni_ftrace *f);
/* Takes new records from the rings, so that the rings do not overrun. Call it often. */
int uni_ftrace_poll(struct uni_ftrace *f, struct uni_err *err);
/* Somebody else switched tracing off: nothing is recorded until a client switches it on again. */
void uni_ftrace_stopped(struct uni_ftrace *f);
bool uni_ftrace_is_on(const struct uni_ftrace *f);

enum uni_ftrace_method {
	UNI_FTRACE_READ,  /* GET */
	UNI_FTRACE_HEAD,  /* as READ, but without effect: no reader, no switch */
	UNI_FTRACE_WRITE, /* PUT, POST */
	UNI_FTRACE_CLEAR, /* DELETE */
};

struct uni_ftrace_reply {
	unsigned status; /* of HTTP */
	const char *type;
	struct uni_strbuf body;		  /* the reply, if reader is NULL */
	struct uni_ftrace_reader *reader; /* the caller closes it */
};

#define UNI_FTRACE_BODY_MAX 64 /* longest body of a valid request, in bytes */

/* Would it change the recording, or what is kept of it? */
bool uni_ftrace_changes(enum uni_ftrace_method method, const char *path);

/* Always initialises ret; the caller calls deinit on its body. */
void uni_ftrace_request(struct uni_ftrace *f, enum uni_ftrace_method method, const char *path,
	const char *body, size_t len, struct uni_ftrace_reply *ret);

/* Reads up to len bytes. Returns 0 at the end, or -UNI_ENOMEM. Does a bounded amount of work. */
long uni_ftrace_read(struct uni_ftrace_reader *r, char *buf, size_t len);
void uni_ftrace_reader_close(struct uni_ftrace_reader *r); /* at any time; NULL-safe */

#endif
