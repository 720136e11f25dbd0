/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Nanos serves below /ftrace/, served by the host from the guest's rings: which tracer runs,
 * whether it records, and what was recorded as text. One thread; no sockets in here (serve/httpd.h
 * has them).
 *
 * `trace` shows what there is and keeps it, for as many readers as there are at once. `trace_pipe`
 * gives each call once, and goes on with the stacks as the reader before left them.
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
	/* From now on these functions are traced, and recorded or not. 1: what poll gives from now
	 * on begins anew, and what was recorded before is left out. */
	int (*apply)(void *ctx, enum uni_ftrace_tracer tracer, bool on, struct uni_err *err);
	/* Gives what was recorded since, also of sub-buffers that are still written. Never long. */
	int (*poll)(void *ctx, uni_ring_packet_fn fn, void *arg, struct uni_err *err);
};

struct uni_ftrace_cfg {
	const struct uni_ftrace_ops *ops;
	void *ctx;
	const struct uni_ring_info *info;      /* of the rings */
	const struct uni_trace_clock *clock;   /* [info->nr_cpus], or NULL: one counter for all */
	const struct uni_funcs_naming *naming; /* NULL: addresses */
	enum uni_ftrace_tracer tracer;	       /* at first, not recording */
	bool on;			       /* it records already */
	size_t max_bytes;		       /* of the trace that is kept */
	unsigned max_readers;		       /* at once */
};

struct uni_ftrace;	  /* opaque */
struct uni_ftrace_reader; /* opaque: a text on its way */

int uni_ftrace_create(
	const struct uni_ftrace_cfg *cfg, struct uni_ftrace **ret, struct uni_err *err);
/* After its last reader was closed. NULL-safe. */
void uni_ftrace_destroy(struct uni_ftrace *f);
/* Takes what is new from the rings, so that they do not overrun. To be called often. */
int uni_ftrace_poll(struct uni_ftrace *f, struct uni_err *err);
/* Somebody else switched it off: nothing is recorded until it is asked for again. */
void uni_ftrace_stopped(struct uni_ftrace *f);
bool uni_ftrace_is_on(const struct uni_ftrace *f);

enum uni_ftrace_method {
	UNI_FTRACE_READ,  /* GET */
	UNI_FTRACE_HEAD,  /* what READ would say of it, and does nothing: no reader, no switch */
	UNI_FTRACE_WRITE, /* PUT, POST */
	UNI_FTRACE_CLEAR, /* DELETE */
};

struct uni_ftrace_reply {
	unsigned status; /* of HTTP */
	const char *type;
	struct uni_strbuf body;		  /* unless there is a reader */
	struct uni_ftrace_reader *reader; /* the caller's to close */
};

#define UNI_FTRACE_BODY_MAX 64 /* bytes of a request's body that make sense */

/* Would it change what is recorded, or what is kept of it? */
bool uni_ftrace_changes(enum uni_ftrace_method method, const char *path);

/* ret is made here in any case; deinit its body. */
void uni_ftrace_request(struct uni_ftrace *f, enum uni_ftrace_method method, const char *path,
	const char *body, size_t len, struct uni_ftrace_reply *ret);

/* Up to len bytes; 0 at the end; -UNI_ENOMEM. A bounded piece of work. */
long uni_ftrace_read(struct uni_ftrace_reader *r, char *buf, size_t len);
void uni_ftrace_reader_close(struct uni_ftrace_reader *r); /* at any time; NULL-safe */

#endif
