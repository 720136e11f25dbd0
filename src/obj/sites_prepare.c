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
#include "base/door.h"
#include "base/sink.h"
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

/* A site's bytes in the file; NULL if they are not those that were found before. */
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

/* Rewrites only functions that can be traced, and only their known exits. */
static int rewrite_sites(struct uni_objfile *f, const struct uni_sites *s,
	struct uni_sites_prepared *ret, struct uni_err *err)
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

/* Writes it with the permissions of the file that it is made from. */
static int write_image(
	const struct uni_objfile *f, const char *like, const char *path, struct uni_err *err)
{
	struct uni_sink *out;
	struct stat st;
	int rc;

	if (uni_door_fstatat(AT_FDCWD, like, &st, 0) != 0)
		return uni_err_set(err, UNI_EIO, "cannot read %s: %s", like, strerror(errno));
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_set_mode(out, st.st_mode & 0777);
	uni_sink_set_durable(out);
	uni_sink_write(out, f->data, f->elf.size);
	return uni_sink_close(out, err);
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
		rc = rewrite_sites(&f, sites, &done, err);
	if (rc == 0)
		rc = write_image(&f, path, out, err);
	if (rc == 0)
		*ret = done;
	return rc;
}
