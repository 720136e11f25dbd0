/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/door.h"
#include "base/io.h"
#include "base/text.h"
#include "app/images.h"
#include "app/inside.h"
#include "app/resolve.h"
#include "app/signals.h"
#include "app/skids.h"
#include "app/symbols.h"
#include "app/term.h"
#include "app/way.h"
#include "backend/shared.h"
#include "sampling/check.h"

#define SETTLED_IDLE 10 /* times settle_ns, of a VMM that may not work at all */
#define RETRY_NS     (200 * UNI_NSEC_PER_MSEC)
#define START_NS     (5 * UNI_NSEC_PER_SEC)
#define BOOT_NS	     (60 * UNI_NSEC_PER_SEC) /* from its first instruction on */
#define TEXT_HINTS   32
#define HOLD_NS	     (2 * UNI_NSEC_PER_SEC)
#define HOLD_NAP_NS  (5 * UNI_NSEC_PER_MSEC)

/* The command line of another user's process may be unreadable. */
static bool is_closed_to_us(int pid)
{
	char link[48], path[16];

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	return pid > 0 && uni_door_readlinkat(AT_FDCWD, link, path, sizeof(path)) < 0 &&
	       errno == EACCES;
}

int uni_guest_load_image(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	bool is_table = args->image != NULL && uni_symbols_kind_of(args->image) != UNI_SYMBOLS_ELF;
	const char *table = is_table ? args->image : args->table;
	const char *path = is_table ? NULL : args->image;
	bool given = path != NULL, optional = args->no_image_ok || is_table;
	bool blind = g->info.pid == 0 && g->info.note[0] != '\0';
	int rc = 0;

	if (args->image != NULL && args->image[0] == '\0')
		return uni_err_set(err, UNI_EUSAGE,
			"the name of the image (-e) is empty: give the file that the guest runs, "
			"or leave -e out");
	if (table != NULL)
		rc = uni_symbols_load(table, &args->search, NULL, &g->symtab, err);
	if (rc != 0)
		return rc;
	if (path == NULL && g->info.image[0] != '\0')
		path = g->info.image;
	if (path == NULL) {
		if (optional)
			return 0;
		if (is_closed_to_us(g->info.pid))
			return uni_err_set(err, UNI_EPERM,
				"%s: the image of process %d cannot be read: permission denied%s "
				"give the ELF with --image ELF",
				g->spec.text, g->info.pid,
				geteuid() == 0 || uni_door_is_used()
					? " to root, too, as in a container without "
					  "CAP_SYS_PTRACE:"
					: "; be its user or root, or");
		if (g->info.absent)
			return uni_err_set(err, UNI_ENOENT, "%s: %s", g->spec.text, g->info.note);
		return uni_err_set(err, UNI_EUSAGE,
			"%s does not tell which image it runs%s%s%s: give the ELF with --image ELF",
			g->spec.text, blind ? " (" : "", blind ? g->info.note : "",
			blind ? ")" : "");
	}
	rc = uni_image_load_from(path, &args->search, &g->image, err);
	if (rc == 0)
		return uni_image_hints(g->image, 0, &g->hints, err);
	if (given || !optional)
		return rc;
	/* Found on a command line but no ELF: a disk or a compressed kernel. Addresses will do. */
	err->code = 0;
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return *p < *q ? -1 : *p > *q;
}

/* Adds the sites of one segment, in the form of a hint. */
static void add_patched(struct uni_text_hint *h, const struct uni_segment *s,
	const struct uni_sites *sites, uint64_t *buf, size_t *used)
{
	if (sites == NULL || buf == NULL)
		return;
	h->patched = buf + *used;
	for (size_t i = 0; i < sites->nr_sites; i++) {
		if (uni_range_contains(s->vaddr, s->file_size, sites->site[i].addr, UNI_SITE_BYTES))
			buf[(*used)++] = sites->site[i].addr - s->vaddr;
	}
	h->nr_patched = (size_t)(buf + *used - h->patched);
	qsort(buf + *used - h->nr_patched, h->nr_patched, sizeof(*buf), by_offset);
}

static size_t text_hints(const struct uni_guest *g, struct uni_text_hint *hint, uint64_t *patched)
{
	size_t nr_patched = 0;
	size_t n = 0;

	for (size_t i = 0; g->image != NULL && i < uni_image_nr_segments(g->image); i++) {
		const struct uni_segment *s = uni_image_segment(g->image, i);

		if (s->write || s->file_size == 0 || n == TEXT_HINTS)
			continue;
		hint[n++] = (struct uni_text_hint){ .gva = s->vaddr + g->bias,
			.paddr = s->paddr,
			.bytes = s->bytes,
			.size = s->file_size,
			.exec = s->exec };
		if (s->exec)
			add_patched(&hint[n - 1], s, g->sites, patched, &nr_patched);
	}
	return n;
}

int uni_guest_hold(struct uni_guest *g, struct uni_pause *p, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret, struct uni_err *err)
{
	struct timespec nap = uni_ns_timespec(HOLD_NAP_NS);
	uint64_t until = uni_now_ns() + HOLD_NS;
	int rc = uni_pause_begin(p, g->t, set, regs_ret);

	while (rc == -UNI_EAGAIN && uni_now_ns() < until) {
		(void)nanosleep(&nap, NULL);
		rc = uni_pause_begin(p, g->t, set, regs_ret);
	}
	if ((rc == -UNI_EAGAIN || rc == -UNI_EIO) && g->t->ops->blocked != NULL) {
		int busy = g->t->ops->blocked(g->t, err);

		if (busy != 0)
			return busy;
	}
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc, "%s gave no registers: %s",
			g->spec.text, uni_strerror(rc));
	return 0;
}

/* Finds out whether the image is at its linked address. If not, and `anywhere`, looks for its
 * address. Also looks for other images. */
static int find_images(
	struct uni_guest *g, const struct uni_attach_args *args, bool anywhere, struct uni_err *err)
{
	struct uni_err ignored = { 0 };
	int rc = 0;

	if (g->t->ops->files != NULL) {
		if (args->sysroot != NULL && args->sysroot->items.nr != 0)
			uni_note("%s: the kernel tells which files it has mapped: %s is not "
				 "needed, and not read",
				g->spec.text, args->sysroot->items.v[0]);
		return uni_guest_place_files(g, args, err);
	}
	if (g->image != NULL && !anywhere)
		rc = uni_guest_check_image(g, err);
	if (rc == 0 && (anywhere || (args->sysroot != NULL && args->sysroot->items.nr != 0)))
		rc = uni_guest_find_images(g, args, anywhere, err);
	/* It was found by a part of its code. */
	if (rc == 0 && anywhere && g->image != NULL && uni_guest_check_image(g, &ignored) != 0)
		return ignored.code == UNI_EGONE ? uni_err_set(err, UNI_EGONE, "%s", ignored.msg)
						 : 0;
	return rc;
}

/* For a guest whose memory cannot be read: uses the data that it provides about itself. */
static int check_inside(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	if (!args->inside_ok)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s gives neither registers nor memory, only what the guest records "
			"itself: use record, top or trace",
			g->spec.text);
	return uni_guest_place_inside(g, args, err);
}

static int attach_at(
	struct uni_guest *g, const struct uni_attach_args *args, bool anywhere, struct uni_err *err)
{
	size_t nr_sites = g->sites != NULL ? g->sites->nr_sites : 0;
	_cleanup_free_ uint64_t *patched = calloc(nr_sites + 1, sizeof(*patched));
	struct uni_text_hint hint[TEXT_HINTS];
	struct uni_attach_opts opts = { .text = hint, .anywhere = anywhere };
	struct uni_target *t;
	int rc;

	g->bias = 0;
	opts.nr_text = text_hints(g, hint, patched);
	opts.arch = g->image != NULL ? uni_image_arch(g->image) : NULL;
	opts.qmp = args->qmp;
	opts.rest_ok = args->rest_ok;
	opts.shared = args->shared;
	opts.over = args->over;
	opts.over_ctx = args->ended_ctx;
	rc = uni_target_attach(&g->spec, &opts, &t, err);
	if (rc == -UNI_EMISMATCH && g->image != NULL)
		return uni_err_prefix(err,
			"%s does not fit the guest (with -e, give the file that was booted, of the "
			"same build)",
			uni_image_path(g->image));
	if (rc != 0)
		return rc;
	g->t = t;
	rc = g->t->ops->caps(g->t) & UNI_CAP_INSIDE ? check_inside(g, args, err)
						    : find_images(g, args, anywhere, err);
	if (rc != 0) {
		uni_target_detach(g->t);
		g->t = NULL;
		uni_guest_drop_images(g);
	}
	return rc;
}

/* Is it worth looking for the image elsewhere? */
static bool is_elsewhere(const struct uni_guest *g, const struct uni_attach_args *args, int rc)
{
	return rc == -UNI_EMISMATCH && g->image != NULL &&
	       (args->over == NULL || !args->over(args->ended_ctx));
}

/* An image that cannot be relocated runs where it is linked. Linux has its own relocations, and an
 * image without symbols may be Linux. */
static bool may_move(const struct uni_image *img)
{
	uint64_t addr, size;

	return uni_image_dynamic(img, &addr, &size) || uni_image_nr_symbols(img) == 0 ||
	       uni_image_find(img, "linux_banner", &addr, &size) == 0;
}

/* All of the guest's memory is read for it. If each read stops the guest, only images that may be
 * elsewhere are worth that, and the user is told. */
static bool is_searched(struct uni_guest *g, const struct uni_err *err)
{
	const struct uni_target_ops *ops = uni_target_backend(g->spec.scheme);

	if (ops == NULL || !ops->reads_cost_time)
		return true;
	if (!may_move(g->image))
		return false;
	if (!g->searched)
		uni_note("looking for the image in all of the guest's memory: %s", err->msg);
	g->searched = true;
	return true;
}

/* The image is neither at its linked address nor elsewhere: what is known of it? */
static int say_elsewhere(const struct uni_guest *g, int rc, struct uni_err *err)
{
	const uint8_t *id;

	if (g->differ.compared != 0 || g->other_ids == 0 || uni_image_build_id(g->image, &id) == 0)
		return rc; /* the first error is more useful */
	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_EMISMATCH,
		"%s is another build than what runs there, or is not there: none of %zu file%s "
		"with a build-id in that memory has this one's. Give the file that runs "
		"(--image ELF)",
		uni_image_path(g->image), g->other_ids, uni_plural(g->other_ids));
}

/* First tries the linked address; an image that does not match there may have been moved. */
static int attach_once(struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	struct uni_err moved = { 0 };
	int rc;

	/* An old copy may still be mapped: the place counts in which vCPUs run. */
	if (args->settle_ns != 0 && g->image != NULL) {
		rc = attach_at(g, args, true, &moved);
		if (rc == 0)
			return 0;
		moved = (struct uni_err){ 0 };
	}
	rc = attach_at(g, args, false, err);
	/* Functions that are traced begin and end with other bytes than the image's. */
	if (is_elsewhere(g, args, rc) && g->sites == NULL &&
		uni_sites_read(g->image, &g->sites, &moved) == 0) {
		*err = (struct uni_err){ 0 };
		rc = attach_at(g, args, false, err);
	}
	moved = (struct uni_err){ 0 };
	g->other_ids = 0;
	if (!is_elsewhere(g, args, rc) || !is_searched(g, err))
		return rc;
	if (attach_at(g, args, true, &moved) != 0) {
		g->bias = 0;
		return say_elsewhere(g, rc, err);
	}
	err->code = 0;
	return 0;
}

/* A guest that still boots has no page tables, or its image is not yet in place. A VMM that has
 * just started has not opened /dev/kvm yet. */
static bool worth_a_retry(int rc, uint64_t since_ns)
{
	if (rc == -UNI_ENOTSUP || rc == -UNI_EINVAL)
		return uni_now_ns() < since_ns + START_NS;
	return rc == -UNI_EMISMATCH || rc == -UNI_EFAULT || rc == -UNI_EAGAIN || rc == -UNI_ENOENT;
}

/* The results of the last look. */
struct look {
	uint64_t bias, differ, cpu_ns, ns; /* of the first look that found it so */
};

/*
 * While a guest boots, its image may be seen at its load address, before it moves to its final one.
 * It may also be incomplete. It has settled when two looks find the same, after the VMM has worked
 * for settle_ns, or was idle for long. Otherwise detaches, for a further look.
 */
static bool is_settling(struct uni_guest *g, const struct uni_attach_args *args, bool boots, int rc,
	struct look *last)
{
	const struct look now = { g->bias, g->differ.changed[UNI_CHANGE_NONE],
		g->info.pid > 0 ? uni_process_cpu_ns(g->info.pid) : 0, uni_now_ns() };
	bool same = now.bias == last->bias && now.differ == last->differ && last->ns != 0;

	if (rc != 0 || !boots)
		return false;
	if (same && (now.cpu_ns - last->cpu_ns >= args->settle_ns ||
			    now.ns - last->ns >= SETTLED_IDLE * args->settle_ns))
		return false;
	if (!same)
		*last = now;
	uni_target_detach(g->t);
	g->t = NULL;
	uni_guest_drop_images(g);
	return true;
}

void uni_note_left_off(const char *spec, unsigned left_off, unsigned all)
{
	if (left_off != 0)
		uni_note("%s: %u of its %u %s are left off: " UNI_VCPU_MOST, spec, left_off, all,
			uni_target_units(spec));
}

/* At once, and not only after --wait: it may be the wrong file. */
static void say_mismatch(const struct uni_attach_args *args, const struct uni_err *err, bool *said)
{
	if (err->code != UNI_EMISMATCH || *said)
		return;
	uni_note("RAM not found by image: %s; tried again for %g s", err->msg,
		(double)args->wait_ns / 1e9);
	*said = true;
}

/* Somebody has to let it run: it may boot for a while from then on. */
static void await_run(struct uni_guest *g, const struct uni_attach_args *args, int rc,
	uint64_t *until, const struct uni_err *err)
{
	if (!args->await_run || rc != -UNI_EAGAIN)
		return;
	if (!g->awaited)
		uni_note("%s; waiting until the guest runs (Ctrl-C ends that)", err->msg);
	g->awaited = true;
	*until = uni_max(*until, uni_now_ns() + BOOT_NS);
}

/* A process that was just started tells its image only once it is a VMM. */
static int look_again(struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	int rc;

	if (g->info.image[0] != '\0' || args->image != NULL || args->table != NULL)
		return 0;
	rc = uni_target_probe(&g->spec, &g->info, err);
	return rc == 0 ? uni_guest_load_image(g, args, err) : rc;
}

int uni_guest_open(struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	uint64_t since = uni_now_ns(), until = since + args->wait_ns;
	struct look last = { 0 };
	bool said = false;
	int rc;

	memset(g, 0, sizeof(*g));
	g->accept_image = args->accept_image;
	rc = uni_guest_use_unwinder(g, args, err); /* before anything is done to a guest */
	if (rc == 0)
		rc = uni_guest_await(args->target, args->wait_ns, &g->spec, err);
	/* Another try could not change that. */
	if (rc == 0 && uni_guest_check_method(g, args, err) != 0) {
		uni_guest_close(g);
		return -(int)err->code;
	}
	if (rc == 0)
		rc = uni_target_probe(&g->spec, &g->info, err);
	if (rc == 0)
		rc = uni_guest_load_image(g, args, err);
	if (rc == 0)
		rc = uni_guest_choose_method(g, args, err);
	if (rc == 0)
		rc = attach_once(g, args, err);
	await_run(g, args, rc, &until, err);
	while ((worth_a_retry(rc, since) || is_settling(g, args, until > since, rc, &last)) &&
		uni_now_ns() < until && !atomic_load(uni_signals_stop()) &&
		!(g->info.pid > 0 && uni_process_is_ending(g->info.pid)) &&
		(args->ended == NULL || !args->ended(args->ended_ctx))) {
		struct timespec ts = uni_ns_timespec(RETRY_NS);

		if (!g->awaited)
			say_mismatch(args, err, &said);
		uni_progress("waiting for the guest to boot");
		(void)nanosleep(&ts, NULL);
		*err = (struct uni_err){ 0 };
		rc = look_again(g, args, err);
		if (rc == 0)
			rc = attach_once(g, args, err);
		await_run(g, args, rc, &until, err);
	}
	if (until > since)
		uni_progress_end();
	if (rc == 0 && g->t == NULL && atomic_load(uni_signals_stop()))
		rc = uni_err_set(
			err, UNI_EAGAIN, "%s: ended by you before it was attached", g->spec.text);
	if (rc == 0 && g->t == NULL)
		rc = uni_err_set(err, UNI_ETIMEDOUT,
			"%s: its image was not seen at one address for long enough: is it still "
			"booting? "
			"(--wait)",
			g->spec.text);
	if (rc != 0) {
		uni_guest_close(g);
		if (args->wait_ns != 0 && worth_a_retry(rc, since) && uni_now_ns() >= until)
			return uni_err_prefix(err, "waited %g s", (double)args->wait_ns / 1e9);
		return rc;
	}
	g->t->ops->info(g->t, &g->info);
	if (!args->no_samples)
		uni_note_left_off(g->spec.text, g->t->nr_left_off,
			g->t->nr_left_off + (unsigned)g->t->ops->nr_vcpus(g->t));
	if (g->info.stopped)
		uni_note("a signal has stopped %s %d%s: kill -CONT %d lets it run",
			g->t->ops->files != NULL ? "process" : "the VMM, pid", g->info.pid,
			g->t->ops->files != NULL ? "" : ", and its guest with it", g->info.pid);
	if (g->info.why[0] == '\0')
		(void)snprintf(g->info.why, sizeof(g->info.why), "%s", g->why);
	uni_guest_note_missing(g);
	rc = uni_guest_settle_images(g, err);
	if (rc == 0 && g->image != NULL && g->nr_more == 0)
		rc = uni_image_hints(g->image, g->bias, &g->hints, err);
	if (rc != 0) {
		uni_guest_close(g);
		return rc;
	}
	rc = uni_guest_use_unwinder(g, args, err);
	return rc == 0 ? uni_guest_use_skid(g, args, err) : rc;
}

void uni_guest_close(struct uni_guest *g)
{
	uni_target_detach(g->t);
	uni_target_shared_destroy(g->shared);
	uni_guest_drop_images(g);
	uni_sites_destroy(g->sites);
	uni_difference_deinit(&g->differ);
	uni_skid_deinit(&g->skid);
	uni_vec_free(&g->skid_code);
	uni_image_destroy(g->image);
	g->sites = NULL;
	uni_symtab_destroy(g->symtab);
	uni_symtab_destroy(g->kernel);
	g->symtab = g->kernel = NULL;
	g->t = NULL;
	g->shared = NULL;
	g->image = NULL;
	g->hints = NULL;
}
