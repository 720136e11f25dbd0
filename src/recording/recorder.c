/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a session being recorded: session.json, symbols, metadata; streams: writer.c. */
#include "recording/recording.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/sink.h"
#include "obj/usym.h"
#include "recording/ctf_trace.h"
#include "recording/folder.h"
#include "recording/sjson.h"
#include "recording/ring_stream.h"
#include "recording/writer.h"

#define THREADS_OLD_NS \
	UNI_NSEC_PER_SEC /* new threads are in session.json after this at the latest */

/* The thread that created the recorder owns everything except the writer and the guests' threads.
 * The lock is for these threads, and for the one that writes session.json. */
struct uni_recorder {
	char *path;
	int dir_fd, reserve_fd;
	struct uni_session session;
	struct uni_writer *writer;
	struct uni_tstream *trace[UNI_GUEST_MAX]; /* NULL: none */
	pthread_mutex_t lock;
	atomic_uint_least64_t unsaved_ns; /* since when there are threads that session.json lacks;
					     0: there are none */
};

static int write_session(struct uni_recorder *r, bool durable, struct uni_err *err)
{
	int rc;

	(void)pthread_mutex_lock(&r->lock);
	atomic_store(&r->unsaved_ns, 0);
	rc = uni_session_write(r->dir_fd, r->path, &r->session, durable, err);
	(void)pthread_mutex_unlock(&r->lock);
	return rc;
}

static void recorder_free(struct uni_recorder *r)
{
	uni_writer_destroy(r->writer);
	for (uint32_t i = 0; i < r->session.nr_guests; i++)
		uni_tstream_destroy(r->trace[i]);
	if (r->reserve_fd >= 0)
		(void)close(r->reserve_fd);
	if (r->dir_fd >= 0)
		(void)close(r->dir_fd);
	uni_session_deinit(&r->session);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->path);
	free(r);
}

/* RFC 4122, section 4.4: random. */
static int make_uuid(uint8_t uuid[UNI_CTF_UUID], struct uni_err *err)
{
	if (getrandom(uuid, UNI_CTF_UUID, 0) != UNI_CTF_UUID)
		return uni_err_set(err, UNI_EIO, "no random numbers: %s", strerror(errno));
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

/* RFC 9562, section 5.8: our own, by the image. So the same run gives the same bytes. */
static void derive_uuid(const char *image_id, uint8_t uuid[UNI_CTF_UUID])
{
	const uint64_t half[2] = { uni_hash_bytes(image_id, strlen(image_id), 0),
		uni_hash_bytes(image_id, strlen(image_id), 1) };

	memcpy(uuid, half, UNI_CTF_UUID);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static int write_metadata(const struct uni_recorder *r, uint32_t guest, struct uni_err *err)
{
	const struct uni_session_guest *g = r->session.guest[guest];
	_cleanup_strbuf_ struct uni_strbuf shown, text;
	struct uni_sink *out = NULL;
	char name[64];
	int rc;

	(void)snprintf(name, sizeof(name), UNI_SDIR_GUEST "/metadata", guest);
	uni_strbuf_init(&shown);
	uni_strbuf_init(&text);
	uni_strbuf_addf(&shown, "%s/%s", r->path, name);
	uni_ctf_metadata(&text, g->uuid, g->meta.realtime_offset_ns);
	if (g->meta.trace.nr_cpus != 0)
		uni_ctf_metadata_trace(&text, &g->meta.trace, g->meta.realtime_offset_ns);
	if (uni_strbuf_failed(&shown) || uni_strbuf_failed(&text))
		return uni_err_nomem(err);
	rc = uni_sink_open_below(r->dir_fd, name, shown.s, &out, err);
	if (rc < 0)
		return rc;
	uni_sink_write(out, text.s, text.len);
	return uni_sink_close(out, err);
}

static int check_meta(
	const struct uni_session *s, const struct uni_record_meta *meta, struct uni_err *err)
{
	uint32_t nr_vcpus = meta->nr_vcpus;

	if (meta->nr_vcpus == 0 || meta->nr_vcpus > UNI_VCPU_MAX)
		return uni_err_set(err, UNI_EINVAL, "a recording has 1 to %d vCPUs, not %u",
			UNI_VCPU_MAX, meta->nr_vcpus);
	if (meta->image_id[0] != '\0' && !uni_session_id_ok(meta->image_id))
		return uni_err_set(err, UNI_EINVAL, "image id '%s' is not hex", meta->image_id);
	if (s->nr_guests == UNI_GUEST_MAX)
		return uni_err_set(
			err, UNI_EINVAL, "a session holds at most %d guests", UNI_GUEST_MAX);
	for (uint32_t i = 0; i < s->nr_guests; i++)
		nr_vcpus += s->guest[i]->meta.nr_vcpus; /* the writer knows of those that came */
	if (nr_vcpus > UNI_SESSION_VCPUS_MAX)
		return uni_err_set(err, UNI_EINVAL, "a session holds at most %d vCPUs in all",
			UNI_SESSION_VCPUS_MAX);
	return 0;
}

/* Into memory only: session.json is the caller's next step. */
static int begin_guest(
	struct uni_recorder *r, const struct uni_record_meta *meta, struct uni_err *err)
{
	int rc = check_meta(&r->session, meta, err);
	struct uni_session_guest *g;

	if (rc < 0)
		return rc;
	(void)pthread_mutex_lock(&r->lock);
	g = uni_session_add_guest(&r->session);
	(void)pthread_mutex_unlock(&r->lock);
	if (g == NULL)
		return uni_err_nomem(err);
	g->meta = *meta;
	g->meta.trace = (struct uni_record_trace){ 0 };
	if (!uni_record_trace_copy(&g->meta.trace, &meta->trace))
		return uni_err_nomem(err);
	if (!meta->repeatable)
		return make_uuid(g->uuid, err);
	derive_uuid(meta->image_id, g->uuid);
	return 0;
}

/* The streams of the guest that was begun. */
static int open_guest(struct uni_recorder *r, struct uni_err *err)
{
	uint32_t number = r->session.nr_guests - 1;
	const struct uni_session_guest *g = r->session.guest[number];
	int rc = uni_sdir_add_guest(r->path, r->dir_fd, number, err);

	/* session.json first: whatever happens next, the folder can be recognised as ours. */
	if (rc == 0)
		rc = write_session(r, true, err);
	if (rc == 0)
		rc = write_metadata(r, number, err);
	if (rc == 0)
		rc = uni_writer_add_guest(
			r->writer, g->meta.nr_vcpus, g->uuid, g->meta.exits_every != 0, err);
	return rc;
}

int uni_recorder_create(const char *path, const struct uni_record_meta *meta, bool overwrite,
	struct uni_recorder **ret, struct uni_err *err)
{
	struct uni_recorder *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return uni_err_nomem(err);
	r->dir_fd = r->reserve_fd = -1;
	(void)pthread_mutex_init(&r->lock, NULL);
	r->path = strdup(path);
	rc = r->path != NULL ? begin_guest(r, meta, err) : uni_err_nomem(err);
	if (rc == 0)
		rc = uni_sdir_create(path, overwrite, &r->dir_fd, err);
	if (rc == 0)
		rc = uni_sdir_reserve(r->dir_fd, path, &r->reserve_fd, err);
	if (rc == 0)
		rc = uni_writer_create(r->dir_fd, &r->writer, err);
	if (rc == 0)
		rc = open_guest(r, err);
	if (rc < 0) {
		if (r->dir_fd >= 0)
			uni_sdir_abandon(path, r->dir_fd);
		recorder_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int uni_recorder_add_guest(struct uni_recorder *r, const struct uni_record_meta *meta,
	uint32_t *guest_ret, struct uni_err *err)
{
	uint32_t number = r->session.nr_guests;
	int rc = begin_guest(r, meta, err);

	if (rc == 0)
		rc = open_guest(r, err);
	if (rc < 0 && r->session.nr_guests > number)
		free(r->session.guest[--r->session.nr_guests]);
	if (rc == 0)
		*guest_ret = number;
	return rc;
}

int uni_recorder_add_image(
	struct uni_recorder *r, uint32_t guest, const struct uni_image *img, struct uni_err *err)
{
	struct uni_symtab *symtab = NULL;
	int rc = uni_symtab_of_image(img, &symtab, err);

	if (rc == 0)
		rc = uni_recorder_add_symtab(r, guest, symtab, err);
	uni_symtab_destroy(symtab);
	return rc;
}

static int write_symbols(
	const struct uni_recorder *r, const struct uni_symtab *symtab, struct uni_err *err)
{
	const char *id = uni_symtab_id(symtab);

	if (!uni_session_id_ok(id))
		return uni_err_set(err, UNI_EINVAL, "image id '%s' is not hex", id);
	return uni_sdir_add_symbols(r->path, r->dir_fd, symtab, err);
}

int uni_recorder_add_symtab(struct uni_recorder *r, uint32_t guest, const struct uni_symtab *symtab,
	struct uni_err *err)
{
	struct uni_record_meta *m = &r->session.guest[guest]->meta;
	const char *id = uni_symtab_id(symtab);
	int rc = write_symbols(r, symtab, err);

	if (rc < 0 || strcmp(m->image_id, id) == 0)
		return rc;
	(void)snprintf(m->image_id, sizeof(m->image_id), "%s", id);
	(void)snprintf(m->image_path, sizeof(m->image_path), "%s", uni_symtab_path(symtab));
	return write_session(r, true, err);
}

/* The first one that a guest has is its main one. False: it has as many as there may be. */
static bool put_more(struct uni_record_meta *m, const struct uni_symtab *symtab, uint64_t bias)
{
	struct uni_record_image *more = &m->more[m->nr_more];

	if (m->image_id[0] == '\0') {
		m->bias = bias;
		(void)snprintf(m->image_id, sizeof(m->image_id), "%s", uni_symtab_id(symtab));
		(void)snprintf(m->image_path, sizeof(m->image_path), "%s", uni_symtab_path(symtab));
		return true;
	}
	if (m->nr_more == UNI_IMAGES_MAX - 1)
		return false;
	m->nr_more++;
	more->bias = bias;
	(void)snprintf(more->id, sizeof(more->id), "%s", uni_symtab_id(symtab));
	(void)snprintf(more->path, sizeof(more->path), "%s", uni_symtab_path(symtab));
	return true;
}

int uni_recorder_add_more_symtab(struct uni_recorder *r, uint32_t guest,
	const struct uni_symtab *symtab, uint64_t bias, struct uni_err *err)
{
	int rc = write_symbols(r, symtab, err);
	bool ok = true;

	if (rc == 0) {
		(void)pthread_mutex_lock(&r->lock);
		ok = put_more(&r->session.guest[guest]->meta, symtab, bias);
		(void)pthread_mutex_unlock(&r->lock);
	}
	if (!ok)
		rc = uni_err_set(err, UNI_ERANGE, "a guest has at most %d images", UNI_IMAGES_MAX);
	return rc == 0 ? write_session(r, true, err) : rc;
}

int uni_recorder_add_more(struct uni_recorder *r, uint32_t guest, const struct uni_image *img,
	uint64_t bias, struct uni_err *err)
{
	struct uni_symtab *symtab = NULL;
	int rc = uni_symtab_of_library(img, &symtab, err);

	if (rc == 0)
		rc = uni_recorder_add_more_symtab(r, guest, symtab, bias, err);
	uni_symtab_destroy(symtab);
	return rc;
}

static bool add_thread(struct uni_session_guest *g, const struct uni_record_thread *thread)
{
	size_t cap = g->cap_thread != 0 ? 2 * g->cap_thread : 16;

	if (thread->id != g->nr_thread + 1 || g->nr_thread == UNI_SESSION_THREADS_MAX)
		return false;
	if (g->nr_thread == g->cap_thread) {
		struct uni_record_thread *v = reallocarray(g->thread, cap, sizeof(*v));

		if (v == NULL)
			return false;
		g->thread = v;
		g->cap_thread = cap;
	}
	g->thread[g->nr_thread++] = *thread;
	return true;
}

int uni_recorder_thread(
	struct uni_recorder *r, uint32_t guest, const struct uni_record_thread *thread)
{
	uint64_t none = 0;
	bool ok;

	(void)pthread_mutex_lock(&r->lock);
	ok = add_thread(r->session.guest[guest], thread);
	(void)pthread_mutex_unlock(&r->lock);
	(void)atomic_compare_exchange_strong(&r->unsaved_ns, &none, uni_now_ns());
	return ok ? 0 : -UNI_ENOMEM;
}

/* A recorder that is killed leaves the names of all but its newest threads. */
static void save_threads(struct uni_recorder *r)
{
	uint64_t since_ns = atomic_load(&r->unsaved_ns);

	if (since_ns != 0 && uni_now_ns() - since_ns >= THREADS_OLD_NS)
		(void)write_session(
			r, false, NULL); /* closing tries again, and reports the error */
}

void uni_recorder_sample(struct uni_recorder *r, const struct uni_sample *s)
{
	uni_writer_sample(r->writer, s);
	save_threads(r);
}

void uni_recorder_exit(struct uni_recorder *r, const struct uni_stream_exit *e)
{
	uni_writer_exit(r->writer, e);
}

int uni_recorder_trace(
	struct uni_recorder *r, uint32_t guest, struct uni_tstream **ret, struct uni_err *err)
{
	const struct uni_session_guest *g = r->session.guest[guest];
	int rc = 0;

	if (r->trace[guest] == NULL)
		rc = uni_tstream_create(
			r->dir_fd, guest, g->uuid, &g->meta.trace.info, &r->trace[guest], err);
	if (rc == 0)
		*ret = r->trace[guest];
	return rc;
}

/* The last small files fit onto a full disk. */
static void recorder_give_room(struct uni_recorder *r)
{
	if (r->reserve_fd >= 0)
		(void)close(uni_take_fd(&r->reserve_fd));
}

int uni_recorder_set_trace(struct uni_recorder *r, uint32_t guest,
	const struct uni_record_trace *trace, struct uni_err *err)
{
	int rc;

	if (!uni_record_trace_copy(&r->session.guest[guest]->meta.trace, trace))
		return uni_err_nomem(err);
	recorder_give_room(r);
	rc = write_metadata(r, guest, err);
	return rc == 0 ? write_session(r, true, err) : rc;
}

int uni_recorder_save(struct uni_recorder *r, struct uni_err *err)
{
	return write_session(r, true, err);
}

uint64_t uni_recorder_lost(struct uni_recorder *r)
{
	return uni_writer_total(r->writer).lost;
}

int uni_recorder_flush(struct uni_recorder *r, struct uni_err *err)
{
	int rc = uni_writer_flush(r->writer);

	return rc == 0 ? 0
		       : uni_err_set(err, UNI_EIO, "cannot write %s: %s", r->path, strerror(-rc));
}

/* Writes a summary of the session, by weight, with the words and numbers of a report. */
static int write_result(const struct uni_recorder *r, int rc, struct uni_err *err)
{
	uint64_t weight = 0, lost = 0;

	if (rc == 0)
		return 0;
	for (uint32_t i = 0; i < r->session.nr_guests; i++) {
		weight += r->session.guest[i]->stats.weight;
		lost += r->session.guest[i]->stats.lost;
	}
	return uni_err_set(err, UNI_EIO,
		"cannot write %s: %s; %llu samples lost, the %llu that were written can be read",
		r->path, strerror(-rc), (unsigned long long)lost, (unsigned long long)weight);
}

/* Takes the guest's result, but keeps the counts of what was written. */
static void take_result(struct uni_recorder *r, uint32_t guest, const struct uni_guest_result *from)
{
	struct uni_writer_count c = uni_writer_count(r->writer, guest);
	struct uni_session_guest *g = r->session.guest[guest];

	if (from != NULL) {
		g->stats = *from->stats;
		if (from->failed != NULL)
			(void)snprintf(g->meta.failed, sizeof(g->meta.failed), "%s", from->failed);
		if (from->why != NULL)
			(void)snprintf(g->meta.why, sizeof(g->meta.why), "%s", from->why);
		/* Not freed, nor written to: the writer of JSON only reads. */
		g->watch = (struct uni_watch *)(uintptr_t)from->watch;
		g->nr_watch = from->nr_watch;
		g->meta.nr_gap = uni_min(from->nr_gap, (uint32_t)UNI_GAPS_MAX);
		for (uint32_t i = 0; i < g->meta.nr_gap; i++)
			g->meta.gap[i] = from->gap[i];
		if (from->work != NULL)
			g->meta.work = *from->work;
	}
	g->meta.nr_vcpus = uni_max(g->meta.nr_vcpus, uni_writer_nr_vcpus(r->writer, guest));
	g->stats.nr_times = uni_min(g->stats.nr_times, g->meta.nr_vcpus);
	g->stats.samples = c.written;
	g->stats.weight -= uni_min(g->stats.weight, c.lost);
	g->stats.lost += c.lost;
	g->stats.exits = c.exits;
	g->stats.exits_lost += c.exits_lost;
}

int uni_recorder_close(struct uni_recorder *r, const struct uni_guest_result *result, size_t nr,
	struct uni_err *err)
{
	int rc = uni_writer_stop(r->writer), rc_json;

	for (uint32_t i = 0; i < r->session.nr_guests; i++)
		take_result(r, i, i < nr ? &result[i] : NULL);
	rc = write_result(r, rc, err);
	r->session.closed = true;
	recorder_give_room(r);
	rc_json = write_session(r, true, rc == 0 ? err : NULL);
	recorder_free(r);
	return rc < 0 ? rc : rc_json;
}
