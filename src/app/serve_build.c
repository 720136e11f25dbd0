/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/serve_build.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "app/page.h"
#include "app/page_live.h"
#include "app/term.h"
#include "page/store.h"

enum state { IDLE, ASKED, WORKING, DONE };

struct uni_page_builder {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked;
	int fd;
	bool ends;
	enum state state;
	struct uni_builder_job job;
	char *path;		     /* the job's */
	struct uni_source_args args; /* of live; the thread's, both */
	struct uni_page_live *live;
	struct uni_built *built; /* of DONE, NULL: it failed */
	struct uni_err err;
};

void uni_built_free(void *arg)
{
	struct uni_built *built = arg;

	if (built == NULL)
		return;
	uni_strbuf_deinit(&built->data);
	uni_page_store_destroy(built->store);
	free(built);
}

/* Keeps the data that was read as long as the session grows, and reads only new data. */
static int build_live(struct uni_page_builder *b, const struct uni_builder_job *job,
	struct uni_built *built, struct uni_err *err)
{
	int rc = -UNI_ENOTSUP;

	if (!job->grows) {
		uni_page_live_destroy(b->live);
		b->live = NULL;
		return rc;
	}
	b->args = job->args;
	if (b->live == NULL)
		b->live = uni_page_live_create(&b->args, &job->whole);
	if (b->live != NULL)
		rc = uni_page_live_build(b->live, job->args.path, job->title, &built->data, err);
	return rc;
}

static struct uni_built *build_page(
	struct uni_page_builder *b, struct uni_builder_job *job, struct uni_err *err)
{
	struct uni_built *built = calloc(1, sizeof(*built));
	uint64_t begin_ns = uni_now_ns();
	int rc;

	if (built == NULL) {
		(void)uni_err_nomem(err);
		return NULL;
	}
	uni_strbuf_init(&built->data);
	uni_note_hush(job->hush);
	rc = build_live(b, job, built, err);
	if (rc == -UNI_ENOTSUP) {
		*err = (struct uni_err){ 0 };
		uni_strbuf_reset(&built->data);
		rc = uni_page_build(
			&job->args, job->title, &job->whole, &built->data, &built->store, err);
	}
	built->took_ns = uni_now_ns() - begin_ns;
	if (rc == 0)
		return built;
	uni_built_free(built);
	return NULL;
}

static void *build_asked_pages(void *arg)
{
	struct uni_page_builder *b = arg;
	struct uni_built *built;
	struct uni_err err;

	(void)pthread_mutex_lock(&b->lock);
	for (;;) {
		while (b->state != ASKED && !b->ends)
			(void)pthread_cond_wait(&b->asked, &b->lock);
		if (b->ends)
			break;
		b->state = WORKING;
		(void)pthread_mutex_unlock(&b->lock);
		err = (struct uni_err){ 0 };
		built = build_page(b, &b->job, &err);
		(void)pthread_mutex_lock(&b->lock);
		b->built = built;
		b->err = err;
		b->state = DONE;
		(void)eventfd_write(b->fd, 1);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return NULL;
}

int uni_page_builder_start(struct uni_page_builder **ret, struct uni_err *err)
{
	struct uni_page_builder *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return uni_err_nomem(err);
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&b->lock, NULL);
	(void)pthread_cond_init(&b->asked, NULL);
	if (b->fd < 0 || pthread_create(&b->thread, NULL, build_asked_pages, b) != 0) {
		if (b->fd >= 0)
			(void)close(b->fd);
		free(b);
		return uni_err_set(err, UNI_EIO, "cannot start a thread: %s", strerror(errno));
	}
	*ret = b;
	return 0;
}

void uni_page_builder_stop(struct uni_page_builder *b)
{
	if (b == NULL)
		return;
	(void)pthread_mutex_lock(&b->lock);
	b->ends = true;
	(void)pthread_cond_signal(&b->asked);
	(void)pthread_mutex_unlock(&b->lock);
	(void)pthread_join(b->thread, NULL);
	uni_built_free(b->built);
	uni_page_live_destroy(b->live);
	free(b->path);
	(void)close(b->fd);
	(void)pthread_mutex_destroy(&b->lock);
	(void)pthread_cond_destroy(&b->asked);
	free(b);
}

int uni_page_builder_fd(const struct uni_page_builder *b)
{
	return b->fd;
}

bool uni_page_builder_is_busy(struct uni_page_builder *b)
{
	bool busy;

	(void)pthread_mutex_lock(&b->lock);
	busy = b->state != IDLE;
	(void)pthread_mutex_unlock(&b->lock);
	return busy;
}

void uni_page_builder_begin(struct uni_page_builder *b, const struct uni_builder_job *job)
{
	(void)pthread_mutex_lock(&b->lock);
	b->job = *job;
	/* The caller may begin another session meanwhile. */
	if (job->args.in == NULL) {
		free(b->path);
		b->path = strdup(job->args.path);
		b->job.args.path = b->path != NULL ? b->path : "";
	}
	b->state = ASKED;
	(void)pthread_cond_signal(&b->asked);
	(void)pthread_mutex_unlock(&b->lock);
}

int uni_page_builder_take(struct uni_page_builder *b, struct uni_built **ret, struct uni_err *err)
{
	eventfd_t n;
	int rc = 0;

	(void)eventfd_read(b->fd, &n);
	(void)pthread_mutex_lock(&b->lock);
	if (b->state == DONE) {
		b->state = IDLE;
		*ret = b->built;
		b->built = NULL;
		if (*ret == NULL)
			*err = b->err;
		rc = *ret != NULL ? 1 : -b->err.code;
	}
	(void)pthread_mutex_unlock(&b->lock);
	return rc;
}
