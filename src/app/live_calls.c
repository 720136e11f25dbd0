/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/live_calls.h"

#include <stdlib.h>

#include "recording/follow_calls.h"
#include "recording/call_input.h"
#include "trace/calls.h"

struct uni_live_calls {
	struct uni_tfollow *follow;
	struct uni_calls_filter filter;
	struct uni_funcs *funcs;
	struct uni_calls *calls;
	struct uni_timeline tl;
	struct uni_page_calls *page;
};

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_live_calls *c = ctx;

	return uni_calls_read(c->calls, ret, nr_ret);
}

static const char *func_name(void *ctx, uint32_t func)
{
	struct uni_live_calls *c = ctx;

	return uni_funcs_name(c->funcs, func);
}

static uint64_t damaged_bytes(void *ctx)
{
	return uni_calls_stats(((struct uni_live_calls *)ctx)->calls)->damaged;
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	struct uni_live_calls *c = ctx;

	return uni_calls_thread_name(c->calls, thread, number_ret);
}

static int open_all(struct uni_live_calls *c, const struct uni_recording *rec, uint32_t guest,
	const struct uni_source_args *args, struct uni_symtab *symtab, uint64_t patience_ns,
	struct uni_err *err)
{
	const struct uni_recorded_guest g = uni_recording_guest(rec, guest);
	const struct uni_funcs_naming naming = { .mangled = args->build.naming.mangled,
		.symtab = symtab != NULL ? symtab : g.symtab,
		.bias = g.meta->bias };
	int rc = uni_tfollow_open(rec, guest, patience_ns, &c->follow, err);

	if (rc != 0)
		return rc;
	c->filter = (struct uni_calls_filter){ .cpu = args->build.filter.vcpu };
	c->funcs = uni_funcs_create(&naming);
	if (c->funcs == NULL)
		return uni_err_nomem(err);
	return uni_calls_open(uni_tfollow_input(c->follow), &c->filter, c->funcs, &c->calls, err);
}

int uni_live_calls_open(const struct uni_recording *rec, const struct uni_source_args *args,
	struct uni_symtab *symtab, const struct uni_page_whole *whole, uint64_t patience_ns,
	struct uni_live_calls **ret, struct uni_err *err)
{
	struct uni_live_calls *c;
	uint32_t guest;
	int rc = uni_tinput_find(rec, &guest, err);

	if (rc != 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return uni_err_nomem(err);
	rc = open_all(c, rec, guest, args, symtab, patience_ns, err);
	if (rc == 0) {
		c->tl = (struct uni_timeline){ .ctx = c,
			.read = read_calls,
			.func = func_name,
			.thread = thread_name,
			.damaged = damaged_bytes };
		c->page = uni_page_calls_create(&c->tl, whole);
		if (c->page == NULL)
			rc = uni_err_nomem(err);
	}
	if (rc != 0) {
		uni_live_calls_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void uni_live_calls_close(struct uni_live_calls *c)
{
	if (c == NULL)
		return;
	uni_page_calls_destroy(c->page);
	uni_calls_close(c->calls);
	uni_funcs_destroy(c->funcs);
	uni_tfollow_close(c->follow);
	free(c);
}

int uni_live_calls_look(struct uni_live_calls *c, struct uni_err *err)
{
	struct uni_call_event *end = NULL;
	uint64_t until;
	size_t nr = 0;
	int rc = uni_tfollow_look(c->follow, &until, err);

	if (rc == 0)
		rc = uni_calls_grown(c->calls, until);
	if (rc == 0)
		rc = uni_page_calls_read(c->page);
	if (rc == 0)
		rc = uni_calls_ends(c->calls, &end, &nr);
	if (rc == 0)
		rc = uni_page_calls_end(c->page, end, nr);
	free(end);
	return rc;
}

struct uni_page_calls *uni_live_calls_page(const struct uni_live_calls *c)
{
	return c->page;
}
