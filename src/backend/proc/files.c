/* SPDX-License-Identifier: BSD-2-Clause */
/* The files with code that a process has mapped, and their places. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "backend/proc/proc.h"
#include "backend/vmm/maps.h"

static const char vdso[] = "[vdso]"; /* code that the kernel maps into each process */

struct line {
	uint64_t start, size, offset;
	char perms[5], range[36]; /* "start-end" */
	char *path;		  /* points into the text; "[vdso]" is no file */
	bool deleted;		  /* or replaced: another file may have the path by now */
};

/* "start-end perms offset device inode   path": the kernel wrote it. */
static bool parse_line(char *text, struct line *ret)
{
	static const char deleted[] = " (deleted)";
	size_t len;
	char *at;

	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(ret->range, sizeof(ret->range), "%.*s", (int)strcspn(text, " "), text);
	ret->start = strtoull(text, &at, 16);
	ret->size = *at == '-' ? strtoull(at + 1, &at, 16) - ret->start : 0;
	at = strchr(at, ' ');
	if (at == NULL || strlen(at) < 7)
		return false;
	memcpy(ret->perms, at + 1, 4);
	ret->perms[4] = '\0';
	ret->offset = strtoull(at + 6, NULL, 16);
	ret->path = strchr(at, '/');
	if (ret->path == NULL)
		ret->path = strstr(at, vdso);
	if (ret->path == NULL)
		return false;
	len = strlen(ret->path);
	ret->deleted = len >= sizeof(deleted) &&
		       strcmp(ret->path + len - (sizeof(deleted) - 1), deleted) == 0;
	if (ret->deleted)
		ret->path[len - (sizeof(deleted) - 1)] = '\0';
	return true;
}

static bool is_there(const char *path, struct stat *ret)
{
	return uni_door_fstatat(AT_FDCWD, path, ret, 0) == 0;
}

/* The path under which this process can open the file: the other process may have another root. */
static void path_for_us(int pid, const char *path, char *out, size_t cap)
{
	struct stat own, theirs;

	(void)snprintf(out, cap, "/proc/%d/root%s", pid, path);
	if (is_there(path, &own) && is_there(out, &theirs) && own.st_ino == theirs.st_ino &&
		own.st_dev == theirs.st_dev)
		(void)snprintf(out, cap, "%s", path);
}

void uni_proc_exe(int pid, char *out, size_t cap)
{
	char link[48], path[4096];
	struct stat exe, file;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = uni_door_readlinkat(AT_FDCWD, link, path, sizeof(path) - 1);
	out[0] = '\0';
	if (n <= 0)
		return;
	path[n] = '\0';
	path_for_us(pid, path, out, cap);
	/* A deleted or replaced file can still be read through the link. */
	if (is_there(link, &exe) &&
		(!is_there(out, &file) || exe.st_ino != file.st_ino || exe.st_dev != file.st_dev))
		(void)snprintf(out, cap, "%s", link);
}

int uni_proc_files(struct uni_target *base, uni_target_file_fn fn, void *ctx)
{
	const struct uni_proc *p = (const struct uni_proc *)base;
	_cleanup_close_ int fd = -1;
	_cleanup_fclose_ FILE *f = NULL;
	char maps[48], ours[4200], last[4096] = "";
	_cleanup_free_ char *text = NULL;
	uint64_t begin = 0; /* of the file named last */
	size_t cap = 0;
	struct line l;
	bool given = true;

	(void)snprintf(maps, sizeof(maps), "/proc/%d/maps", p->pid);
	fd = uni_door_openat(AT_FDCWD, maps, O_RDONLY | O_CLOEXEC, 0);
	f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (f == NULL)
		return -UNI_EGONE;
	(void)uni_take_fd(&fd);
	while (getline(&text, &cap, f) > 0) {
		if (!parse_line(text, &l))
			continue;
		if (l.offset == 0 || strcmp(l.path, last) != 0) {
			(void)snprintf(last, sizeof(last), "%s", l.path);
			begin = l.start;
			given = l.offset != 0; /* without its headers the file is of no use */
		}
		if (given || l.perms[2] != 'x')
			continue;
		given = true;
		if (strcmp(l.path, vdso) == 0) {
			fn(ctx, NULL, l.path, uni_gva_of(begin), l.size);
			continue;
		}
		if (l.deleted)
			(void)snprintf(
				ours, sizeof(ours), "/proc/%d/map_files/%s", p->pid, l.range);
		else
			path_for_us(p->pid, l.path, ours, sizeof(ours));
		fn(ctx, ours, l.deleted ? l.path : ours, uni_gva_of(begin), 0);
	}
	return 0;
}

int uni_proc_mapped(struct uni_target *base, uni_target_range_fn fn, void *ctx)
{
	const struct uni_proc *p = (const struct uni_proc *)base;
	_cleanup_maps_ struct uni_vmm_maps maps = { 0 };

	if (uni_vmm_maps_read(p->pid, &maps, NULL) != 0)
		return -UNI_EGONE;
	uni_vec_foreach (m, &maps.m) {
		if (m->readable && m->writable && uni_vmm_map_may_be_ram(m))
			fn(ctx, m->start, m->size);
	}
	return 0;
}
