/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/xen/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/privilege.h"
#include "backend/helper.h"
#include "backend/xen/uuid.h"

#define LOOK_MS	   200
#define START_MS   10000
#define FILE_START "xen-"

/*
 * Ends a hold whose owner cannot end it. The number may belong to another domain by now, or
 * somebody who saw the domain paused may have unpaused it.
 */
static bool unpause_domain(struct uni_xen_call *x, const struct uni_xen_state *s)
{
	struct uni_xen_dominfo d;

	return uni_xen_call_info(x, s->domid, &d) == 0 &&
	       memcmp(d.uuid, s->uuid, sizeof(d.uuid)) == 0 && d.paused && !d.dying &&
	       uni_xen_call_unpause(x, s->domid) == 0;
}

/* Ends a hold that lasts too long: its owner is stopped, or stuck. */
static void end_long_hold(struct uni_xen_call *x, struct uni_xen_state *s)
{
	uint64_t since = atomic_load(&s->since_ns);

	if (since == 0 || since == UINT64_MAX ||
		uni_now_ns() - since < UNI_XEN_HOLD_MS * UNI_NSEC_PER_MSEC)
		return;
	if (atomic_compare_exchange_strong(&s->since_ns, &since, UINT64_MAX))
		(void)unpause_domain(x, s);
}

static void keep_domain(struct uni_xen_call *x, struct uni_xen_keeper *k)
{
	uint64_t since;

	for (;;) {
		struct pollfd p = { .fd = k->sock, .events = POLLIN };
		int r = poll(&p, 1, LOOK_MS);

		if (r > 0 || (r < 0 && errno != EINTR))
			break; /* nothing is ever sent: the other side has ended */
		end_long_hold(x, k->state);
	}
	since = atomic_load(&k->state->since_ns);
	if (since != 0 && since != UINT64_MAX)
		(void)unpause_domain(x, k->state);
	atomic_store(&k->state->since_ns, 0);
	(void)unlink(k->path);
}

static _Noreturn void run_keeper(struct uni_xen_keeper *k, const struct uni_xen_module *m)
{
	struct uni_xen_call *x = NULL;
	int fd[] = { k->sock, k->fd }; /* the state file has the lock */
	char ok;

	uni_helper_begin("uni-guardian", fd, uni_array_len(fd));
	k->sock = fd[0];
	k->fd = fd[1];
	/* Opens its own connection, now: a dying parent's connection cannot be used. The rights to
	 * remove its file stay. */
	uni_confine_keep_xen();
	ok = uni_xen_call_open(m, &x, NULL) == 0 && uni_privilege_keep_connecting(NULL) == 0;
	if (send(k->sock, &ok, 1, MSG_NOSIGNAL) == 1 && ok)
		keep_domain(x, k);
	uni_xen_call_close(x);
	_exit(0);
}

static int open_state(struct uni_xen_keeper *k, const char *dir, const struct uni_xen_dominfo *d,
	struct uni_err *err)
{
	char uuid[UNI_XEN_UUID_TEXT];
	struct stat here, there;
	void *page;

	uni_xen_uuid_text(d->uuid, uuid);
	(void)snprintf(k->path, sizeof(k->path), "%.64s/" FILE_START "%u-%s", dir, d->domid, uuid);
	(void)mkdir(dir, 0700);
	k->fd = open(k->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->fd < 0)
		return uni_err_set(err, UNI_EIO,
			"xen: %s cannot be made (%s), and without it the domain could stay paused "
			"if uniscope is killed; --no-pause needs none",
			k->path, strerror(errno));
	/* Its last owner may have removed it in between. */
	if (flock(k->fd, LOCK_EX | LOCK_NB) != 0 || fstat(k->fd, &here) != 0 ||
		stat(k->path, &there) != 0 || here.st_ino != there.st_ino)
		return uni_err_set(err, UNI_EBUSY,
			"xen: another uniscope pauses domain %u: use --no-pause beside it",
			d->domid);
	if (ftruncate(k->fd, 0) != 0 || ftruncate(k->fd, sizeof(*k->state)) != 0)
		return uni_err_set(err, UNI_EIO, "xen: %s: %s", k->path, strerror(errno));
	page = mmap(NULL, sizeof(*k->state), PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
	if (page == MAP_FAILED)
		return uni_err_set(err, UNI_ENOMEM, "xen: %s: %s", k->path, strerror(errno));
	k->state = page;
	k->state->domid = d->domid;
	memcpy(k->state->uuid, d->uuid, sizeof(d->uuid));
	memcpy(k->state->magic, UNI_XEN_STATE_MAGIC, sizeof(k->state->magic));
	return 0;
}

static int start_child(
	struct uni_xen_keeper *k, const struct uni_xen_module *m, struct uni_err *err)
{
	int pair[2];
	char ok = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return uni_err_set(err, UNI_EIO, "xen: no socket pair: %s", strerror(errno));
	k->pid = fork();
	if (k->pid == 0) {
		(void)close(pair[0]);
		k->sock = pair[1];
		run_keeper(k, m);
	}
	(void)close(pair[1]);
	k->sock = pair[0];
	if (k->pid < 0)
		return uni_err_set(err, UNI_EIO, "xen: no process that could end a pause: %s",
			strerror(errno));
	if (poll(&(struct pollfd){ .fd = k->sock, .events = POLLIN }, 1, START_MS) != 1 ||
		recv(k->sock, &ok, 1, MSG_DONTWAIT) != 1 || !ok)
		return uni_err_set(
			err, UNI_EIO, "xen: the process that would end a pause did not start");
	return 0;
}

int uni_xen_keeper_start(struct uni_xen_keeper *k, const struct uni_xen_module *m, const char *dir,
	const struct uni_xen_dominfo *d, struct uni_err *err)
{
	int rc;

	*k = (struct uni_xen_keeper){ .fd = -1, .sock = -1 };
	rc = open_state(k, dir, d, err);
	if (rc == 0)
		rc = start_child(k, m, err);
	if (rc != 0)
		uni_xen_keeper_end(k);
	return rc;
}

void uni_xen_keeper_end(struct uni_xen_keeper *k)
{
	if (k->sock >= 0)
		(void)close(k->sock); /* the child removes the file */
	k->sock = -1;
	if (k->pid > 0)
		(void)waitpid(k->pid, NULL, 0);
	else if (k->state != NULL)
		(void)unlink(k->path);
	k->pid = 0;
	if (k->state != NULL)
		(void)munmap(k->state, sizeof(*k->state));
	k->state = NULL;
	if (k->fd >= 0)
		(void)close(k->fd);
	k->fd = -1;
}

bool uni_xen_keeper_alive(const struct uni_xen_keeper *k)
{
	char c;

	return k->sock >= 0 && recv(k->sock, &c, 1, MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EINTR);
}

static void cleanup_dir(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

/* Heals one file of the folder. True if a domain was unpaused. */
static bool heal_one(struct uni_xen_call *x, int dir, const char *name, uint32_t *last_ret)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct uni_xen_state s;
	bool healed = false;
	uint64_t since;

	/* Locked: its profiler or its keeper is alive. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
		return false;
	if (pread(fd, &s, sizeof(s), 0) == (ssize_t)sizeof(s) &&
		memcmp(s.magic, UNI_XEN_STATE_MAGIC, sizeof(s.magic)) == 0) {
		since = atomic_load(&s.since_ns);
		healed = since != 0 && since != UINT64_MAX && unpause_domain(x, &s);
	}
	(void)unlinkat(dir, name, 0);
	if (healed && last_ret != NULL)
		*last_ret = s.domid;
	return healed;
}

unsigned uni_xen_heal(struct uni_xen_call *x, const char *dir, uint32_t *last_ret)
{
	_cleanup_(cleanup_dir) DIR *d = opendir(dir);
	unsigned healed = 0;
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, FILE_START, sizeof(FILE_START) - 1) == 0)
			healed += heal_one(x, dirfd(d), e->d_name, last_ret);
	}
	return healed;
}
