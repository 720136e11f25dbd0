/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/outdir.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "recording/recording.h"
#include "recording/sjson.h"

#define GUEST_NAME    32 /* bytes of a guest's folder name */
#define RESERVE_BYTES 65536

static void cleanup_closedir(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool uni_sdir_is_file(const char *sub, const char *name)
{
	if (sub == NULL)
		return strcmp(name, UNI_SDIR_JSON) == 0 || has_prefix(name, UNI_SDIR_JSON ".tmp-");
	if (strcmp(sub, UNI_SDIR_SYMBOLS) == 0)
		return uni_glob_match("*.usym", name) || uni_glob_match("*.usym.tmp-*", name);
	return strcmp(name, "metadata") == 0 || has_prefix(name, "metadata.tmp-") ||
	       has_prefix(name, "samples-vcpu") || has_prefix(name, "exits-vcpu") ||
	       has_prefix(name, "events-vcpu") || strcmp(name, "exact") == 0;
}

static void guest_name(char ret[GUEST_NAME], unsigned guest)
{
	(void)snprintf(ret, GUEST_NAME, UNI_SDIR_GUEST, guest);
}

bool uni_sdir_is_folder(const char *name)
{
	char guest[GUEST_NAME];

	for (unsigned i = 0; i < UNI_GUEST_MAX; i++) {
		guest_name(guest, i);
		if (strcmp(name, guest) == 0)
			return true;
	}
	return strcmp(name, UNI_SDIR_SYMBOLS) == 0;
}

/* An entry that keeps the folder from being replaced; its name for the message. */
static int refuse_stranger(const char *path, const char *sub, const char *name, struct uni_err *err)
{
	return uni_err_set(err, UNI_EBUSY,
		"cannot replace %s: it holds %s%s%s, which is not part of a session; move that "
		"away or record to another name",
		path, sub != NULL ? sub : "", sub != NULL ? "/" : "", name);
}

/* Looks (remove false) or removes in one folder of the session. sub NULL: the session itself. */
static int sweep_one(
	const char *path, int dir_fd, const char *sub, bool remove_them, struct uni_err *err)
{
	_cleanup_(cleanup_closedir) DIR *d = NULL;
	int fd = uni_door_openat(dir_fd, sub != NULL ? sub : ".",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct dirent *e;

	if (fd < 0 && errno == ENOENT && sub != NULL)
		return 0;
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (d == NULL) {
		int rc =
			uni_err_set(err, UNI_EIO, "cannot look into %s: %s", path, strerror(errno));

		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while ((e = readdir(d)) != NULL) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (sub == NULL && uni_sdir_is_folder(e->d_name))
			continue;
		if (!uni_sdir_is_file(sub, e->d_name) ||
			uni_door_fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(st.st_mode))
			return refuse_stranger(path, sub, e->d_name, err);
		/* session.json stays until the new one takes its name: always one of ours. */
		if (!remove_them || strcmp(e->d_name, UNI_SDIR_JSON) == 0)
			continue;
		if (uni_door_unlinkat(dirfd(d), e->d_name, 0) != 0)
			return uni_err_set(err, UNI_EIO, "cannot remove %s of %s: %s", e->d_name,
				path, strerror(errno));
	}
	return 0;
}

static int sweep_folder(const char *path, int dir_fd, bool remove_them, struct uni_err *err)
{
	int rc = sweep_one(path, dir_fd, NULL, remove_them, err);

	if (rc == 0)
		rc = sweep_one(path, dir_fd, UNI_SDIR_SYMBOLS, remove_them, err);
	for (unsigned i = 0; rc == 0 && i < UNI_GUEST_MAX; i++) {
		char guest[GUEST_NAME];

		guest_name(guest, i);
		rc = sweep_one(path, dir_fd, guest, remove_them, err);
		if (rc == 0 && remove_them)
			(void)uni_door_unlinkat(dir_fd, guest, AT_REMOVEDIR);
	}
	return rc;
}

/* A recorder that was killed before it wrote session.json leaves an empty folder, or some of our
 * files. */
static bool is_begun(const char *path, int dir_fd)
{
	struct uni_err err = { 0 };
	struct stat st;

	return uni_door_fstatat(dir_fd, UNI_SDIR_JSON, &st, AT_SYMLINK_NOFOLLOW) != 0 &&
	       errno == ENOENT && sweep_folder(path, dir_fd, false, &err) == 0;
}

static int replace_session(const char *path, int dir_fd, struct uni_err *err)
{
	int rc;

	if (!uni_session_is_one(dir_fd) && !is_begun(path, dir_fd))
		return uni_err_set(err, UNI_EBUSY,
			"%s exists and is not a session: it is left alone; record to another name",
			path);
	rc = sweep_folder(path, dir_fd, false, err);
	return rc < 0 ? rc : sweep_folder(path, dir_fd, true, err);
}

static int cannot_make(const char *path, int e, struct uni_err *err)
{
	return uni_err_set(err, e == EACCES || e == EPERM || e == EROFS ? UNI_EPERM : UNI_EIO,
		"cannot make the session folder %s: %s", path, strerror(e));
}

/* One recorder a folder: two would mix their packets. */
static int lock_session(const char *path, int fd, struct uni_err *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return uni_err_set(err, UNI_EBUSY,
			"%s is being recorded by another process; record to another name", path);
	return 0; /* file systems without locks are no reason to refuse */
}

/* With privileges, no recording goes into a folder that others can change. */
static int check_owner(const char *path, int fd, struct uni_err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return cannot_make(path, errno, err);
	if (uni_outdir_is_open(&st))
		return uni_err_set(err, UNI_EPERM,
			"%s is a folder that another user can change: record to another name",
			path);
	return 0;
}

static int open_old(const char *path, const struct uni_outdir *at, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = uni_door_openat(
		at->fd, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return uni_err_set(err, UNI_EBUSY,
			"%s exists and is no folder: it is left alone; record to another name",
			path);
	rc = check_owner(path, fd, err);
	if (rc == 0)
		rc = lock_session(path, fd, err);
	if (rc == 0)
		rc = replace_session(path, fd, err);
	if (rc == 0)
		*fd_ret = uni_take_fd(&fd);
	return rc;
}

static int open_new(const char *path, const struct uni_outdir *at, bool overwrite, int *fd_ret,
	struct uni_err *err)
{
	int fd = uni_outdir_make(at->fd, at->name);

	if (fd == -EEXIST && overwrite)
		return open_old(path, at, fd_ret, err);
	if (fd == -EEXIST)
		return uni_err_set(err, UNI_EBUSY,
			"%s exists: give another name, or --overwrite to replace it", path);
	if (fd < 0)
		return cannot_make(path, -fd, err);
	*fd_ret = fd;
	return lock_session(path, fd, err);
}

int uni_sdir_create(const char *path, bool overwrite, int *fd_ret, struct uni_err *err)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	_cleanup_close_ int fd = -1;
	int rc;

	if (path[0] == '\0' || strcmp(path, "-") == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"a session is a folder: '%s' cannot be its name; try -o NAME.uniscope",
			path);
	rc = uni_outdir_open(AT_FDCWD, path, false, &at, err);
	if (rc == 0)
		rc = open_new(path, &at, overwrite, &fd, err);
	if (rc < 0)
		return rc;
	if (uni_door_mkdirat(fd, UNI_SDIR_SYMBOLS, 0700) != 0 && errno != EEXIST)
		return cannot_make(path, errno, err);
	*fd_ret = uni_take_fd(&fd);
	return 0;
}

void uni_sdir_remove(const char *path)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	_cleanup_close_ int fd = -1;
	struct uni_err err = { 0 };

	if (uni_outdir_open(AT_FDCWD, path, false, &at, &err) != 0 ||
		open_old(path, &at, &fd, &err) != 0)
		return;
	(void)uni_door_unlinkat(fd, UNI_SDIR_SYMBOLS, AT_REMOVEDIR);
	(void)uni_door_unlinkat(fd, UNI_SDIR_JSON, 0);
	(void)uni_door_unlinkat(at.fd, at.name, AT_REMOVEDIR);
}

void uni_sdir_abandon(const char *path, int fd)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	struct uni_err err = { 0 };

	if (sweep_folder(path, fd, true, &err) != 0 ||
		uni_outdir_open(AT_FDCWD, path, false, &at, &err) != 0)
		return;
	(void)uni_door_unlinkat(fd, UNI_SDIR_SYMBOLS, AT_REMOVEDIR);
	(void)uni_door_unlinkat(fd, UNI_SDIR_JSON, 0);
	(void)uni_door_unlinkat(at.fd, at.name, AT_REMOVEDIR);
}

/* A file without a name that takes so many bytes; negative: errno says why not. */
static int take_room(int fd, uint64_t bytes)
{
	int room = uni_door_openat(fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int e = room >= 0 ? posix_fallocate(room, 0, (off_t)bytes) : 0;

	if (e == 0)
		return room;
	(void)close(room);
	errno = e;
	return -1;
}

int uni_sdir_reserve(int fd, const char *path, int *reserve_ret, struct uni_err *err)
{
	*reserve_ret = take_room(fd, RESERVE_BYTES);
	if (*reserve_ret >= 0 || (errno != ENOSPC && errno != EDQUOT))
		return 0;
	return uni_err_set(err, UNI_EIO,
		"cannot write %s: %s; a session begins with %d KiB of free space", path,
		strerror(errno), RESERVE_BYTES / 1024);
}

int uni_sdir_room(int fd, uint64_t bytes)
{
	return take_room(fd, bytes);
}

bool uni_sdir_room_grow(int room, uint64_t now, uint64_t bytes)
{
	if (posix_fallocate(room, 0, (off_t)bytes) == 0)
		return true;
	/* A part of it is of no use. */
	(void)!ftruncate(room, (off_t)now);
	return false;
}

int uni_sdir_open(const char *path, int *fd_ret, struct uni_err *err)
{
	int fd = uni_door_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0)
		return uni_err_set(err,
			errno == ENOENT	  ? UNI_ENOENT
			: errno == EACCES ? UNI_EPERM
					  : UNI_EIO,
			"cannot open %s: %s", path, strerror(errno));
	*fd_ret = fd;
	return 0;
}

int uni_sdir_add_guest(const char *path, int fd, unsigned guest, struct uni_err *err)
{
	char name[GUEST_NAME];

	guest_name(name, guest);
	if (uni_door_mkdirat(fd, name, 0700) != 0 && errno != EEXIST)
		return cannot_make(path, errno, err);
	return 0;
}

int uni_sdir_add_symbols(
	const char *path, int fd, const struct uni_symtab *symtab, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name, shown;

	uni_strbuf_init(&name);
	uni_strbuf_init(&shown);
	uni_strbuf_addf(&name, "%s/%s.usym", UNI_SDIR_SYMBOLS, uni_symtab_id(symtab));
	uni_strbuf_addf(&shown, "%s/%s", path, name.s);
	if (uni_strbuf_failed(&name) || uni_strbuf_failed(&shown))
		return uni_err_nomem(err);
	return uni_symtab_write_below(symtab, fd, name.s, shown.s, err);
}

unsigned uni_sdir_nr_vcpus(int fd, unsigned guest, unsigned least)
{
	char samples[64], exits[64];

	for (unsigned v = UNI_VCPU_MAX; v > least; v--) {
		struct stat st;

		(void)snprintf(samples, sizeof(samples), UNI_SDIR_STREAM, guest, v - 1);
		(void)snprintf(exits, sizeof(exits), UNI_SDIR_EXITS, guest, v - 1);
		if (uni_door_fstatat(fd, samples, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
			uni_door_fstatat(fd, exits, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return v;
	}
	return least;
}
