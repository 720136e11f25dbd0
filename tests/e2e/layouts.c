/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kvm target on VMMs that keep the guest's memory, and themselves, as others do: memfd, huge
 * pages, several regions; a jail. With the word bpf, also by the host's kernel. The test's own
 * mapping of the memory is the referee. TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "backend/target.h"
#include "backend/vmm/proc.h"
#include "tap.h"
#include "tinyvmm.h"
#include "../support/vcpus.h"

#define SAMPLES 50u

static struct uni_target *attach(const struct tiny *t, const char *via)
{
	const struct uni_text_hint text = { .gva = TINY_CODE,
		.paddr = TINY_CODE,
		.bytes = tiny_code(t->mode),
		.size = 256,
		.exec = true };
	const struct uni_attach_opts opts = { .text = &text, .nr_text = 1 };
	struct uni_target *target = NULL;
	struct uni_err err = { 0 };
	struct uni_spec spec;
	char s[64];

	(void)snprintf(s, sizeof(s), "kvm:pid=%d,via=%s", (int)t->pid, via);
	if (uni_spec_parse(s, &spec, &err) == 0 &&
		uni_target_attach(&spec, &opts, &target, &err) == 0)
		return target;
	(void)printf("# attach: %s\n", err.msg);
	return NULL;
}

/* Reads the counter through the target: as it is in the test's own mapping, before and after. */
static bool reads_counter(const struct tiny *t, struct uni_target *target)
{
	uint32_t before = tiny_counter(t, 0), seen = 0, after;
	int rc = uni_gmem_read(
		target->ops->gmem(target), uni_gpa_of(TINY_COUNTERS), &seen, sizeof(seen));

	after = tiny_counter(t, 0);
	if (rc != 0 || seen - before > after - before)
		(void)printf("# rc %d: %u, %u, %u\n", rc, before, seen, after);
	return rc == 0 && seen - before <= after - before;
}

static unsigned samples_in_code(struct uni_target *target)
{
	struct uni_regs r[TINY_VCPUS] = { 0 };
	unsigned good = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		if (target->ops->snap(target, VCPUS(1), r, UNI_SNAP_HOLD) == 0)
			good += r[0].pc_valid && uni_range_has(TINY_CODE, 8, r[0].pc);
		(void)target->ops->release(target);
		(void)usleep(500);
	}
	return good;
}

/* The search for the image's code finds the region that it lies in, and no other. */
static void one_way(
	const struct tiny *t, const struct tiny_how *how, const char *name, const char *via)
{
	struct uni_target *target = attach(t, via);
	bool one_region = how->ram == TINY_REGIONS && strcmp(via, "stop") == 0;
	unsigned good;

	if (!check(target != NULL, "%s, via=%s: attached", name, via))
		return;
	good = samples_in_code(target);
	(void)check(good >= SAMPLES - 1, "%s, via=%s: %u of %u samples", name, via, good, SAMPLES);
	(void)check(reads_counter(t, target) == !one_region, "%s, via=%s: the guest's memory%s",
		name, via, one_region ? ", but for that of another region" : "");
	uni_target_detach(target);
}

static bool looks_jailed(const struct tiny *t)
{
	struct uni_target_info info;

	return uni_vmm_describe(t->pid, &info) == 0 && info.uid == TINY_USER && info.ns_pid == 1 &&
	       info.nr_vcpus == 1 && !info.denied;
}

static void both_ways(const char *name, const struct tiny_how *how, bool have_bpf)
{
	struct tiny t;

	if (!check(tiny_start_how(&t, TINY_BRITTLE, 1, how), "%s: a VMM starts", name))
		return;
	one_way(&t, how, name, "stop");
	if (have_bpf)
		one_way(&t, how, name, "bpf");
	if (how->jailed)
		(void)check(looks_jailed(&t), "%s: seen as what it is", name);
	(void)check(atomic_load(&t.shared->failed) == 0 && tiny_runs(&t, 0),
		"%s: the VMM never noticed", name);
	tiny_end(&t);
}

/* The number of huge pages that this host keeps, changed by `more`; the old one. */
static long keep_huge_pages(long more)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";
	FILE *f = fopen(path, "re");
	char text[32] = "0";
	long old;

	if (f == NULL || fgets(text, sizeof(text), f) == NULL)
		(void)snprintf(text, sizeof(text), "0");
	if (f != NULL)
		(void)fclose(f);
	old = strtol(text, NULL, 10);
	f = fopen(path, "we");
	if (f != NULL) {
		(void)fprintf(f, "%ld\n", old + more);
		(void)fclose(f);
	}
	return old;
}

/* Are there any, so that a VMM may ask for them? */
static bool has_huge_pages(void)
{
	size_t size = 2u << 20;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		return false;
	(void)munmap(p, size);
	return true;
}

int main(int argc, char **argv)
{
	const bool have_bpf = argc > 1 && strcmp(argv[1], "bpf") == 0;
	static const struct {
		const char *name;
		struct tiny_how how;
	} cases[] = {
		{ "anonymous memory", { .ram = TINY_ANON } },
		{ "a memfd", { .ram = TINY_MEMFD } },
		{ "huge pages", { .ram = TINY_HUGE } },
		{ "two regions", { .ram = TINY_REGIONS } },
		{ "a jail", { .ram = TINY_ANON, .jailed = true } },
		{ "a jail with a memfd", { .ram = TINY_MEMFD, .jailed = true } },
	};

	need("kvm");
	if (have_bpf)
		need("bpf");
	if (geteuid() != 0) {
		(void)printf("1..0 # SKIP a jail needs root\n");
		return 0;
	}
	(void)keep_huge_pages(2);
	for (size_t i = 0; i < uni_array_len(cases); i++) {
		if (cases[i].how.ram == TINY_HUGE && !has_huge_pages())
			(void)printf("ok %u - huge pages # SKIP this host has none\n", ++nr_checks);
		else
			both_ways(cases[i].name, &cases[i].how, have_bpf);
	}
	(void)keep_huge_pages(-2);
	(void)printf("1..%u\n", nr_checks);
	return nr_failed == 0 ? 0 : 1;
}
