/* SPDX-License-Identifier: BSD-2-Clause */
#include "obj/sites_prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/sink.h"
#include "base/text.h"
#include "obj/objfile.h"
#include "obj/sites.h"
#include "uniscope/trace_abi.h"

static void destroy_image(struct uni_image **img)
{
	uni_image_destroy(*img);
}

static void destroy_sites(struct uni_sites **s)
{
	uni_sites_destroy(*s);
}

struct work {
	struct uni_objfile *f;
	const struct uni_image *img;
	const struct uni_sites *sites;
	const char *const *on; /* globs */
	size_t nr_on;
	struct uni_sites_prepared *ret;
};

/* The bytes of [addr, addr + len) in the file; NULL: it has none. */
static char *find_in_file(const struct uni_objfile *f, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < f->segs.nr; i++) {
		const struct uni_segment *seg = &f->segs.v[i];

		if (uni_range_contains(seg->vaddr, seg->file_size, addr, len))
			return f->data + (seg->bytes - (const uint8_t *)f->data) +
			       (addr - seg->vaddr);
	}
	return NULL;
}

static int rewrite_site(
	const struct work *w, const struct uni_site *site, uint64_t hook, struct uni_err *err)
{
	char *p = find_in_file(w->f, site->addr, UNI_SITE_BYTES);
	uint8_t want[UNI_SITE_BYTES];

	if (p == NULL || (memcmp(p, site->off, UNI_SITE_BYTES) != 0 &&
				 !uni_site_is_on(w->sites, site, (const uint8_t *)p)))
		return uni_err_set(err, UNI_EMISMATCH,
			"%s: its segments overlap at %#llx, or it changed meanwhile", w->f->path,
			(unsigned long long)site->addr);
	uni_site_free_bytes(site, want);
	if (hook != 0 && !uni_site_on(site, 0, hook, want))
		return uni_err_set(err, UNI_ERANGE,
			"%s: the tracer's hooks are too far from the code at %#llx", w->f->path,
			(unsigned long long)site->addr);
	if (memcmp(p, want, sizeof(want)) == 0)
		w->ret->nr_ready++;
	else
		w->ret->nr_changed++;
	memcpy(p, want, sizeof(want));
	return 0;
}

static bool is_to_be_on(const struct work *w, const struct uni_site_function *fn)
{
	bool on = false;

	for (size_t i = 0; !on && i < w->nr_on; i++)
		on = uni_glob_match(w->on[i], fn->name);
	if (!on || fn->exits_known)
		return on;
	w->ret->nr_no_exits++;
	return false;
}

/* Rewrites only functions that can be traced, and only their known exits. */
static int rewrite_sites(const struct work *w, struct uni_err *err)
{
	const struct uni_sites *s = w->sites;

	for (size_t i = 0; i < s->nr_functions; i++) {
		const struct uni_site_function *fn = &s->function[i];
		bool on = is_to_be_on(w, fn);
		uint64_t entry =
			fn->low == UNI_TRACE_ID_ENTRY || fn->low == UNI_TRACE_ID_ENTRY_BRANCH
				? s->hook_entry
				: s->hook_entry_any;

		w->ret->nr_on += on;
		for (uint32_t k = fn->first; k < fn->first + fn->nr; k++) {
			const struct uni_site *site = &s->site[k];
			uint64_t hook = site->kind == UNI_SITE_ENTRY ? entry : s->hook_exit;
			int rc = rewrite_site(w, site, on ? hook : 0, err);

			if (rc != 0)
				return rc;
		}
	}
	w->ret->nr_functions = s->nr_functions;
	if (w->nr_on == 0 || w->ret->nr_on != 0)
		return 0;
	if (w->ret->nr_no_exits != 0)
		return uni_err_set(err, UNI_ENOENT,
			"the returns of the %zu functions that match --on are not known: link the "
			"guest with --emit-relocs",
			w->ret->nr_no_exits);
	return uni_err_set(err, UNI_ENOENT,
		"no function matches --on, of the %zu that can be traced (nm %s lists names)",
		s->nr_functions, w->f->path);
}

/* The words of the control that the guest begins with. An image that cannot record from its first
 * call is only an error if it is to do so. */
static int rewrite_control(const struct work *w, struct uni_err *err)
{
	uint32_t enable = w->nr_on != 0;
	uint64_t head, boot, size;
	char *control = NULL;

	if (w->sites->hook_entry != 0 && w->sites->hook_entry_any != 0 &&
		w->sites->hook_exit != 0 &&
		uni_image_find(w->img, "uni_trace_boot", &boot, &size) == 0 &&
		uni_image_find(w->img, "uni_trace_head", &head, &size) == 0 &&
		size >= UNI_TRACE_HEAD_OLD)
		control = find_in_file(
			w->f, head + UNI_TRACE_CONTROL, sizeof(struct uni_trace_control));
	if (control == NULL && w->nr_on != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s has no ring for calls before its set-up: link boot.c of the tracer, "
			"too "
			"(" UNI_GUEST_README ")",
			w->f->path);
	if (control == NULL)
		return 0;
	memcpy(control + offsetof(struct uni_trace_control, enable), &enable, sizeof(enable));
	memcpy(control + offsetof(struct uni_trace_control, enable_asked), &enable, sizeof(enable));
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

int uni_sites_prepare(const char *path, const char *out, const char *const *on, size_t nr,
	struct uni_sites_prepared *ret, struct uni_err *err)
{
	_cleanup_(destroy_image) struct uni_image *img = NULL;
	_cleanup_(destroy_sites) struct uni_sites *sites = NULL;
	_cleanup_(uni_objfile_deinit) struct uni_objfile f = { 0 };
	struct uni_sites_prepared done = { 0 };
	struct work w = { .f = &f, .on = on, .nr_on = nr, .ret = &done };
	int rc = uni_image_load(path, &img, err);

	if (rc == 0)
		rc = uni_sites_read(img, &sites, err);
	if (rc == 0)
		rc = uni_objfile_load(path, &f, err);
	w.img = img;
	w.sites = sites;
	if (rc == 0)
		rc = rewrite_control(&w, err);
	if (rc == 0)
		rc = rewrite_sites(&w, err);
	if (rc == 0)
		rc = write_image(&f, path, out, err);
	if (rc == 0)
		*ret = done;
	return rc;
}
