/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites and control words, written by the guest itself: it checks that the place is a site, with
 * the expected bytes. Each request is all or nothing. If a later request is refused, the earlier
 * ones are undone.
 */
#include <string.h>

#include "base/checked.h"
#include "backend/stream/stream.h"

static void fill_patch(struct uni_stream_patch *to, const struct uni_patch *p, bool back)
{
	*to = (struct uni_stream_patch){ .va = p->va, .len = p->len };
	memcpy(to->old_bytes, back ? p->new_bytes : p->old_bytes, sizeof(to->old_bytes));
	memcpy(to->new_bytes, back ? p->old_bytes : p->new_bytes, sizeof(to->new_bytes));
}

/* Patches [first, first + nr) of the job, at most UNI_STREAM_PATCH_MAX. */
static int ask_to_patch(struct uni_stream_target *t, const struct uni_patch *p, size_t nr,
	bool back, struct uni_stream_patched *ret)
{
	struct uni_stream_patch body[UNI_STREAM_PATCH_MAX];
	int rc;

	for (size_t i = 0; i < nr; i++)
		fill_patch(&body[i], &p[i], back);
	rc = uni_link_ask(&t->link, UNI_STREAM_PATCH, body, nr * sizeof(body[0]));
	*ret = (struct uni_stream_patched){ 0 };
	if (t->link.body_size == sizeof(*ret))
		memcpy(ret, t->link.body, sizeof(*ret));
	else if (rc == 0)
		rc = -UNI_EPROTO;
	return rc;
}

int uni_stream_set_word(struct uni_stream_target *t, uint64_t va, uint32_t value)
{
	struct uni_patch p = { .va = va, .len = 4 };
	struct uni_stream_patched done;
	uint32_t was;
	int rc = uni_link_read(&t->link, va, &was, sizeof(was));

	memcpy(p.old_bytes, &was, sizeof(was));
	memcpy(p.new_bytes, &value, sizeof(value));
	return rc == 0 ? ask_to_patch(t, &p, 1, false, &done) : rc;
}

static void take_back(struct uni_stream_target *t, const struct uni_patch *p, size_t nr)
{
	struct uni_stream_patched done;

	for (size_t at = 0; at < nr; at += UNI_STREAM_PATCH_MAX) {
		if (ask_to_patch(t, p + at, uni_min(nr - at, UNI_STREAM_PATCH_MAX), true, &done) !=
			0)
			return;
	}
}

int uni_stream_write_text(struct uni_target *base, struct uni_patch_job *job)
{
	struct uni_stream_target *t = (struct uni_stream_target *)base;
	size_t at = 0;
	int rc = 0;

	while (rc == 0 && at < job->nr) {
		size_t nr = uni_min(job->nr - at, UNI_STREAM_PATCH_MAX);
		struct uni_stream_patched done;

		rc = ask_to_patch(t, job->patch + at, nr, false, &done);
		if (rc == 0) {
			job->nr_written += done.nr_written;
			at += nr;
		} else {
			job->bad = at + uni_min((size_t)done.bad, nr - 1);
		}
	}
	for (size_t i = 0; rc == 0 && i < job->nr; i++)
		job->nr_written -= job->patch[i].any && job->nr_written != 0;
	if (rc != 0) {
		take_back(t, job->patch, at);
		job->nr_written = 0;
	}
	return rc;
}
