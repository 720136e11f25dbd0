/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder that `uftrace record` made: the nanoseconds that each function took itself, below its
 * callers, and how long it did not run. Calls with arguments (record -A, -R) cannot be read, and
 * calls in the kernel (record -k) are not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "format/uftrace/data_read.h"

#define FILE_MAX ((size_t)1 << 32)

struct reader {
	const char *path;
	struct uni_uftrace_syms syms;
	struct uni_uftrace_events events;
	struct uni_stack stack;
	struct uni_import_stats stats;
	struct uni_err *err;
};

static int read_part(struct reader *r, const char *name, char **data, size_t *size)
{
	_cleanup_strbuf_ struct uni_strbuf path;

	uni_strbuf_init(&path);
	uni_strbuf_addf(&path, "%s/%s", r->path, name);
	if (uni_strbuf_failed(&path))
		return uni_err_nomem(r->err);
	return uni_read_regular(path.s, FILE_MAX, data, size, r->err);
}

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);

	return n > t && strcmp(s + n - t, tail) == 0;
}

static int read_map(struct reader *r, const char *name)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = ends_with(name, ".map") ? read_part(r, name, &data, &size) : 0;

	if (data != NULL && !uni_uftrace_map(&r->syms, data, size))
		rc = uni_err_nomem(r->err);
	return rc;
}

/* "app.sym" has the symbols of the image that is mapped as ".../app". */
static int read_sym(struct reader *r, const char *name)
{
	_cleanup_free_ char *data = NULL;
	uint64_t base = UINT64_MAX;
	size_t size, len = strlen(name) - strlen(".sym");
	int rc;

	if (!ends_with(name, ".sym"))
		return 0;
	for (size_t i = 0; i < r->syms.maps.nr; i++) {
		const char *path = uni_strtab_get(r->syms.strings, r->syms.maps.v[i].path);
		const char *slash = strrchr(path, '/');

		if (slash != NULL && strlen(slash + 1) == len &&
			memcmp(slash + 1, name, len) == 0 && r->syms.maps.v[i].start < base)
			base = r->syms.maps.v[i].start;
	}
	if (base == UINT64_MAX)
		return 0;
	rc = read_part(r, name, &data, &size);
	if (rc == 0 && !uni_uftrace_sym(&r->syms, base, data, size))
		rc = uni_err_nomem(r->err);
	return rc;
}

static int read_perf(struct reader *r, const char *name)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = 0;

	if (ends_with(name, ".dat") && strncmp(name, "perf-cpu", strlen("perf-cpu")) == 0)
		rc = read_part(r, name, &data, &size);
	if (data != NULL && !uni_uftrace_perf(&r->events, data, size, &r->stats.damaged))
		rc = uni_err_nomem(r->err);
	return rc;
}

/* "1234.dat"; what perf and the kernel wrote has letters in front. */
static bool thread_of(const char *name, uint32_t *tid_ret)
{
	size_t digits = strspn(name, "0123456789");
	uint64_t tid = 0;

	if (digits == 0 || digits > 10 || strcmp(name + digits, ".dat") != 0)
		return false;
	for (size_t i = 0; i < digits; i++)
		tid = tid * 10 + (uint64_t)(name[i] - '0');
	*tid_ret = (uint32_t)tid;
	return tid <= UINT32_MAX;
}

static int read_dat(struct reader *r, const char *name)
{
	struct uni_uftrace_thread thread = { .syms = &r->syms, .events = &r->events };
	_cleanup_free_ char *data = NULL;
	size_t size, at = 0;
	int rc;

	if (!thread_of(name, &thread.tid))
		return 0;
	rc = read_part(r, name, &data, &size);
	if (rc == 0)
		uni_stack_allow(&r->stack, size);
	if (rc == 0)
		rc = uni_uftrace_dat(&r->stack, &thread, data, size, &r->stats, &at);
	if (rc == -UNI_ENOMEM || (rc == -UNI_ERANGE && r->err->code == 0))
		return uni_stack_error(rc, r->err);
	if (rc == -UNI_EFORMAT)
		return uni_err_set(r->err, UNI_EFORMAT,
			"%s: no record that can be read at byte %zu (arguments and return values "
			"cannot: record without -A and -R)",
			name, at);
	return rc;
}

static int each_file(struct reader *r, int (*fn)(struct reader *r, const char *name))
{
	int fd = uni_door_openat(AT_FDCWD, r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int rc = 0;

	if (d == NULL)
		return uni_err_set(r->err, UNI_EIO, "cannot open the folder: %s", strerror(errno));
	while (rc == 0 && (e = readdir(d)) != NULL)
		rc = fn(r, e->d_name);
	(void)closedir(d);
	return rc;
}

static int read_all(struct reader *r)
{
	_cleanup_free_ char *info = NULL;
	size_t size;
	int rc = read_part(r, "info", &info, &size);

	if (rc == 0 && !uni_uftrace_info(info, size, &r->syms))
		rc = uni_err_set(r->err, UNI_EFORMAT,
			"its `info` is no uftrace's of a little-endian 64-bit program");
	if (rc == 0)
		rc = each_file(r, read_map);
	if (rc == 0)
		rc = each_file(r, read_sym);
	if (rc == 0)
		rc = each_file(r, read_perf);
	uni_uftrace_syms_sort(&r->syms);
	uni_uftrace_events_sort(&r->events);
	if (rc == 0)
		rc = each_file(r, read_dat);
	if (rc == 0 && r->stats.stacks == 0)
		rc = uni_err_set(r->err, UNI_EFORMAT, "a uftrace folder without a call");
	return rc;
}

static int read_folder(const char *path, const struct uni_import_opts *opts, struct uni_profile *p,
	struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct reader r = { .path = path, .err = err };
	int rc;

	if (!uni_uftrace_syms_init(&r.syms) || !uni_stack_init(&r.stack, p))
		rc = uni_err_nomem(err);
	else
		rc = read_all(&r);
	uni_stack_deinit(&r.stack);
	uni_uftrace_syms_deinit(&r.syms);
	uni_vec_free(&r.events.all);
	if (rc != 0)
		return rc;
	uni_profile_set_unit(p, "ns");
	*stats_ret = r.stats;
	return 0;
}

static bool is_folder(const char *path)
{
	_cleanup_strbuf_ struct uni_strbuf info;
	char head[16] = "";

	uni_strbuf_init(&info);
	uni_strbuf_addf(&info, "%s/info", path);
	return !uni_strbuf_failed(&info) && uni_read_small(info.s, head, sizeof(head)) >= 7 &&
	       memcmp(head, "Ftrace!", 7) == 0;
}

const struct uni_importer uni_importer_uftrace = {
	.name = "uftrace",
	.summary = "a folder of uftrace record: what each function took itself, and waited",
	.is_folder = is_folder,
	.read_folder = read_folder,
};
