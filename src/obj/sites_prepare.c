/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/sites_prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "obj/objfile.h"
#include "obj/sites.h"

static void destroy_image(struct uni_image **img)
{
	uni_image_destroy(*img);
}

static void destroy_sites(struct uni_sites **s)
{
	uni_sites_destroy(*s);
}

/* Where in the file a site's bytes lie; NULL if they are not what was found there before. */
static char *in_file(struct uni_objfile *f, const struct uni_site *site)
{
	for (size_t i = 0; i < f->segs.nr; i++) {
		const struct uni_segment *seg = &f->segs.v[i];
		char *p;

		if (!uni_range_contains(seg->vaddr, seg->file_size, site->addr, UNI_SITE_BYTES))
			continue;
		p = f->data + (seg->bytes - (const uint8_t *)f->data) + (site->addr - seg->vaddr);
		return memcmp(p, site->off, UNI_SITE_BYTES) == 0 ? p : NULL;
	}
	return NULL;
}

/* Only of functions that are traced, so of their exits the ones that are known. */
static int rewrite(struct uni_objfile *f, const struct uni_sites *s, struct uni_sites_prepared *ret,
	struct uni_err *err)
{
	for (size_t i = 0; i < s->nr_sites; i++) {
		const struct uni_site *site = &s->site[i];
		char *p;

		if (site->state == UNI_SITE_FREE) {
			ret->nr_ready++;
			continue;
		}
		p = in_file(f, site);
		if (p == NULL)
			return uni_err_set(err, UNI_EMISMATCH,
				"%s: its segments overlap at %#llx, or it changed meanwhile",
				f->path, (unsigned long long)site->addr);
		uni_site_free_bytes(site, (uint8_t *)p);
		ret->nr_changed++;
	}
	ret->nr_functions = s->nr_functions;
	return 0;
}

static int write_beside(int fd, const struct uni_objfile *f, const char *like)
{
	struct stat st;

	if (stat(like, &st) != 0 || fchmod(fd, st.st_mode & 07777) != 0)
		return -errno;
	if (uni_write_full(fd, f->data, f->elf.size) != 0 || fsync(fd) != 0)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

/* A new file in the same folder takes the name once it is whole. */
static int replace(
	const struct uni_objfile *f, const char *like, const char *out, struct uni_err *err)
{
	_cleanup_free_ char *temp = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (asprintf(&temp, "%s.XXXXXX", out) < 0) {
		temp = NULL;
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	}
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return uni_err_set(
			err, UNI_EIO, "cannot make a file beside %s: %s", out, strerror(errno));
	errno = 0;
	r = write_beside(fd, f, like);
	if (r == 0 && rename(temp, out) != 0)
		r = -errno;
	if (r != 0) {
		(void)unlink(temp);
		return uni_err_set(err, UNI_EIO, "cannot write %s: %s", out, strerror(-r));
	}
	return 0;
}

int uni_sites_prepare(
	const char *path, const char *out, struct uni_sites_prepared *ret, struct uni_err *err)
{
	_cleanup_(destroy_image) struct uni_image *img = NULL;
	_cleanup_(destroy_sites) struct uni_sites *sites = NULL;
	_cleanup_(uni_objfile_deinit) struct uni_objfile f = { 0 };
	struct uni_sites_prepared done = { 0 };
	int rc = uni_image_load(path, &img, err);

	if (rc == 0)
		rc = uni_sites_read(img, &sites, err);
	if (rc == 0)
		rc = uni_objfile_load(path, &f, err);
	if (rc == 0)
		rc = rewrite(&f, sites, &done, err);
	if (rc == 0)
		rc = replace(&f, path, out, err);
	if (rc == 0)
		*ret = done;
	return rc;
}
