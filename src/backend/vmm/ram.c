/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/ram.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/observer.h"
#include "mem/as.h"
#include "backend/vmm/maps.h"
#include "backend/vmm/proc.h"
#include "backend/vmm/scan.h"
#include "backend/vmm/split.h"

#define FOUR_GIB (1ull << 32)

/* For a search through all mappings of a guest. If something was written over its tables, they
 * may lead through each other, and all of this is used up for each place. */
static struct uni_as_budget all_tables(const struct uni_vmm_ram_opts *opts)
{
	return (struct uni_as_budget){ .bytes = 64u << 20,
		.table_loads = 1u << 22,
		.cpu_ns = UNI_NSEC_PER_SEC,
		.over = opts->over,
		.ctx = opts->over_ctx };
}

struct ram {
	int pid;
};

/* The data of a search. */
struct search {
	int pid;
	const struct uni_vmm_ram_opts *opts;
	const struct uni_arch *arch;
	struct uni_vmm_maps maps;
	struct uni_vmm_cmdline cmdline;
	struct uni_scan_probe probe;
	bool has_text; /* probe is set */
	struct uni_vmm_ram_info info;
};

/* A place where RAM may be. */
struct place {
	uint64_t hva0;	 /* HVA of GPA 0; wraps below the mapping if RAM begins higher */
	uint64_t size;	 /* of the run of mappings around it, to decide between equals */
	uint64_t moved;	 /* how far the code is above its stated physical address */
	uint64_t differ; /* bytes of code that differ from the image */
	unsigned proof;
	uint32_t nr;
	struct uni_gmem_region region[2];
};

/*
 * Another process can get this pid only after the first one has ended. The target that owns this
 * gmem watches for that.
 */
static int ram_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	const struct ram *ram = ctx;

	return uni_vmm_copy(ram->pid, r->cookie + offset, buf, len);
}

/* The kernel copies pieces in order, and stops before a piece that it cannot copy whole. */
static int ram_read_many(void *ctx, const struct uni_gmem_piece *piece, size_t nr)
{
	struct iovec local[UNI_GMEM_MANY_MAX] = { 0 }, remote[UNI_GMEM_MANY_MAX] = { 0 };
	const struct ram *ram = ctx;
	size_t whole = 0;
	ssize_t n;

	if (nr == 0 || nr > uni_array_len(local))
		return 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t hva = piece[i].r->cookie + piece[i].offset;

		local[i] = (struct iovec){ piece[i].buf, piece[i].len };
		remote[i] = (struct iovec){ (void *)(uintptr_t)hva, piece[i].len };
	}
	n = uni_observer_copy(ram->pid, local, nr, remote, nr);
	while (n > 0 && whole < nr && (size_t)n >= piece[whole].len)
		n -= (ssize_t)piece[whole++].len;
	return (int)whole;
}

static void ram_close(void *ctx)
{
	free(ctx);
}

static const struct uni_gmem_ops ram_ops = {
	.read = ram_read,
	.read_many = ram_read_many,
	.close = ram_close,
};

static int make_gmem(int pid, const struct place *p, struct uni_gmem **ret, struct uni_err *err)
{
	struct ram *ram = malloc(sizeof(*ram));
	int rc;

	if (ram == NULL)
		return uni_err_nomem(err);
	ram->pid = pid;
	rc = uni_gmem_create(&ram_ops, ram, UNI_GMEM_PHYSICAL, p->region, p->nr, ret, err);
	if (rc != 0)
		free(ram);
	return rc;
}

/*
 * Bytes of RAM below the hole; *goes_on_ret: the rest is at 4 GiB, and follows directly in the VMM.
 */
static uint64_t below_hole(const struct search *s, uint64_t hva0, uint64_t size, bool *goes_on_ret)
{
	uint64_t low, hva;

	*goes_on_ret = uni_vmm_ram_split(&s->cmdline, &low);
	if (s->opts->gpa2hva != NULL &&
		s->opts->gpa2hva(s->opts->gpa2hva_ctx, FOUR_GIB, &hva) == 0 &&
		uni_range_has(hva0, size, hva)) {
		*goes_on_ret = true;
		low = hva - hva0;
	}
	return low;
}

/*
 * Finds the regions of the block that contains hva, if GPA 0 is at hva0. False: it is in no
 * mapping.
 */
static bool lay_out(const struct search *s, uint64_t hva0, uint64_t hva, struct place *ret)
{
	uint64_t start, run, gpa, size, low = UINT64_MAX;
	bool goes_on = false;

	if (!uni_vmm_maps_run(&s->maps, hva, hva0, &start, &run))
		return false;
	*ret = (struct place){ .hva0 = hva0, .size = run };
	/* hva0 may be a wrapped difference: check on which side of it the run begins. */
	gpa = uni_range_has(start, run, hva0) ? 0 : start - hva0;
	size = gpa == 0 ? run - (hva0 - start) : run;
	if (s->cmdline.mem_bytes != 0)
		size = uni_min(size, s->cmdline.mem_bytes);
	if (s->arch->elf_machine == uni_arch_x86_64.elf_machine && gpa == 0)
		low = below_hole(s, hva0, size, &goes_on);
	ret->region[ret->nr++] = (struct uni_gmem_region){
		.start = gpa, .size = uni_min(size, low), .cookie = hva0 + gpa
	};
	if (size > low && goes_on)
		ret->region[ret->nr++] = (struct uni_gmem_region){
			.start = FOUR_GIB, .size = size - low, .cookie = hva0 + low
		};
	return true;
}

enum walk { WALK_NONE, WALK_YES, WALK_NO };

/* Does any executable mapping lead to the code at gpa? */
static bool leads_to(struct uni_as *as, uint64_t gpa)
{
	struct uni_mapping m;
	uint64_t next = 0;

	while (uni_as_next(as, uni_gva_of(next), &m) == 0) {
		if (m.exec && uni_range_has(m.gpa.v, m.size, gpa))
			return true;
		next = m.gva.v + m.size;
		if (next == 0)
			break;
	}
	return false;
}

/* Follows this vCPU's page tables, through `as`, for the code's first address. */
static enum walk walk_one(const struct search *s, struct uni_as *as, const struct uni_regs *regs,
	const struct uni_text_hint *t, uint64_t moved)
{
	struct uni_pt_root root;
	uni_gpa gpa;

	if (regs->state == UNI_VCPU_OFFLINE || regs->state == UNI_VCPU_UNKNOWN)
		return WALK_NONE;
	if (s->arch->paging == NULL || s->arch->paging(regs, &root) != 0 || root.geometry == NULL ||
		root.geometry->nr_levels == 0)
		return WALK_NONE; /* no paging (yet): proves nothing */
	uni_as_begin(as, &root);
	if (s->opts->anywhere)
		return leads_to(as, t->paddr + moved) ? WALK_YES : WALK_NO;
	if (uni_as_translate(as, uni_gva_of(t->gva), &gpa, NULL) != 0)
		return WALK_NO;
	return gpa.v == t->paddr ? WALK_YES : WALK_NO;
}

static enum walk walk_text(const struct search *s, const struct place *p)
{
	const struct uni_text_hint *t = NULL;
	const struct uni_as_budget all = all_tables(s->opts);
	enum walk result = WALK_NONE;
	struct uni_gmem *m = NULL;
	struct uni_as *as = NULL;

	for (size_t i = 0; t == NULL && i < s->opts->nr_text; i++)
		t = s->opts->text[i].exec && s->opts->text[i].size != 0 ? &s->opts->text[i] : NULL;
	if (t == NULL || s->opts->nr_regs == 0)
		return WALK_NONE;
	if (make_gmem(s->pid, p, &m, NULL) != 0)
		return WALK_NONE;
	if (uni_as_create(m, s->opts->anywhere ? &all : &uni_as_budget_once, &as, NULL) == 0) {
		for (size_t i = 0; result != WALK_YES && i < s->opts->nr_regs; i++) {
			enum walk w = walk_one(s, as, &s->opts->regs[i], t, p->moved);

			result = w != WALK_NONE ? w : result;
		}
		uni_as_destroy(as);
	}
	uni_gmem_destroy(m);
	return result;
}

/*
 * The largest readable mapping usually is the RAM, and begins at GPA 0. If both text and page walk
 * confirm that, no further search is needed. QEMU's TCG has a larger one for the code that it
 * makes.
 */
static bool try_biggest(struct search *s, bool executable, struct place *ret)
{
	const struct uni_vmm_map *big = NULL;
	uint64_t differ;

	for (size_t i = 0; i < s->maps.m.nr; i++) {
		const struct uni_vmm_map *m = &s->maps.m.v[i];

		if (uni_vmm_map_may_be_ram(m) && m->executable == executable &&
			(big == NULL || m->size > big->size))
			big = m;
	}
	if (big == NULL || !uni_range_has(0, big->size, s->probe.paddr))
		return false;
	if (uni_scan_verify(s->pid, big->start, s->opts->text, s->opts->nr_text, &differ) != 0 ||
		!lay_out(s, big->start, big->start + s->probe.paddr, ret))
		return false;
	if (walk_text(s, ret) != WALK_YES)
		return false;
	ret->differ = differ;
	ret->proof = UNI_RAM_PROOF_TEXT | UNI_RAM_PROOF_WALK;
	s->info.nr_hits = 1;
	return true;
}

static int not_found(const struct search *s, const struct uni_scan_hits *hits, struct uni_err *err)
{
	return uni_err_set(err, UNI_EMISMATCH,
		"the image's code is not in the memory of pid %d: %" PRIu64
		" pages were looked at, %u places began like it and then differed. Is it the image "
		"that this VMM booted%s%s, and has it been loaded yet?",
		s->pid, hits->nr_pages, (unsigned)hits->nr_partial,
		s->cmdline.image[0] != '\0' ? ": " : "", s->cmdline.image);
}

/*
 * A VMM has copies of the image: its loader keeps one, which is exact while the RAM may be patched.
 * Only a vCPU's page tables distinguish them, so a proof by these goes first. A loader's copy may
 * have page tables that are part of the image, but is no larger than the image.
 */
static bool is_better(const struct place *p, const struct place *than)
{
	if (p->proof != than->proof)
		return p->proof > than->proof;
	if (p->size != than->size)
		return p->size > than->size;
	return p->differ < than->differ;
}

/* If the code differs from the image in places, the code proves nothing, and the walk must. */
static bool is_proved(struct place *p, enum walk w)
{
	p->proof = UNI_RAM_PROOF_TEXT | (w == WALK_YES ? UNI_RAM_PROOF_WALK : 0u);
	return w == WALK_YES || (w == WALK_NONE && p->differ == 0);
}

/*
 * Derives the place of RAM from the i-th hit: the image states its physical address. If the image
 * may be anywhere, RAM is taken to begin with the mapping that has the hit.
 */
static bool place_of(
	struct search *s, const struct uni_scan_hits *hits, uint32_t i, struct place *ret)
{
	uint64_t hva = hits->hva0[i] + s->probe.paddr, start, run;

	if (lay_out(s, hits->hva0[i], hva, ret)) {
		ret->differ = hits->differ[i];
		if (is_proved(ret, walk_text(s, ret)))
			return true;
	}
	if (!s->opts->anywhere || !uni_vmm_maps_run(&s->maps, hva, hva, &start, &run) ||
		!lay_out(s, start, hva, ret))
		return false;
	ret->differ = hits->differ[i];
	ret->moved = hits->hva0[i] - start;
	return walk_text(s, ret) == WALK_YES && is_proved(ret, WALK_YES);
}

static int find_by_image(struct search *s, struct place *ret, struct uni_err *err)
{
	struct uni_scan_hits hits;
	struct place p;
	uint32_t nr_no = 0;
	bool found = false;
	int rc;

	if (try_biggest(s, false, ret) || try_biggest(s, true, ret))
		return 0;
	rc = uni_scan_image(s->pid, &s->maps, s->opts->text, s->opts->nr_text, &hits, err);
	if (rc != 0)
		return rc;
	s->info.nr_hits = hits.nr + hits.nr_partial;
	for (uint32_t i = 0; i < hits.nr; i++) {
		if (!place_of(s, &hits, i, &p)) {
			nr_no++;
			continue;
		}
		if (!found || is_better(&p, ret))
			*ret = p;
		found = true;
	}
	if (found)
		return 0;
	if (nr_no != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"the image's code, or nearly that, is in the memory of "
			"pid %d at %u place(s), but no vCPU's page tables lead "
			"there. The guest is still booting, runs another image, or its VMM maps "
			"its memory in parts, whose places only KVM tells (root, without --method "
			"pause)",
			s->pid, (unsigned)nr_no);
	return not_found(s, &hits, err);
}

/* -UNI_ENOENT: the VMM does not say; search by the image. */
static int find_by_vmm(struct search *s, struct place *ret, struct uni_err *err)
{
	uint64_t hva0;
	int rc;

	if (s->opts->gpa2hva == NULL || s->opts->gpa2hva(s->opts->gpa2hva_ctx, 0, &hva0) != 0)
		return -UNI_ENOENT;
	if (!lay_out(s, hva0, hva0, ret) && uni_process_is_ending(s->pid))
		return uni_err_set(err, UNI_EGONE, "process %d has ended", s->pid);
	if (!lay_out(s, hva0, hva0, ret))
		return uni_err_set(err, UNI_EMISMATCH,
			"the VMM says that RAM is at 0x%" PRIx64
			", where pid %d has no memory: does "
			"that socket belong to another process?",
			hva0, s->pid);
	ret->proof = UNI_RAM_PROOF_VMM;
	if (!s->has_text)
		return 0;
	rc = uni_scan_verify(s->pid, hva0, s->opts->text, s->opts->nr_text, &ret->differ);
	if (rc == -UNI_EMISMATCH && s->opts->anywhere)
		return 0; /* the places are found out later */
	if (rc == -UNI_EMISMATCH)
		return uni_err_set(err, UNI_EMISMATCH,
			"the guest's memory does not hold the image's code: is it the image that "
			"pid %d booted%s%s, and has it been loaded yet?",
			s->pid, s->cmdline.image[0] != '\0' ? ": " : "", s->cmdline.image);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"cannot read the memory of pid %d: %s", s->pid, uni_strerror(rc));
	ret->proof |=
		UNI_RAM_PROOF_TEXT | (walk_text(s, ret) == WALK_YES ? UNI_RAM_PROOF_WALK : 0u);
	return 0;
}

static void describe_ram(struct search *s, const struct place *p, uint64_t begin_ns)
{
	struct uni_vmm_ram_info *i = &s->info;
	char changed[48] = "";

	i->hva0 = p->hva0;
	i->proof = p->proof;
	i->nr_differ = p->differ;
	for (uint32_t k = 0; k < p->nr; k++)
		i->size_bytes += p->region[k].size;
	i->scan_ns = uni_now_ns() - begin_ns;
	if (p->differ != 0)
		(void)snprintf(
			changed, sizeof(changed), " but for %" PRIu64 " changed bytes", p->differ);
	(void)snprintf(i->note, sizeof(i->note), "RAM by %s: %" PRIu64 " MiB%s%s%s%s",
		(i->proof & UNI_RAM_PROOF_VMM) != 0 ? "the VMM's word" : "image scan",
		i->size_bytes >> 20, (i->proof & UNI_RAM_PROOF_TEXT) != 0 ? ", code verified" : "",
		changed, (i->proof & UNI_RAM_PROOF_WALK) != 0 ? ", page walk verified" : "",
		s->cmdline.mem_bytes > i->size_bytes ? ", RAM above the first hole not found" : "");
}

static int find_ram(struct search *s, struct uni_gmem **ret, struct uni_err *err)
{
	uint64_t begin_ns = uni_now_ns();
	struct place p = { 0 };
	int rc = uni_vmm_cmdline_read(s->pid, &s->cmdline);

	if (rc != 0)
		return uni_err_set(err, UNI_EGONE, "there is no process %d", s->pid);
	rc = uni_vmm_maps_read(s->pid, &s->maps, err);
	if (rc != 0)
		return rc;
	rc = find_by_vmm(s, &p, err);
	if (rc == -UNI_ENOENT && !s->has_text)
		return uni_err_set(err, UNI_EINVAL,
			"guest RAM of pid %d cannot be found without an image (or, for QEMU, a QMP "
			"socket): name the image",
			s->pid);
	if (rc == -UNI_ENOENT)
		rc = find_by_image(s, &p, err);
	if (rc != 0)
		return rc;
	describe_ram(s, &p, begin_ns);
	return make_gmem(s->pid, &p, ret, err);
}

int uni_vmm_ram_attach(int pid, const struct uni_vmm_ram_opts *opts, struct uni_gmem **ret,
	struct uni_vmm_ram_info *info_ret, struct uni_err *err)
{
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return uni_err_nomem(err);
	s->pid = pid;
	s->opts = opts;
	s->has_text = uni_scan_pick(opts->text, opts->nr_text, &s->probe);
	s->arch = opts->arch != NULL ? opts->arch : &uni_arch_x86_64;
	rc = find_ram(s, ret, err);
	uni_vmm_maps_deinit(&s->maps);
	if (rc == 0 && info_ret != NULL)
		*info_ret = s->info;
	return rc;
}
