/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/xen/abi.h"
#include "backend/xen/store.h"
#include "backend/xen/xen.h"

#define GIB	     (1ull << 30)
#define PV_SPACE     (1ull << 52) /* machine frames may be anywhere */
#define STACK_PAGES  4u
#define PAUSED_LOOKS 4
#define PAUSED_NS    (3 * UNI_NSEC_PER_MSEC)

/*
 * Bytes that are copied at once. A copy from a mapping costs only its bytes. So a granule has only
 * what belongs together: a few frames of a stack, a few table entries.
 */
#define GRANULE 256u

static const char keys[] = "dom pause";

static int gmem_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct uni_xen_target *t = ctx;
	int rc = uni_xen_pages_read(t->pages, r->start + offset, buf, len);

	/* A missing frame may be a guest's trick, or the guest may have ended. */
	if (rc != 0 && !t->gone && t->next_look_ns != 0)
		uni_xen_look(t, uni_now_ns());
	return rc != 0 && t->gone ? -UNI_EGONE : rc;
}

static const struct uni_gmem_ops gmem_ops = { .read = gmem_read };

void uni_xen_target_free(struct uni_xen_target *t)
{
	uni_as_destroy(t->as);
	uni_gmem_destroy(t->gmem);
	if (t->pages != NULL)
		uni_xen_pages_destroy(t->pages);
	uni_xen_keeper_end(&t->keeper);
	uni_xen_call_close(t->call);
	uni_xen_lib_close(&t->lib);
	free(t);
}

/*
 * A PV domain's page tables have machine frames, which can be anywhere. Other domains have memory
 * from 0 on, with a hole below 4 GiB. A frame that the domain does not own cannot be mapped,
 * whatever its tables say.
 */
static int make_gmem(struct uni_xen_target *t, struct uni_err *err)
{
	uint64_t bytes = uni_max(t->dom.max_mem_bytes, t->dom.mem_bytes);
	struct uni_gmem_region r[2] = { { .start = 0, .size = PV_SPACE } };
	size_t nr = 1;
	int rc;

	if (t->dom.hvm && bytes != 0 && bytes < PV_SPACE) {
		r[0].size = uni_min(bytes, 4 * GIB);
		r[1] = (struct uni_gmem_region){ .start = 4 * GIB, .size = bytes };
		nr = bytes > GIB ? 2 : 1; /* the hole is at most 3 GiB */
	}
	rc = uni_gmem_create(&gmem_ops, t, UNI_GMEM_PHYSICAL, r, nr, &t->gmem, err);
	if (rc == 0)
		uni_gmem_set_granule(t->gmem, GRANULE);
	if (rc == 0)
		uni_gmem_set_direct(t->gmem);
	return rc;
}

/* Is it paused for longer than another profiler's sample takes? */
static bool stays_paused(struct uni_xen_target *t)
{
	for (int i = 0; i < PAUSED_LOOKS && t->dom.paused; i++) {
		struct timespec nap = uni_ns_timespec(PAUSED_NS);
		struct uni_xen_dominfo d;

		(void)nanosleep(&nap, NULL);
		if (uni_xen_call_info(t->call, t->dom.domid, &d) == 0)
			t->dom = d;
	}
	return t->dom.paused;
}

/* Maps the frames of the stacks now, in one call, instead of one by one in the first pauses. */
static void map_stacks(struct uni_xen_target *t)
{
	uint64_t frame[UNI_XEN_BATCH];
	const struct uni_vcpuset all = uni_vcpuset_first(t->nr_vcpus);
	struct uni_vcpuset have;
	size_t n = 0;

	if (uni_xen_call_contexts(t->call, t->dom.domid, &all, false, &have) != 0)
		return;
	for (uint32_t v = 0; v < t->nr_vcpus; v++) {
		struct uni_pt_root root;
		struct uni_regs regs;
		uni_gpa gpa;

		if (!uni_vcpuset_has(&have, v))
			continue;
		t->arch->regs(uni_xen_call_context(t->call, v), !t->dom.hvm, &regs);
		if (t->base.arch->paging(&regs, &root) != 0)
			continue;
		uni_as_begin(t->as, &root);
		for (uint64_t i = 0; i < STACK_PAGES && n < UNI_XEN_BATCH; i++) {
			uni_gva at = uni_gva_of(regs.sp + i * UNI_XEN_PAGE);

			if (uni_as_translate(t->as, at, &gpa, NULL) == 0)
				frame[n++] = gpa.v / UNI_XEN_PAGE;
		}
	}
	uni_xen_pages_map(t->pages, frame, n);
}

static int spec_pause(const struct uni_spec *spec, bool *pause_ret, struct uni_err *err)
{
	const char *v = uni_spec_get(spec, "pause");

	*pause_ret = v == NULL || strcmp(v, "yes") == 0;
	if (*pause_ret || strcmp(v, "no") == 0)
		return 0;
	return uni_err_set(err, UNI_EUSAGE, "target %s: pause= is yes or no", spec->text);
}

static int find_domain(const struct uni_spec *spec, struct uni_xen_call *x,
	struct uni_xen_dominfo *ret, struct uni_err *err)
{
	const char *dom = uni_spec_get(spec, "dom");
	uint32_t domid;
	int rc;

	if (dom == NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"target %s: which domain? xen:dom=NUMBER or xen:dom=NAME", spec->text);
	rc = uni_xen_store_find(x, dom, &domid, err);
	if (rc == 0)
		rc = uni_xen_call_info(x, domid, ret);
	if (rc == -UNI_EGONE || (rc == 0 && ret->dying))
		return uni_err_set(err, UNI_ENOENT,
			"target %s: there is no such domain; `uniscope ls` or `xl list` shows them",
			spec->text);
	if (rc < 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"target %s: Xen tells nothing about it (%s)", spec->text, uni_strerror(rc));
	return 0;
}

static int check_domain(struct uni_xen_target *t, struct uni_err *err)
{
	unsigned bits = 0;

	if (t->dom.nr_vcpus == 0)
		return uni_err_set(
			err, UNI_EAGAIN, "domain %" PRIu32 " has no vCPU yet", t->dom.domid);
	/* Other domains only show their width in their registers, and may change it at any time. */
	if (!t->dom.hvm && uni_xen_call_width(t->call, t->dom.domid, &bits) == 0 && bits == 32)
		return uni_err_set(err, UNI_ENOTSUP,
			"domain %" PRIu32 " is a 32-bit PV guest: only 64-bit ones are known",
			t->dom.domid);
	return 0;
}

/* If two uniscopes use one domain, the second one need not pause it. */
static int start_keeper(struct uni_xen_target *t, const struct uni_xen_module *m,
	const char *state_dir, bool asked, struct uni_err *err)
{
	int rc = uni_xen_keeper_start(&t->keeper, m, state_dir, &t->dom, err);

	if (rc != -UNI_EBUSY || asked)
		return rc;
	*err = (struct uni_err){ 0 };
	t->pause = false;
	(void)snprintf(t->info.why, sizeof(t->info.why),
		"another uniscope pauses the domain, so this one does not");
	return 0;
}

static void heal_domains(struct uni_xen_target *t, const char *state_dir)
{
	uint32_t domid = 0;
	unsigned nr = uni_xen_heal(t->call, state_dir, &domid);

	if (nr != 0)
		uni_xen_say_healed(domid, &t->info);
}

static int open_domain(struct uni_xen_target *t, const struct uni_xen_module *m,
	const char *state_dir, const struct uni_spec *spec, struct uni_err *err)
{
	int rc = check_domain(t, err);

	if (rc != 0)
		return rc;
	t->nr_vcpus = uni_min(t->dom.nr_vcpus, (uint32_t)UNI_VCPU_MAX);
	t->base.nr_left_off = t->dom.nr_vcpus - t->nr_vcpus;
	rc = uni_xen_call_room(t->call, t->arch->ctx_bytes, t->nr_vcpus, err);
	if (rc != 0)
		return rc;
	t->dead = t->dom.shutdown;
	t->found_paused = !t->dead && stays_paused(t);
	if (t->pause && !t->dead && !t->found_paused)
		rc = start_keeper(t, m, state_dir, uni_spec_get(spec, "pause") != NULL, err);
	if (rc == 0)
		rc = uni_xen_pages_create(t->call, t->dom.domid, &t->pages, err);
	if (rc == 0)
		rc = make_gmem(t, err);
	if (rc == 0)
		rc = uni_as_create(t->gmem, NULL, &t->as, err);
	return rc;
}

void uni_xen_target_begin(struct uni_xen_target *t)
{
	if (t->keep != UNI_XEN_OWN)
		t->keep = UNI_XEN_KEPT_USED;
	map_stacks(t);
	t->next_drop_ns = uni_now_ns() + UNI_XEN_REMAP_NS;
}

void uni_xen_target_end(struct uni_xen_target *t)
{
	if (t->keep == UNI_XEN_OWN) {
		uni_xen_target_free(t);
		return;
	}
	t->keep = UNI_XEN_KEPT;
	uni_xen_pages_drop(t->pages);
}

int uni_xen_target_open(struct uni_xen_target *t, const struct uni_xen_module *m,
	const char *state_dir, const struct uni_spec *spec, struct uni_err *err)
{
	int rc = uni_spec_check_keys(spec, keys, err);

	t->base.ops = &uni_target_xen;
	t->arch = uni_xen_arch_of_host();
	if (rc == 0)
		rc = spec_pause(spec, &t->pause, err);
	if (rc == 0 && t->arch == NULL)
		rc = uni_err_set(err, UNI_ENOTSUP, "xen: registers of this machine are not known");
	if (rc != 0)
		return rc;
	t->base.arch = t->arch->arch;
	rc = uni_xen_call_open(m, &t->call, err);
	if (rc != 0)
		return rc;
	heal_domains(t, state_dir);
	rc = find_domain(spec, t->call, &t->dom, err);
	if (rc == 0)
		rc = open_domain(t, m, state_dir, spec, err);
	if (rc == 0)
		uni_xen_describe(t->call, &t->dom, &t->info);
	return rc;
}

int uni_xen_target_make(
	const struct uni_spec *spec, struct uni_xen_target **ret, struct uni_err *err)
{
	struct uni_xen_target *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return uni_err_set(err, UNI_ENOMEM, "xen: out of memory");
	t->keeper = (struct uni_xen_keeper){ .fd = -1, .sock = -1 };
	rc = uni_xen_host_check(err);
	if (rc == 0)
		rc = uni_xen_lib_open(&t->lib, err);
	if (rc == 0)
		rc = uni_xen_target_open(t, t->lib.m, UNI_XEN_STATE_DIR, spec, err);
	if (rc != 0)
		uni_xen_target_free(t);
	else
		*ret = t;
	return rc;
}

int uni_xen_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	const struct uni_xen_target *kept = uni_xen_kept(spec);
	struct uni_xen_lib lib = { 0 };
	struct uni_xen_call *x = NULL;
	struct uni_xen_dominfo d;
	int rc = uni_spec_check_keys(spec, keys, err);

	memset(ret, 0, sizeof(*ret));
	if (rc == 0 && kept != NULL) {
		if (kept->keep == UNI_XEN_KEPT)
			uni_xen_describe(kept->call, &kept->dom, ret);
		else
			*ret = kept->info;
		return 0;
	}
	if (rc == 0)
		rc = uni_xen_host_check(err);
	if (rc == 0)
		rc = uni_xen_lib_open(&lib, err);
	if (rc == 0)
		rc = uni_xen_call_open(lib.m, &x, err);
	if (rc == 0)
		rc = find_domain(spec, x, &d, err);
	if (rc == 0)
		uni_xen_describe(x, &d, ret);
	uni_xen_call_close(x);
	uni_xen_lib_close(&lib);
	return rc;
}
