/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/exit_progs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/observer.h"

#define EXITS_LEN (UNI_BPF_VCPUS * sizeof(struct uni_bpf_exit)) /* whole pages */

_Static_assert(EXITS_LEN % 4096 == 0, "it is mapped");

/* Uses the sampler's maps, instead of making them again. */
static int share_maps(struct bpf_object *obj, void *ctx)
{
	const struct bpf_object *sampler = ctx;
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
	{
		const struct bpf_map *theirs =
			bpf_object__find_map_by_name(sampler, bpf_map__name(map));
		int r = theirs != NULL ? bpf_map__reuse_fd(map, bpf_map__fd(theirs)) : 0;

		if (r != 0)
			return r;
	}
	return 0;
}

static int load_exit_progs(
	struct uni_kvm_exit_progs *p, const struct uni_kvm_bpf *b, struct uni_err *err)
{
	void *map;

	p->obj = uni_kvm_bpf_open(b->plain ? uni_bpf_plain_exit_object : uni_bpf_exit_object,
		b->plain ? uni_bpf_plain_exit_object_size : uni_bpf_exit_object_size,
		"uniscope_exits", share_maps, b->obj, err);
	if (p->obj == NULL)
		return -UNI_ENOTSUP;
	p->by_thread_fd = bpf_map__fd(bpf_object__find_map_by_name(p->obj, "by_thread"));
	p->sums_fd = bpf_map__fd(bpf_object__find_map_by_name(p->obj, "exit_sums"));
	p->lasts_fd = bpf_map__fd(bpf_object__find_map_by_name(p->obj, "exit_lasts"));
	map = mmap(NULL, EXITS_LEN, PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(bpf_object__find_map_by_name(p->obj, "exits")), 0);
	if (map == MAP_FAILED)
		return uni_err_set(err, UNI_ENOMEM, "cannot map the table of VM exits");
	p->exit = map;
	return 0;
}

static void detach_exit_progs(struct uni_kvm_exit_progs *p)
{
	for (size_t i = 0; i < UNI_KVM_EXIT_PROGS_MAX; i++) {
		(void)bpf_link__destroy(p->link[i]);
		p->link[i] = NULL;
	}
}

/* On VMX and SVM nothing is visible without kvm_exit; a software KVM does not have it. */
static bool needs_kvm_exit(void)
{
	return access("/sys/module/kvm_intel", F_OK) == 0 ||
	       access("/sys/module/kvm_amd", F_OK) == 0;
}

static int no_trace_point(const char *program, int r, struct uni_err *err)
{
	const char *name = program + strlen("uni_");

	if (r == -EPERM || r == -EACCES)
		return uni_err_set(err, UNI_EPERM,
			"not permitted to use the trace point kvm:%s: VM exits need root, or "
			"CAP_BPF, CAP_PERFMON and a readable /sys/kernel/tracing",
			name);
	return uni_err_set(err, UNI_ENOTSUP,
		"no trace point kvm:%s (%s): VM exits need tracefs (mount -t tracefs nodev "
		"/sys/kernel/tracing) and a kernel with CONFIG_TRACEPOINTS",
		name, strerror(-r));
}

static int attach_exit_progs(struct uni_kvm_exit_progs *p, struct uni_err *err)
{
	struct bpf_program *prog;
	size_t n = 0;

	bpf_object__for_each_program(prog, p->obj)
	{
		const char *name = bpf_program__name(prog);
		struct bpf_link *link = bpf_program__attach(prog);

		if (link != NULL && n < UNI_KVM_EXIT_PROGS_MAX) {
			p->link[n++] = link;
			continue;
		}
		/* The classic trace point needs tracefs; the others need nothing. */
		if (strcmp(name, "uni_kvm_exit") == 0 && !needs_kvm_exit())
			continue;
		return no_trace_point(name, -errno, err);
	}
	return 0;
}

int uni_kvm_exit_progs_get(struct uni_kvm_bpf *b, struct uni_err *err)
{
	struct uni_kvm_exit_progs *p;
	int rc = 0;

	(void)pthread_mutex_lock(&b->lock);
	p = b->exits;
	if (p == NULL && uni_observer_is_used()) {
		rc = uni_err_set(err, UNI_EPERM, "VM exits need rights that were given up");
	} else if (p == NULL) {
		p = calloc(1, sizeof(*p));
		rc = p != NULL ? load_exit_progs(p, b, err) : uni_err_nomem(err);
	}
	if (rc == 0 && p->users == 0)
		rc = attach_exit_progs(p, err);
	if (rc == 0) {
		p->users++;
		b->exits = p;
	} else if (p != b->exits) {
		uni_kvm_exit_progs_unload(p);
	} else if (p != NULL && p->users == 0) {
		detach_exit_progs(p);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return rc;
}

void uni_kvm_exit_progs_put(struct uni_kvm_bpf *b)
{
	(void)pthread_mutex_lock(&b->lock);
	if (--b->exits->users == 0)
		detach_exit_progs(b->exits);
	(void)pthread_mutex_unlock(&b->lock);
}

void uni_kvm_exit_progs_unload(struct uni_kvm_exit_progs *p)
{
	if (p == NULL)
		return;
	detach_exit_progs(p);
	if (p->exit != NULL)
		(void)munmap(p->exit, EXITS_LEN);
	bpf_object__close(p->obj);
	free(p);
}
