/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/mprof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/vec.h"
#include "app/attach.h"
#include "app/resolve.h"
#include "app/term.h"
#include "app/tracing_session.h"
#include "backend/shared.h"

#define PACKET	  (1u << 20)
#define FILE_MAX  (UINT64_C(4) << 30)
#define SEARCH_NS (8 * UNI_NSEC_PER_SEC)

/* --- a ring as the guest grants it -------------------------------------------------------------
 */

static int save_ring(
	const uint8_t *ring, size_t size, const char *folder, char **path_ret, struct uni_err *err)
{
	struct uni_strbuf path;
	struct uni_sink *out;
	int rc;

	uni_strbuf_init(&path);
	uni_strbuf_addf(&path, "%s/guest.ctf", folder);
	*path_ret = uni_strbuf_detach(&path);
	if (*path_ret == NULL)
		return uni_err_nomem(err);
	rc = uni_sink_open_file(*path_ret, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, ring, size);
	return uni_sink_close(out, err);
}

/* Nothing of the guest is stopped for this, nor need it run. -UNI_ENOENT: it grants none. */
static int take_granted(
	const struct uni_spec *given, const char *folder, char **path_ret, struct uni_err *err)
{
	static const struct uni_way_wish wish = { .no_pause = true };
	const struct uni_target_ops *ops = uni_target_backend(given->scheme);
	_cleanup_free_ uint8_t *ring = NULL;
	struct uni_attach_opts opts = { 0 };
	struct uni_spec spec = *given;
	struct uni_way_key key = { 0 };
	struct uni_target *t;
	size_t size;
	int rc = 0;

	if (ops == NULL || ops->granted == NULL)
		return uni_err_set(err, UNI_ENOENT, "%s: only domains of Xen grant it", spec.text);
	if (ops->choose_key != NULL)
		ops->choose_key(&spec, &wish, &key);
	if (key.key != NULL)
		rc = uni_spec_add(&spec, key.key, key.value, err);
	if (rc == 0)
		rc = uni_target_attach(&spec, &opts, &t, err);
	if (rc != 0)
		return rc;
	rc = ops->granted(t, "mprof", &ring, &size, err);
	uni_target_detach(t);
	return rc != 0 ? rc : save_ring(ring, size, folder, path_ret, err);
}

/* --- uniscope's own ring -----------------------------------------------------------------------
 */

/* It may have calls alone. */
static int check_threads(const char *path, struct uni_err *err)
{
	const struct uni_promises_args args = { 0 };
	struct uni_promise_builder *b = uni_promise_builder_create();
	struct uni_input in;
	int rc = b == NULL ? uni_err_nomem(err) : uni_input_open(path, FILE_MAX, &in, err);

	if (rc == 0) {
		uni_note_hush(true); /* whoever converts it tells of its losses */
		rc = uni_promises_read(b, path, &in, &args, err);
		uni_note_hush(false);
		uni_input_close(&in);
	}
	if (rc == 0 && uni_promise_builder_finish(b)->all.nr == 0)
		rc = uni_err_set(err, UNI_ENOENT, "it has no events of threads");
	uni_promise_builder_destroy(b);
	return rc;
}

static int take_own(const struct uni_attach_args *how, const struct uni_opt_list *images,
	const char *folder, char **path_ret, struct uni_err *err)
{
	const struct uni_tracing_args args = {
		.rest_ok = true, .reads_only = true, .shared = how->shared, .images = *images
	};
	struct uni_tracing t;
	struct uni_strbuf path;
	int rc;

	uni_strbuf_init(&path);
	uni_strbuf_addf(&path, "%s/guest.uniscope", folder);
	*path_ret = uni_strbuf_detach(&path);
	if (*path_ret == NULL)
		return uni_err_nomem(err);
	rc = uni_tracing_open(&t, how->target, &args, err);
	if (rc != 0)
		return rc;
	rc = uni_tracing_write(&t,
		&(struct uni_tracing_session){
			.output = *path_ret, .snapshot = true, .quiet = true },
		err);
	uni_tracing_close(&t);
	return rc == 0 ? check_threads(*path_ret, err) : rc;
}

/* --- a ring of mirage-profile in memory ---------------------------------------------------------
 */

struct search {
	struct uni_gmem *gmem;
	struct uni_mirage_memory memory;
	struct uni_mirage_found best;
	uint64_t until_ns;
	int rc;
};

static int read_guest(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct search *s = ctx;

	return uni_gmem_read(s->gmem, uni_gpa_of(addr), buf, len);
}

static bool is_over(void *ctx)
{
	const struct search *s = ctx;

	return uni_now_ns() >= s->until_ns;
}

static void search_range(void *ctx, uint64_t start, uint64_t size)
{
	struct search *s = ctx;

	if (s->rc == 0)
		s->rc = uni_mirage_search(&s->memory, start, size, &s->best);
}

/* Physical memory needs no page tables: a ring lies there in one piece, as a unikernel maps it. */
static int search_all(struct search *s, struct uni_target *t)
{
	if (uni_gmem_space(s->gmem) == UNI_GMEM_VIRTUAL && t->ops->mapped != NULL)
		return t->ops->mapped(t, search_range, s);
	if (uni_gmem_space(s->gmem) == UNI_GMEM_VIRTUAL)
		return -UNI_ENOTSUP;
	for (size_t i = 0; i < uni_gmem_nr_regions(s->gmem); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(s->gmem, i);

		search_range(s, r->start, r->size);
	}
	return s->rc;
}

static int copy_found(struct search *s, const char *folder, char **path_ret, struct uni_err *err)
{
	_cleanup_free_ uint8_t *ring = malloc((size_t)s->best.size);
	int rc;

	if (ring == NULL)
		return uni_err_nomem(err);
	rc = uni_gmem_read(s->gmem, uni_gpa_of(s->best.addr), ring, (size_t)s->best.size);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"the ring at 0x%" PRIx64 " cannot be read: %s", s->best.addr,
			uni_strerror(rc));
	uni_note("found a ring of MirageOS in the guest's memory, at 0x%" PRIx64 ": %" PRIu64
		 " byte%s",
		s->best.addr, s->best.size, uni_plural(s->best.size));
	return save_ring(ring, (size_t)s->best.size, folder, path_ret, err);
}

static int search_memory(
	const struct uni_attach_args *how, const char *folder, char **path_ret, struct uni_err *err)
{
	const struct uni_attach_args args = { .target = how->target,
		.shared = how->shared,
		.method = "pause",
		.no_samples = true,
		.rest_ok = true,
		.no_image_ok = true };
	_cleanup_free_ struct uni_guest *g = calloc(1, sizeof(*g));
	struct search s = { .until_ns = uni_now_ns() + SEARCH_NS };
	int rc;

	if (g == NULL)
		return uni_err_nomem(err);
	uni_note_hush(true); /* what it says was said when its own ring was looked for */
	rc = uni_guest_open(g, &args, err);
	uni_note_hush(false);
	if (rc != 0)
		return rc;
	s.gmem = g->t->ops->gmem(g->t);
	s.memory = (struct uni_mirage_memory){ read_guest, is_over, &s };
	rc = search_all(&s, g->t);
	if (rc == -UNI_ENOTSUP)
		rc = uni_err_set(err, UNI_ENOTSUP,
			"this target's memory cannot be looked through for a ring of MirageOS");
	else if (rc != 0)
		rc = uni_err_set(err, (enum uni_errcode) - rc, "cannot look through memory: %s",
			uni_strerror(rc));
	else if (s.best.size == 0)
		rc = uni_err_set(err, UNI_ENOENT, "none lies in its memory%s",
			is_over(&s) ? ", as far as it was looked through in 8 s" : "");
	else
		rc = copy_found(&s, folder, path_ret, err);
	uni_guest_close(g);
	return rc;
}

static int take_any(const struct uni_spec *spec, const struct uni_attach_args *how,
	const struct uni_opt_list *images, const char *folder, char **path_ret, struct uni_err *err)
{
	struct uni_err granted = { 0 }, own = { 0 }, found = { 0 };
	int rc = take_granted(spec, folder, path_ret, &granted);

	if (rc == 0)
		return 0;
	if (rc != -UNI_ENOENT) {
		*err = granted;
		return rc;
	}
	if (take_own(how, images, folder, path_ret, &own) == 0)
		return 0;
	free(*path_ret);
	*path_ret = NULL;
	rc = search_memory(how, folder, path_ret, &found);
	if (rc == 0)
		return 0;
	return uni_err_set(err, (enum uni_errcode) - rc,
		"no ring of MirageOS: %.250s; uniscope's own: %.200s", found.msg, own.msg);
}

int uni_mprof_fetch(const char *target, const struct uni_opt_list *images, const char *folder,
	char **path_ret, struct uni_err *err)
{
	struct uni_target_shared *shared = uni_target_shared_create();
	struct uni_attach_args how = { .shared = shared, .once = true };
	struct uni_spec spec;
	int rc = shared != NULL ? uni_guest_resolve(target, &spec, err) : uni_err_nomem(err);

	*path_ret = NULL;
	uni_confine_output(folder);
	if (rc == 0)
		rc = uni_guest_give_up_rights(&spec, &how, err);
	how.target = spec.text;
	if (rc == 0)
		rc = take_any(&spec, &how, images, folder, path_ret, err);
	uni_target_shared_destroy(shared);
	return rc;
}

/* --- as packets ---------------------------------------------------------------------------------
 */

struct conversion {
	struct uni_mirage_writer *w;
	struct uni_mirage_ids *ids;
	uint64_t last_ns;
};

static int put_event(void *arg, const struct uni_promise_event *event)
{
	struct conversion *c = arg;
	struct uni_promise_event e = *event;
	bool keep;
	int rc = uni_mirage_ids_replace(c->ids, &e, &keep);

	if (rc != 0 || !keep || e.time < c->last_ns)
		return rc;
	c->last_ns = e.time;
	return uni_mirage_writer_add(c->w, &e);
}

/* Every event in one row: the format has no CPUs. */
static int convert_trace(const char *path, const struct uni_promises_args *args,
	struct uni_sink *out, struct uni_err *err)
{
	struct conversion c = { .ids = uni_mirage_ids_create() };
	int rc =
		c.ids == NULL ? uni_err_nomem(err) : uni_mirage_writer_open(out, PACKET, &c.w, err);

	if (rc == 0) {
		rc = uni_promises_each(path, args, put_event, &c, err);
		(void)uni_mirage_writer_close(c.w, NULL);
	}
	uni_mirage_ids_destroy(c.ids);
	/* The caller that closes the sink reports a failed write. */
	return rc == -UNI_EIO && err->code == 0 ? 0 : rc;
}

int uni_mprof_write(const char *path, const struct uni_promises_args *args, bool as_it_is,
	struct uni_sink *out, struct uni_err *err)
{
	struct uni_input in;
	int rc = uni_input_open(path, FILE_MAX, &in, err);

	if (rc != 0)
		return rc;
	if (in.folder == NULL && (as_it_is || uni_mirage_is(in.data, in.size)))
		uni_sink_write(out, in.data, in.size);
	else
		rc = convert_trace(path, args, out, err);
	uni_input_close(&in);
	return rc;
}
