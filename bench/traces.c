/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traces TARGET IMAGE [N [NAP_US]]: the cost of one call chain, taken in the way of that target. It
 * takes N chains (default 2000), with naps in between. Prints percentiles in us: of all of it, and
 * of its parts (stop and registers, stack, go on), and how many frames the chains had.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "obj/image.h"
#include "backend/guard.h"
#include "unwind/unwind.h"

#define N_DEFAULT 2000u
#define N_MAX	  1000000u

enum part { ALL, STOP, STACK, RESUME, NR_PARTS };

struct run {
	struct uni_target *t;
	struct uni_as *as;
	struct uni_unwinder unwinder;
	struct uni_regs regs[UNI_VCPU_MAX];
	struct uni_chain chain[UNI_VCPU_MAX];
	struct uni_vcpuset set;
	uint32_t nr_vcpus;
	uint64_t frames, chains, broken;
	uint64_t *ns[NR_PARTS];
};

static void fail(const struct uni_err *err)
{
	(void)fprintf(stderr, "traces: %s\n", err->msg);
	exit(1);
}

static void open_target(struct run *r, const char *target, const char *image, struct uni_err *err)
{
	const struct uni_unwind_hints *hints;
	struct uni_attach_opts opts = { 0 };
	struct uni_image *img;
	struct uni_spec spec;

	if (uni_image_load(image, &img, err) != 0 || uni_image_hints(img, 0, &hints, err) != 0 ||
		uni_spec_parse(target, &spec, err) != 0)
		fail(err);
	opts.arch = uni_image_arch(img);
	if (uni_target_attach(&spec, &opts, &r->t, err) != 0 ||
		uni_as_create(r->t->ops->gmem(r->t), NULL, &r->as, err) != 0)
		fail(err);
	uni_unwinder_init(&r->unwinder, r->t->arch, hints);
	r->nr_vcpus = (uint32_t)r->t->ops->nr_vcpus(r->t);
	r->set = uni_vcpuset_first(r->nr_vcpus);
}

static void take(struct run *r, uint64_t i)
{
	bool hold = (r->t->ops->caps(r->t) & UNI_CAP_HOLD) != 0;
	bool parts = i % 2 != 0; /* a clock costs, too: by turns all of it, or each part */
	uint64_t t0 = uni_now_ns(), t1 = 0, t2 = 0, t3;
	int rc = r->t->ops->snap(r->t, &r->set, r->regs, hold ? UNI_SNAP_HOLD : 0);

	if (parts)
		t1 = uni_now_ns();
	for (uint32_t v = 0; rc == 0 && v < r->nr_vcpus; v++) {
		if (!uni_vcpuset_has(&r->set, v) || !r->regs[v].pc_valid)
			continue;
		uni_unwind(&r->unwinder, r->as, &r->regs[v], &r->chain[v]);
		r->frames += r->chain[v].nr;
		r->chains++;
		r->broken += r->chain[v].stop != UNI_STOP_ROOT;
	}
	if (parts)
		t2 = uni_now_ns();
	(void)r->t->ops->release(r->t);
	t3 = uni_now_ns();
	i /= 2;
	if (!parts) {
		r->ns[ALL][i] = t3 - t0;
		return;
	}
	r->ns[STOP][i] = t1 - t0;
	r->ns[STACK][i] = t2 - t1;
	r->ns[RESUME][i] = t3 - t2;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(const struct run *r, uint64_t n)
{
	static const char *const name[NR_PARTS] = { "all", "stop", "stack", "resume" };

	for (size_t p = 0; p < NR_PARTS; p++) {
		qsort(r->ns[p], n, sizeof(uint64_t), ascending);
		(void)printf("%-6s p10 %.2f p50 %.2f p90 %.2f us\n", name[p],
			(double)r->ns[p][n / 10] / 1e3, (double)r->ns[p][n / 2] / 1e3,
			(double)r->ns[p][n - 1 - n / 10] / 1e3);
	}
	(void)printf("frames %.2f in each of %" PRIu64 " chains, %" PRIu64 " broken\n",
		r->chains != 0 ? (double)r->frames / (double)r->chains : 0, r->chains, r->broken);
}

int main(int argc, char **argv)
{
	uint64_t n = N_DEFAULT, nap_us = 0;
	struct run *r = calloc(1, sizeof(*r));
	struct uni_err err = { 0 };

	if (r == NULL || argc < 3 || (argc > 3 && (!uni_parse_u64(argv[3], &n) || n > N_MAX)) ||
		n == 0 || (argc > 4 && !uni_parse_u64(argv[4], &nap_us))) {
		(void)fprintf(stderr, "usage: traces TARGET IMAGE [N [NAP_US]]\n");
		return 2;
	}
	for (size_t p = 0; p < NR_PARTS; p++) {
		r->ns[p] = calloc(n, sizeof(uint64_t));
		if (r->ns[p] == NULL)
			return 1;
	}
	open_target(r, argv[1], argv[2], &err);
	for (uint64_t i = 0; i < 2 * n; i++) {
		struct timespec nap = uni_ns_timespec(nap_us * UNI_NSEC_PER_USEC);

		take(r, i);
		if (nap_us != 0)
			(void)nanosleep(&nap, NULL);
	}
	uni_target_detach(r->t);
	print(r, n);
	return 0;
}
