/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/kernel.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/cfi.h"
#include "arch/stop.h"
#include "base/checked.h"
#include "base/privilege.h"
#include "mem/as.h"
#include "backend/kvm/bpf/exit_progs.h"
#include "backend/kvm/bpf/object.h"
#include "backend/kvm/bpf/stream.h"
#include "backend/shared.h"

#define TEXT_MAX 16
#define PAGE	 4096u

struct text_place {
	uint64_t gva, paddr, size;
};

struct uni_kvm_kernel {
	int pid;
	struct uni_kvm_bpf *bpf;
	bool owned; /* nobody else uses bpf */
	struct uni_kvm_scan scan;
	struct uni_kvm_stream *stream; /* NULL: sampling was never started */
	struct uni_regs sys;	       /* only sys[] */
	uint32_t nr_text;
	struct text_place text[TEXT_MAX];
};

/* Used while sampling is being started. */
struct reader {
	const struct uni_kvm_kernel *k;
	const struct uni_arch *arch;
	const struct uni_unwind_hints *hints;
	struct uni_gmem *gmem;
	struct uni_as *as; /* NULL: no memory */
	bool paged;	   /* as has a vCPU's page tables */
};

static void free_shared(void *bpf)
{
	uni_kvm_bpf_unload(bpf);
}

static int load_programs(struct uni_kvm_bpf **ret, struct uni_err *err)
{
	if (uni_privilege_is_dropped())
		return uni_err_set(err, UNI_EPERM,
			"uniscope has given up the rights to load programs into the kernel");
	return uni_kvm_bpf_load(ret, err);
}

static int get_bpf(struct uni_kvm_kernel *k, struct uni_target_shared *shared, struct uni_err *err)
{
	int rc = 0;

	k->owned = shared == NULL;
	if (k->owned)
		return load_programs(&k->bpf, err);
	(void)pthread_mutex_lock(&shared->lock);
	if (shared->kvm == NULL) {
		rc = load_programs(&k->bpf, err);
		shared->kvm = k->bpf;
		shared->kvm_free = free_shared;
	}
	k->bpf = shared->kvm;
	(void)pthread_mutex_unlock(&shared->lock);
	return rc;
}

static void kernel_trial(struct uni_err *sampler_err, struct uni_err *exits_err)
{
	struct uni_kvm_bpf *b = NULL;

	if (uni_kvm_bpf_load(&b, sampler_err) != 0)
		return;
	if (exits_err != NULL && uni_kvm_exit_progs_get(b, exits_err) == 0)
		uni_kvm_exit_progs_put(b);
	uni_kvm_bpf_unload(b);
}

static void kernel_close(struct uni_kvm_kernel *k)
{
	if (k == NULL)
		return;
	uni_kvm_stream_destroy(k->stream);
	if (k->owned)
		uni_kvm_bpf_unload(k->bpf);
	free(k);
}

static int kernel_open(
	int pid, struct uni_target_shared *shared, struct uni_kvm_kernel **ret, struct uni_err *err)
{
	struct uni_kvm_kernel *k = calloc(1, sizeof(*k));
	int rc;

	if (k == NULL)
		return uni_err_nomem(err);
	k->pid = pid;
	rc = get_bpf(k, shared, err);
	if (rc == 0)
		rc = uni_kvm_scan(k->bpf, pid, &k->scan, err);
	if (rc == 0)
		rc = uni_kvm_scan_allow(&k->scan, err);
	if (rc == 0)
		*ret = k;
	else
		kernel_close(k);
	return rc;
}

static int kernel_hand_over(
	int pid, struct uni_target_shared *shared, bool exits, struct uni_err *err)
{
	struct uni_kvm_kernel k = { 0 };
	int rc = get_bpf(&k, shared, err);

	return rc == 0 ? uni_kvm_bpf_hand_over(k.bpf, pid, exits, err) : rc;
}

static const struct uni_kvm_scan *kernel_scan(const struct uni_kvm_kernel *k)
{
	return &k->scan;
}

static int kernel_look(struct uni_kvm_kernel *k)
{
	return uni_kvm_scan(k->bpf, k->pid, &k->scan, NULL);
}

static size_t kernel_regions(
	const struct uni_kvm_kernel *k, struct uni_gmem_region *ret, size_t cap)
{
	size_t n = uni_min((size_t)k->scan.nr_slots, cap);

	for (size_t i = 0; i < n; i++)
		ret[i] = (struct uni_gmem_region){ .start = k->scan.slot[i].gpa,
			.size = k->scan.slot[i].size,
			.cookie = k->scan.slot[i].hva };
	return n;
}

static int kernel_gpa2hva(void *ctx, uint64_t gpa, uint64_t *hva_ret)
{
	const struct uni_kvm_kernel *k = ctx;

	for (uint32_t i = 0; i < k->scan.nr_slots; i++) {
		const struct uni_bpf_slot *s = &k->scan.slot[i];

		if (!uni_range_has(s->gpa, s->size, gpa))
			continue;
		*hva_ret = s->hva + (gpa - s->gpa);
		return 0;
	}
	return -UNI_ENOENT;
}

static void kernel_keep_text(struct uni_kvm_kernel *k, const struct uni_text_hint *text, size_t nr)
{
	for (size_t i = 0; i < nr && k->nr_text < TEXT_MAX; i++) {
		if (text[i].exec)
			k->text[k->nr_text++] =
				(struct text_place){ text[i].gva, text[i].paddr, text[i].size };
	}
}

static void kernel_keep_sys(struct uni_kvm_kernel *k, const struct uni_regs *regs)
{
	k->sys = *regs;
}

/* Reads the part of [gva, gva + len) in one page, by the image's own physical address. */
static bool read_physical(const struct reader *r, uint64_t gva, void *buf, size_t len)
{
	for (uint32_t i = 0; i < r->k->nr_text; i++) {
		const struct text_place *t = &r->k->text[i];

		if (uni_range_contains(t->gva, t->size, gva, len) &&
			uni_gmem_read(r->gmem, uni_gpa_of(t->paddr + (gva - t->gva)), buf, len) ==
				0)
			return true;
	}
	return false;
}

/* Missing bytes stay zero: no chain can lead through such code. */
static void read_code(void *ctx, uint64_t gva, void *buf, size_t len)
{
	const struct reader *r = ctx;
	uint8_t *p = buf;

	while (len != 0) {
		size_t n = uni_min(len, (size_t)(PAGE - gva % PAGE));

		if ((!r->paged || uni_as_read(r->as, uni_gva_of(gva), p, n) != 0) &&
			!read_physical(r, gva, p, n))
			memset(p, 0, n);
		p += n;
		gva += n;
		len -= n;
	}
}

/*
 * Makes this vCPU's address space current; false: it is not known. *paged_ret: it has page tables.
 */
static bool take_space(struct reader *r, const struct uni_bpf_regs *from, struct uni_regs *regs_ret,
	bool *paged_ret)
{
	struct uni_pt_root root;

	uni_kvm_scan_regs(from, regs_ret);
	if (r->as == NULL || regs_ret->state == UNI_VCPU_UNKNOWN ||
		r->arch->paging(regs_ret, &root) != 0)
		return false;
	uni_as_begin(r->as, &root);
	*paged_ret = root.geometry->nr_levels != 0;
	return true;
}

static bool reg_of(const struct reader *r, const struct uni_regs *regs, uint8_t reg, uint64_t *ret)
{
	*ret = regs->sp;
	return reg == r->arch->sp_reg ? regs->sp_valid : uni_regs_get(regs, reg, ret);
}

/*
 * One frame up by the image's unwind rows, as far as the kernel side knows them. Returns 0; 1: the
 * chain ends; -UNI_ENOTSUP: use frame pointers.
 */
static int row_step(const struct reader *r, bool leaf, struct uni_regs *regs, enum uni_stop *stop)
{
	const struct uni_cfi_rule *rule = NULL;
	uint64_t cfa, pc, fp;

	if (r->hints != NULL && r->hints->cfi != NULL)
		rule = uni_cfi_find(r->hints->cfi, leaf ? regs->pc : regs->pc - 1);
	*stop = UNI_STOP_ROOT;
	if (rule != NULL && rule->ra.how == UNI_CFI_UNDEF)
		return 1;
	if (rule == NULL || rule->cfa.how != UNI_CFI_REG || rule->ra.how != UNI_CFI_AT_CFA ||
		!reg_of(r, regs, rule->cfa.reg, &cfa))
		return -UNI_ENOTSUP;
	cfa += (uint64_t)(int64_t)rule->cfa.arg;
	*stop = UNI_STOP_FAULT;
	if (uni_as_read_u64(r->as, uni_gva_of(cfa + (uint64_t)(int64_t)rule->ra.arg), &pc) != 0)
		return 1;
	*stop = UNI_STOP_LOOP;
	if (pc == 0)
		*stop = uni_hints_is_first(r->hints, leaf ? regs->pc : regs->pc - 1)
				? UNI_STOP_ROOT
				: UNI_STOP_BADPC;
	if (pc == 0 || cfa < regs->sp || (cfa == regs->sp && !leaf))
		return 1;
	*stop = UNI_STOP_BADPC;
	if (!uni_range_has(r->hints->text_start, r->hints->text_size, pc - 1))
		return 1;
	if (rule->fp.how == UNI_CFI_AT_CFA &&
		uni_as_read_u64(r->as, uni_gva_of(cfa + (uint64_t)(int64_t)rule->fp.arg), &fp) == 0)
		uni_regs_set(regs, r->arch->fp_reg, fp);
	uni_regs_set(regs, r->arch->sp_reg, cfa);
	regs->pc = pc;
	regs->sp = cfa;
	return 0;
}

static int chain_step(const struct reader *r, bool leaf, struct uni_regs *regs, enum uni_stop *stop)
{
	int rc = row_step(r, leaf, regs, stop);

	return rc != -UNI_ENOTSUP ? rc : r->arch->fp_step(r->as, r->hints, leaf, regs, stop);
}

static uint16_t chain_from_regs(
	void *ctx, const struct uni_bpf_regs *from, uint64_t *pc_ret, uint8_t *stop_ret)
{
	enum uni_stop stop = UNI_STOP_NOREGS;
	struct reader *r = ctx;
	struct uni_regs regs;
	uint16_t nr = 0;
	bool paged;

	*stop_ret = UNI_STOP_NOREGS;
	if (!take_space(r, from, &regs, &paged))
		return 0;
	pc_ret[nr++] = regs.pc;
	while (chain_step(r, nr == 1, &regs, &stop) == 0) {
		stop = UNI_STOP_LIMIT;
		if (nr == UNI_BPF_FRAMES)
			break;
		pc_ret[nr++] = regs.pc;
	}
	*stop_ret = (uint8_t)stop;
	/* In the kernel side's form. */
	if (stop == UNI_STOP_BADPTR && regs.r[r->arch->fp_reg] == 0)
		*stop_ret = UNI_BPF_STOP_FP_0;
	return nr;
}

/* KVM on this host tells which samples hit the guest; software KVMs do not. */
static bool host_splits(void)
{
	return access("/sys/module/kvm_intel", F_OK) == 0 ||
	       access("/sys/module/kvm_amd", F_OK) == 0;
}

static int kernel_start(struct uni_kvm_kernel *k, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_gmem *gmem, const struct uni_arch *arch,
	struct uni_err *err)
{
	/* Without a budget: nothing is stopped for this. */
	const struct uni_as_budget budget = { UINT32_MAX, UINT32_MAX, 0 };
	struct reader reader = { .k = k, .arch = arch, .hints = hints, .gmem = gmem };
	struct uni_kvm_stream_opts opts = { .bpf = k->bpf,
		.pid = k->pid,
		.arch = arch,
		.hints = hints,
		.code = { read_code, &reader },
		.unwinder = { chain_from_regs, &reader },
		.sys = k->sys,
		.split = host_splits() };
	struct uni_regs regs;
	int rc;

	if (k->stream != NULL) {
		uni_kvm_stream_destroy(k->stream);
		k->stream = NULL;
	}
	rc = uni_kvm_scan(k->bpf, k->pid, &k->scan, err);
	if (rc != 0)
		return rc;
	rc = uni_as_create(gmem, &budget, &reader.as, err);
	for (uint32_t i = 0; rc == 0 && !reader.paged && i < k->scan.nr_vcpus; i++)
		(void)take_space(&reader, &k->scan.vcpu[i].vcpu.regs, &regs, &reader.paged);
	if (rc == 0)
		rc = uni_kvm_stream_start(&opts, cfg, &k->stream, err);
	uni_as_destroy(reader.as);
	return rc;
}

static int kernel_read(struct uni_kvm_kernel *k, const struct uni_stream_sink *sink)
{
	return k->stream != NULL ? uni_kvm_stream_read(k->stream, sink) : -UNI_EINVAL;
}

static void kernel_stats(const struct uni_kvm_kernel *k, struct uni_stream_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (k->stream != NULL)
		uni_kvm_stream_stats(k->stream, ret);
}

static int kernel_times(struct uni_kvm_kernel *k, uint32_t vcpu, struct uni_vcpu_times *ret)
{
	return k->stream != NULL ? uni_kvm_stream_times(k->stream, vcpu, ret) : -UNI_EINVAL;
}

static int kernel_stop(struct uni_kvm_kernel *k)
{
	if (k->stream != NULL)
		uni_kvm_stream_stop(k->stream);
	return 0;
}

static bool kernel_back(struct uni_kvm_kernel *k, struct uni_stream_back *ret)
{
	return k->stream != NULL && uni_kvm_stream_back(k->stream, ret);
}

const struct uni_kvm_kernel_ops *uni_kvm_kernel_ops(struct uni_err *err)
{
	static const struct uni_kvm_kernel_ops ops = {
		.trial = kernel_trial,
		.open = kernel_open,
		.hand_over = kernel_hand_over,
		.close = kernel_close,
		.scan = kernel_scan,
		.look = kernel_look,
		.regions = kernel_regions,
		.gpa2hva = kernel_gpa2hva,
		.keep_text = kernel_keep_text,
		.keep_sys = kernel_keep_sys,
		.start = kernel_start,
		.read = kernel_read,
		.stats = kernel_stats,
		.times = kernel_times,
		.stop = kernel_stop,
		.back = kernel_back,
	};

	return &ops;
}
