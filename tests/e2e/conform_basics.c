/* SPDX-License-Identifier: BSD-2-Clause */
/* Attach, registers, hold and release, memory at its edges, pauses. */
#include "../support/vcpus.h"
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "mem/as.h"
#include "backend/guard.h"

#define RUNS_MS		20000
#define STANDS_MS	60
#define HOLDS_MAX	20
#define HOLD_LONGEST_NS (800 * UNI_NSEC_PER_MSEC)

static bool can_see(struct suite *s, const char *what)
{
	if (observer_sees(&s->obs))
		return true;
	skip(s, what, "the guest cannot be observed");
	return false;
}

static void check_runs(struct suite *s, const char *when)
{
	if (can_see(s, when))
		(void)check(s, observer_runs(&s->obs, RUNS_MS), "the guest runs %s", when);
}

static void check_registers(struct suite *s, struct uni_target *t, const struct uni_regs *r)
{
	unsigned caps = t->ops->caps(t);
	struct uni_pt_root root;

	(void)check(s, r->pc_valid && r->sp_valid, "pc and sp are known: %#llx, %#llx",
		(unsigned long long)r->pc, (unsigned long long)r->sp);
	if (s->obs.text_size != 0)
		(void)check(s, uni_range_has(s->obs.text_gva, s->obs.text_size, r->pc),
			"pc %#llx lies in the image's code", (unsigned long long)r->pc);
	if ((caps & UNI_CAP_SYSREGS) == 0)
		skip(s, "system registers select page tables", "target without system registers");
	else
		(void)check(s, t->arch->paging != NULL && t->arch->paging(r, &root) == 0,
			"system registers select page tables");
}

struct held {
	int first, again, release;
	bool stands, same;
};

/* One hold, and what it shows. */
static struct held hold_look(struct suite *s, struct uni_target *t)
{
	struct uni_regs a = { 0 }, b = { 0 };
	struct held h = { .first = hold(t, &a) };

	h.stands = !observer_sees(&s->obs) || observer_stands(&s->obs, STANDS_MS);
	h.again = hold(t, &b);
	h.same = a.pc == b.pc && a.sp == b.sp;
	h.release = t->ops->release(t);
	return h;
}

/* Twice, without a hold, after the end of one: all must be harmless. */
static void hold_and_release(struct suite *s, struct uni_target *t)
{
	struct uni_regs a;
	struct held h;
	uint64_t began_ns;

	(void)check(s, t->ops->release(t) == 0, "release without snap");
	/* After a second, a guardian ends the hold of a profiler that a busy host let wait. */
	for (int i = 0; i < HOLDS_MAX; i++) {
		began_ns = uni_now_ns();
		h = hold_look(s, t);
		if (uni_now_ns() - began_ns < HOLD_LONGEST_NS)
			break;
	}
	(void)check(s, h.first == 0, "snap and hold");
	if (can_see(s, "a held guest stands"))
		(void)check(s, h.stands, "a held guest stands");
	(void)check(s, h.again == 0, "a second snap in a hold");
	/* It goes on to its next snapshot. */
	if (!is_recording(s))
		(void)check(s, h.same, "it finds the same registers");
	(void)check(s, h.release == 0, "release");
	check_runs(s, "after release");
	(void)check(s, t->ops->release(t) == 0, "release twice");
	check_runs(s, "after a second release");
	(void)check(s, t->ops->snap(t, VCPUS(1), &a, 0) == 0, "snap without hold");
	check_runs(s, "after snap without hold");
}

/* It tells whether a vCPU has run since the last pause: it grows then, and not in a hold. */
static void cpu_time(struct suite *s, struct uni_target *t)
{
	uint64_t held = 0, still = 0, ran = 0;
	struct uni_regs r;

	if (t->ops->cpu_most == NULL || !can_see(s, "CPU time"))
		return;
	(void)check(s, hold(t, &r) == 0 && t->ops->cpu_most(t, 0, &held) == 0,
		"CPU time is known in a hold");
	(void)check(s, observer_stands(&s->obs, STANDS_MS), "the guest stands meanwhile");
	(void)check(s,
		t->ops->cpu_most(t, 0, &still) == 0 &&
			still - held < STANDS_MS * UNI_NSEC_PER_MSEC / 8,
		"it does not grow: %llu ns", (unsigned long long)(still - held));
	(void)check(s, t->ops->release(t) == 0, "release");
	check_runs(s, "after that");
	(void)check(s, hold(t, &r) == 0 && t->ops->cpu_most(t, 0, &ran) == 0 && ran > still,
		"it grows when the guest runs: %llu ns", (unsigned long long)(ran - still));
	(void)check(s, t->ops->release(t) == 0, "release after that");
}

static void detach_held(struct suite *s)
{
	struct uni_target *t = attach(s);
	struct uni_regs r;

	if (t == NULL)
		return;
	(void)check(s, hold(t, &r) == 0, "hold before detach");
	uni_target_detach(t);
	check_runs(s, "after detach from a hold");
}

static void all_vcpus(struct suite *s, struct uni_target *t)
{
	struct uni_regs r[UNI_VCPU_MAX];
	int nr = t->ops->nr_vcpus(t), known = 0;
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)nr);
	const struct uni_vcpuset beyond = uni_vcpuset_one((uint32_t)nr);
	const uint64_t until_ns = uni_now_ns() + HOLD_NS;
	int rc;

	do
		rc = t->ops->snap(t, &all, r, 0);
	while (rc == -UNI_EAGAIN && uni_now_ns() < until_ns);
	for (int i = 0; i < nr; i++)
		known += r[i].pc_valid || r[i].state == UNI_VCPU_OFFLINE ||
			 r[i].state == UNI_VCPU_UNKNOWN;
	(void)check(s, rc == 0 && known == nr, "registers of all %d vCPUs together", nr);
	if (is_recording(s))
		return;
	(void)check(s, t->ops->snap(t, VCPUS(0), r, 0) == -UNI_EINVAL, "an empty set is refused");
	if (nr < UNI_VCPU_MAX)
		(void)check(s, t->ops->snap(t, &beyond, r, 0) == -UNI_EINVAL,
			"a vCPU that does not exist is refused");
}

void test_basics(struct suite *s)
{
	struct uni_target *t = attach(s);
	struct uni_target_info info;
	struct uni_regs r;
	unsigned caps;

	if (t == NULL)
		return;
	(void)check(s, true, "attach");
	caps = t->ops->caps(t);
	t->ops->info(t, &info);
	(void)printf("# %s\n", info.note);
	(void)check(s, (caps & caps_wanted(s)) == caps_wanted(s), "holds and system registers");
	(void)check(s, t->ops->nr_vcpus(t) >= 1 && t->ops->nr_vcpus(t) <= UNI_VCPU_MAX, "%d vCPUs",
		t->ops->nr_vcpus(t));
	if (!is_file(s))
		check_runs(s, "after attach");
	(void)check(s, hold(t, &r) == 0, "registers");
	check_registers(s, t, &r);
	(void)t->ops->release(t);
	all_vcpus(s, t);
	if ((caps & UNI_CAP_HOLD) != 0) {
		hold_and_release(s, t);
		cpu_time(s, t);
	} else {
		skip(s, "hold and release", "target without hold");
	}
	(void)check(s, t->ops->alive == NULL || t->ops->alive(t), "it is alive");
	uni_target_detach(t);
	if (is_file(s))
		return;
	check_runs(s, "after detach");
	if ((caps & UNI_CAP_HOLD) != 0)
		detach_held(s);
}

/* The edges of one region. If another region follows, the bytes behind are not tested. */
static void region_edges(struct suite *s, struct uni_gmem *m, size_t i)
{
	const struct uni_gmem_region *r = uni_gmem_region(m, i);
	uint64_t last = r->start + (r->size - 1);
	bool more = i + 1 < uni_gmem_nr_regions(m);
	bool adjacent = more && uni_gmem_region(m, i + 1)->start - last == 1;
	uint8_t b[2];
	int rc;

	(void)printf("# region %#llx, %#llx bytes\n", (unsigned long long)r->start,
		(unsigned long long)r->size);
	rc = uni_gmem_read(m, uni_gpa_of(last), b, 1);
	/* A stub that reads by its own translation has regions that are not all backed. */
	(void)check(s, rc == 0 || rc == -UNI_EFAULT, "the last byte of region %zu: %s", i,
		rc == 0 ? "read" : uni_strerror(rc));
	if (last == UINT64_MAX || adjacent)
		return;
	/* If the last byte cannot be read, that error comes first. */
	if (rc == 0)
		(void)check(s, uni_gmem_read(m, uni_gpa_of(last), b, 2) == -UNI_ERANGE,
			"one byte past region %zu is out of range", i);
	(void)check(s, uni_gmem_read(m, uni_gpa_of(last + 1), b, 1) == -UNI_ERANGE,
		"the first byte past region %zu is out of range", i);
}

/* Code read through the target's own page tables, or as the target translates, against the file. */
static bool read_code(struct uni_target *t, struct uni_as *as, uint64_t va, void *buf, size_t len)
{
	struct uni_pt_root root;
	struct uni_regs r;
	int rc = hold(t, &r);

	if (rc != 0)
		return false;
	if (uni_gmem_space(t->ops->gmem(t)) == UNI_GMEM_VIRTUAL) {
		uni_as_begin(as, NULL);
	} else {
		rc = t->arch->paging(&r, &root);
		if (rc == 0)
			uni_as_begin(as, &root);
	}
	if (rc == 0)
		rc = uni_as_read(as, uni_gva_of(va), buf, len);
	(void)t->ops->release(t);
	return rc == 0;
}

static void page_edges(struct suite *s, struct uni_target *t, struct uni_as *as)
{
	const struct uni_text_hint *h = NULL;
	size_t at, len;
	uint8_t buf[256];

	for (size_t i = 0; i < s->obs.nr_text; i++)
		h = s->obs.text[i].exec ? &s->obs.text[i] : h;
	if (h == NULL || h->size < 4096 + sizeof(buf)) {
		skip(s, "code across a page boundary", "no image given");
		return;
	}
	if (is_recording(s)) {
		skip(s, "code across a page boundary", "a file holds only what was looked at");
		return;
	}
	len = sizeof(buf);
	/* The last one: what the hypervisor writes into a guest (Xen's hypercall page) lies before.
	 */
	at = ((h->gva + h->size - len / 2) & ~4095ull) - h->gva - len / 2;
	(void)check(s,
		read_code(t, as, h->gva + at, buf, len) && memcmp(buf, h->bytes + at, len) == 0,
		"code across a page boundary is the image's");
	(void)check(s,
		read_code(t, as, h->gva + at + len / 2 - 1, buf, 1) &&
			buf[0] == h->bytes[at + len / 2 - 1],
		"the last byte of a page");
	(void)check(s, !read_code(t, as, 0x0000600000000000, buf, 8), "unmapped memory fails");
	check_runs(s, "after a failed read");
}

void test_memory(struct suite *s)
{
	struct uni_target *t = attach(s);
	struct uni_as *as = NULL;
	struct uni_gmem *m;

	if (t == NULL)
		return;
	m = t->ops->gmem(t);
	(void)check(s, uni_gmem_nr_regions(m) > 0, "%zu regions of %s memory",
		uni_gmem_nr_regions(m),
		uni_gmem_space(m) == UNI_GMEM_PHYSICAL ? "physical" : "virtual");
	for (size_t i = 0; i < uni_gmem_nr_regions(m) && i < 8; i++)
		region_edges(s, m, i);
	if (uni_as_create(m, &uni_as_budget_default, &as, NULL) == 0)
		page_edges(s, t, as);
	uni_as_destroy(as);
	uni_target_detach(t);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_pauses(uint64_t *ns, unsigned n, unsigned lost)
{
	uint64_t sum = 0;

	if (n == 0) {
		(void)printf("no samples, %u lost\n", lost);
		return;
	}
	qsort(ns, n, sizeof(*ns), compare);
	for (unsigned i = 0; i < n; i++)
		sum += ns[i];
	(void)printf("pause us: p50 %.1f p90 %.1f p99 %.1f max %.1f mean %.1f; %u samples, %u "
		     "lost\n",
		(double)ns[n / 2] / 1e3, (double)ns[n - n / 10 - 1] / 1e3,
		(double)ns[n - n / 100 - 1] / 1e3, (double)ns[n - 1] / 1e3, (double)sum / n / 1e3,
		n, lost);
}

/* As a sampler does it: registers, then some stack words through page tables. */
static bool one_sample(struct uni_target *t, struct uni_as *as, uint64_t *pause_ret)
{
	_cleanup_pause_ struct uni_pause p = { 0 };
	struct uni_pt_root root;
	struct uni_regs r;
	uint64_t word;

	if (uni_pause_begin(&p, t, VCPUS(1), &r) != 0)
		return false;
	if (uni_gmem_space(t->ops->gmem(t)) == UNI_GMEM_VIRTUAL)
		uni_as_begin(as, NULL);
	else if (t->arch->paging(&r, &root) == 0)
		uni_as_begin(as, &root);
	for (unsigned i = 0; i < 8; i++)
		(void)uni_as_read_u64(as, uni_gva_of(r.sp + 8 * i), &word);
	if (uni_pause_end(&p) != 0)
		return false;
	*pause_ret = p.end_ns - p.begin_ns;
	return true;
}

bool bench_pauses(struct suite *s, unsigned n, unsigned hz)
{
	struct uni_target *t = attach(s);
	uint64_t *ns = calloc(n, sizeof(*ns));
	struct uni_target_info info;
	struct uni_as *as = NULL;
	unsigned have = 0, lost = 0;

	if (t == NULL || ns == NULL ||
		uni_as_create(t->ops->gmem(t), &uni_as_budget_default, &as, NULL) != 0) {
		uni_target_detach(t);
		free(ns);
		return false;
	}
	t->ops->info(t, &info);
	(void)printf("%s\n", info.note);
	for (unsigned i = 0; i < n; i++) {
		if (one_sample(t, as, &ns[have]))
			have++;
		else
			lost++;
		(void)usleep(1000000 / hz);
	}
	print_pauses(ns, have, lost);
	uni_as_destroy(as);
	uni_target_detach(t);
	free(ns);
	return have != 0;
}
