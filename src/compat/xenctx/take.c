/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/checked.h"
#include "base/clock.h"
#include "compat/xenctx/xenctx.h"

/* All a vCPU can ask for: a stack, a memory dump and the way to its callers. */
static const struct uni_as_budget budget = {
	.bytes = 4u << 20,
	.table_loads = 16384,
	.wall_ns = 200 * UNI_NSEC_PER_MSEC,
};

void uni_xenctx_free(struct uni_xenctx *x)
{
	for (size_t v = 0; x->vcpu != NULL && v < x->nr; v++) {
		if (x->vcpu[v] == NULL)
			continue;
		free(x->vcpu[v]->stack.v);
		free(x->vcpu[v]->memory.v);
		free(x->vcpu[v]);
	}
	free(x->vcpu);
	free(x->regs);
	x->vcpu = NULL;
	x->regs = NULL;
}

static bool reserve_bytes(struct uni_xenctx_bytes *b, uint64_t size)
{
	b->v = malloc(size);
	return b->v != NULL;
}

static uint64_t stack_pages(const struct uni_xenctx_args *args)
{
	return uni_max(args->pages, (uint64_t)UNI_XENCTX_PAGES_READ);
}

/* Before the guest is held: room for all that may be asked for. */
static int prepare_context(
	const struct uni_xenctx_args *args, struct uni_xenctx *x, struct uni_err *err)
{
	x->regs = calloc(x->nr, sizeof(*x->regs));
	x->vcpu = calloc(x->nr, sizeof(*x->vcpu));
	if (x->regs == NULL || x->vcpu == NULL)
		return uni_err_nomem(err);
	for (size_t v = 0; v < x->nr; v++) {
		if (!args->all_vcpus && v != args->vcpu)
			continue;
		x->vcpu[v] = calloc(1, sizeof(*x->vcpu[v]));
		if (x->vcpu[v] == NULL ||
			!reserve_bytes(&x->vcpu[v]->stack, stack_pages(args) * UNI_XENCTX_PAGE) ||
			!reserve_bytes(&x->vcpu[v]->memory, args->pages * UNI_XENCTX_PAGE))
			return uni_err_nomem(err);
	}
	return 0;
}

/* Bytes from addr to the end of that many pages, the first being addr's own. */
static uint64_t to_limit(uint64_t pages, uint64_t addr)
{
	uint64_t size = pages * UNI_XENCTX_PAGE - addr % UNI_XENCTX_PAGE;

	return uni_min(size, UINT64_MAX - addr);
}

static void take_bytes(
	struct uni_as *as, uint64_t addr, uint64_t size, uint64_t shown, struct uni_xenctx_bytes *b)
{
	b->addr = addr;
	b->shown = shown;
	b->len = uni_as_read_some(as, (uni_gva){ addr }, b->v, size);
}

static void take_code(struct uni_as *as, uint64_t pc, struct uni_xenctx_vcpu *v)
{
	for (unsigned i = 0; i < UNI_XENCTX_CODE; i++)
		v->has_code[i] = uni_as_read(as, (uni_gva){ pc - UNI_XENCTX_BEFORE + i },
					 &v->code[i], 1) == 0;
}

static uint64_t memory_size(const struct uni_xenctx_args *args)
{
	uint64_t most = to_limit(args->pages, args->memory), size;

	if (__builtin_mul_overflow(args->lines, args->bytes_per_line, &size))
		return most;
	return uni_min(size, most);
}

static void take_vcpu(const struct uni_guest *g, const struct uni_xenctx_args *args,
	struct uni_as *as, const struct uni_regs *regs, struct uni_xenctx_vcpu *v)
{
	uint64_t stack = args->has_dump ? args->dump : regs->sp;

	/* Starts the budget, and the address space, of this vCPU. */
	uni_unwind(&g->unwinder, as, regs, &v->chain);
	if (regs->pc_valid)
		take_code(as, regs->pc, v);
	if (regs->sp_valid || args->has_dump)
		take_bytes(as, stack, to_limit(stack_pages(args), stack),
			to_limit(args->pages, stack), &v->stack);
	if (args->has_memory)
		take_bytes(as, args->memory, memory_size(args), memory_size(args), &v->memory);
}

int uni_xenctx_take(struct uni_guest *g, const struct uni_xenctx_args *args, struct uni_xenctx *x,
	struct uni_err *err)
{
	struct uni_pause pause = { 0 };
	struct uni_as *as = NULL;
	struct uni_vcpuset all;
	int rc;

	x->nr = (size_t)g->t->ops->nr_vcpus(g->t);
	if (!args->all_vcpus && args->vcpu >= x->nr)
		return uni_err_set(err, UNI_EUSAGE,
			"there is no vCPU %llu: the guest has %zu, from 0 on",
			(unsigned long long)args->vcpu, x->nr);
	rc = prepare_context(args, x, err);
	if (rc == 0)
		rc = uni_as_create(g->t->ops->gmem(g->t), &budget, &as, err);
	if (rc != 0)
		return rc;
	all = uni_vcpuset_first((uint32_t)x->nr);
	rc = uni_guest_hold(g, &pause, &all, x->regs, err);
	for (size_t v = 0; rc == 0 && v < x->nr; v++) {
		if (x->vcpu[v] == NULL || x->regs[v].state == UNI_VCPU_OFFLINE)
			continue;
		if (g->t->ops->more_regs != NULL)
			(void)g->t->ops->more_regs(g->t, (uint32_t)v, &x->vcpu[v]->more);
		take_vcpu(g, args, as, &x->regs[v], x->vcpu[v]);
	}
	(void)uni_pause_end(&pause);
	uni_as_destroy(as);
	return rc;
}
