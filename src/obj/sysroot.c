/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/sysroot.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "obj/headers.h"

#define DEPTH_MAX   24
#define ENTRIES_MAX 200000u /* in all directories together */

struct entry {
	char *path;
	uint8_t id[UNI_BUILD_ID_MAX];
	size_t len; /* 0: it has no build-id */
};

struct uni_sysroot {
	UNI_VEC(struct entry) file;
	unsigned seen; /* directory entries */
};

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Takes over fd. */
static int add_file(struct uni_sysroot *s, int fd, const char *path)
{
	struct entry e = { 0 };
	bool any;

	e.len = uni_file_build_id(fd, e.id);
	any = e.len != 0 || is_elf(fd);
	(void)close(fd);
	if (!any)
		return 0;
	e.path = strdup(path);
	if (e.path == NULL || !uni_vec_push(&s->file, e)) {
		free(e.path);
		return -UNI_ENOMEM;
	}
	return 0;
}

static void close_dir(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

static int add_dir(struct uni_sysroot *s, int fd, struct uni_strbuf *path, unsigned depth);

/* The kernel's own file systems: they have no images, reading has effects, and /proc has no end. */
static bool is_pseudo(int fd)
{
	static const unsigned long types[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC,
		TRACEFS_MAGIC, SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		BPF_FS_MAGIC, DEVPTS_SUPER_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if ((unsigned long)fs.f_type == types[i])
			return true;
	}
	return false;
}

/* Takes over fd, which may be of any kind. */
static int add_path(struct uni_sysroot *s, int fd, struct uni_strbuf *path, unsigned depth)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return add_file(s, fd, path->s);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && depth < DEPTH_MAX && !is_pseudo(fd))
		return add_dir(s, fd, path, depth + 1);
	(void)close(fd);
	return 0;
}

static int add_dir(struct uni_sysroot *s, int fd, struct uni_strbuf *path, unsigned depth)
{
	_cleanup_(close_dir) DIR *d = fdopendir(fd);
	size_t len = path->len;
	struct dirent *e;
	int rc = 0;

	if (d == NULL) {
		(void)close(fd);
		return 0;
	}
	while (rc == 0 && s->seen < ENTRIES_MAX && (e = readdir(d)) != NULL) {
		int one;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		s->seen++;
		/*
		 * Files that cannot be opened are ignored; O_NONBLOCK keeps pipes from making us
		 * wait.
		 */
		one = uni_door_openat(dirfd(d), e->d_name,
			O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
				(e->d_type == DT_LNK ? 0 : O_NOFOLLOW),
			0);
		if (one < 0)
			continue;
		uni_strbuf_addf(path, "/%s", e->d_name);
		if (e->d_type ==
			DT_LNK) /* a link may lead to a file, but is not followed to a folder */
			rc = add_path(s, one, path, DEPTH_MAX);
		else
			rc = add_path(s, one, path, depth);
		path->len = len;
		path->s[len] = '\0';
	}
	return rc != 0 || uni_strbuf_failed(path) ? -UNI_ENOMEM : 0;
}

int uni_sysroot_open(const char *path, struct uni_sysroot **ret, struct uni_err *err)
{
	struct uni_sysroot *s = calloc(1, sizeof(*s));
	_cleanup_strbuf_ struct uni_strbuf name;
	int fd, rc;

	uni_strbuf_init(&name);
	if (s == NULL)
		return uni_err_nomem(err);
	fd = uni_door_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0) {
		free(s);
		return uni_err_set(err, errno == ENOENT ? UNI_ENOENT : UNI_EIO,
			"cannot open %s: %s", path, strerror(errno));
	}
	uni_strbuf_adds(&name, path);
	rc = add_path(s, fd, &name, 0);
	if (rc != 0) {
		uni_sysroot_close(s);
		return uni_err_set(err, UNI_ENOMEM, "out of memory looking through %s", path);
	}
	*ret = s;
	return 0;
}

void uni_sysroot_close(struct uni_sysroot *s)
{
	if (s == NULL)
		return;
	uni_vec_foreach (e, &s->file) {
		free(e->path);
	}
	uni_vec_free(&s->file);
	free(s);
}

size_t uni_sysroot_nr(const struct uni_sysroot *s)
{
	return s->file.nr;
}

const char *uni_sysroot_find(
	const struct uni_sysroot *s, const uint8_t *build_id, size_t len, size_t i)
{
	for (size_t k = 0; k < s->file.nr; k++) {
		const struct entry *e = &s->file.v[k];

		if (e->len == len && memcmp(e->id, build_id, len) == 0 && i-- == 0)
			return e->path;
	}
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* The number of characters that two paths have in common at their ends. */
static size_t common_end(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b), n = 0;

	while (n < x && n < y && a[x - n - 1] == b[y - n - 1])
		n++;
	return n;
}

const char *uni_sysroot_find_name(const struct uni_sysroot *s, const char *path)
{
	const char *name = base_name(path), *best = NULL;
	size_t most = 0;

	for (size_t k = 0; name[0] != '\0' && k < s->file.nr; k++) {
		const char *own = s->file.v[k].path;
		size_t n = common_end(own, path);

		if (strcmp(base_name(own), name) == 0 && n > most) {
			best = own;
			most = n;
		}
	}
	return best;
}
