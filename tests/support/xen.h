/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hypervisor with one domain, in memory that forked children share: what uni_xen_module asks of
 * the real one. Its RAM is a memfd, so that what is mapped changes when the guest writes.
 */
#ifndef UNI_TESTS_SUPPORT_XEN_H
#define UNI_TESTS_SUPPORT_XEN_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/xen/abi.h"
#include "backend/xen/module.h"

#define HV_PAGE	   4096u
#define HV_FRAMES  64u
#define HV_FIRST   0x1000u /* number of its first frame */
#define HV_DOMID   7u
#define HV_VCPUS   3u
#define HV_CTX	   5168u
#define HV_CTX_REG 520u
#define HV_CTX_CR  4984u

struct hv {
	uint32_t version;
	int refuse;	    /* errno of every domctl, 0: none */
	_Atomic int pauses; /* that are on */
	_Atomic unsigned nr_pauses, nr_unpauses, nr_contexts, nr_maps, nr_asked;
	_Atomic int mapped; /* pages that are mapped now */
	bool hvm, dying, shutdown, absent;
	uint8_t reason;
	uint8_t uuid[16];
	uint64_t never_started, blocked; /* masks of vCPUs */
	uint32_t tsc_mode, tsc_khz;
	uint32_t sysctl_version, machine_khz;
	uint8_t ctx[HV_VCPUS][HV_CTX];
	int ram_fd;
	uint8_t *ram;
	char name[32], kernel[64], refs[64];
	unsigned buffers; /* that are not freed */
};

static struct hv *hv; /* one in a test */

static inline void hv_create(void)
{
	hv = mmap(NULL, sizeof(*hv), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hv == MAP_FAILED)
		abort();
	hv->ram_fd = memfd_create("ram", 0);
	if (hv->ram_fd < 0 || ftruncate(hv->ram_fd, HV_FRAMES * HV_PAGE) != 0)
		abort();
	hv->ram =
		mmap(NULL, HV_FRAMES * HV_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, hv->ram_fd, 0);
	hv->version = 0x15;
	memset(hv->uuid, 0xa7, sizeof(hv->uuid));
	(void)snprintf(hv->name, sizeof(hv->name), "web");
}

static inline void hv_destroy(void)
{
	(void)close(hv->ram_fd);
	(void)munmap(hv->ram, HV_FRAMES * HV_PAGE);
	(void)munmap(hv, sizeof(*hv));
	hv = NULL;
}

static inline void hv_put(uint64_t addr, uint64_t value)
{
	memcpy(hv->ram + (addr - HV_FIRST * (uint64_t)HV_PAGE), &value, sizeof(value));
}

static inline void hv_ctx_put(unsigned vcpu, size_t offset, uint64_t value)
{
	memcpy(hv->ctx[vcpu] + offset, &value, sizeof(value));
}

static inline int hv_info(struct uni_xen_domctl *op)
{
	memset(&op->u.info, 0, sizeof(op->u.info));
	/* As releases do that look for the next domain. */
	op->u.info.domain = op->domain > HV_DOMID ? 0 : HV_DOMID;
	op->u.info.flags = (hv->dying ? UNI_XEN_INFO_DYING : 0u) |
			   (hv->hvm ? UNI_XEN_INFO_HVM : 0u) |
			   (hv->shutdown ? UNI_XEN_INFO_SHUTDOWN : 0u) |
			   (hv->pauses != 0 ? UNI_XEN_INFO_PAUSED : 0u) |
			   (uint32_t)hv->reason << UNI_XEN_INFO_REASON_SHIFT;
	op->u.info.tot_pages = op->u.info.max_pages = 1u << 20;
	op->u.info.max_vcpu_id = HV_VCPUS - 1;
	memcpy(op->u.info.handle, hv->uuid, sizeof(hv->uuid));
	return op->domain > HV_DOMID ? -ESRCH : 0;
}

static inline int hv_context(struct uni_xen_domctl *op)
{
	uint32_t v = op->u.vcpu.vcpu;

	if (v >= HV_VCPUS)
		return -EINVAL;
	if ((hv->never_started >> v & 1) != 0)
		return -ENODATA;
	hv->nr_contexts++;
	memcpy((void *)(uintptr_t)op->u.vcpu.context, hv->ctx[v], HV_CTX);
	return 0;
}

static inline int hv_unpause(void)
{
	hv->nr_unpauses++;
	if (hv->pauses == 0)
		return -EINVAL;
	hv->pauses--;
	return 0;
}

static inline int hv_domctl(struct uni_xen_domctl *op)
{
	if (hv->refuse != 0)
		return -hv->refuse;
	if (op->interface_version != hv->version)
		return -EACCES;
	if (op->cmd == UNI_XEN_VCPU_CONTEXT && op->domain == 0)
		return -EINVAL;
	if (hv->absent || (op->cmd != UNI_XEN_INFO && op->domain != HV_DOMID))
		return -ESRCH;
	switch (op->cmd) {
	case UNI_XEN_INFO:
		return hv_info(op);
	case UNI_XEN_PAUSE:
		hv->nr_pauses++;
		hv->pauses++;
		return 0;
	case UNI_XEN_UNPAUSE:
		return hv_unpause();
	case UNI_XEN_VCPU_CONTEXT:
		return hv_context(op);
	case UNI_XEN_VCPU_INFO:
		hv->nr_asked++;
		op->u.vcpu_info.blocked = hv->blocked >> op->u.vcpu_info.vcpu & 1;
		return 0;
	case UNI_XEN_TSC_INFO:
		op->u.tsc.mode = hv->tsc_mode;
		op->u.tsc.khz = hv->tsc_khz;
		return 0;
	case UNI_XEN_ADDRESS_SIZE:
		op->u.address_size = 64;
		return hv->hvm ? -EOPNOTSUPP : 0;
	default:
		return -ENOSYS;
	}
}

static inline int hv_sysctl(struct uni_xen_sysctl *op)
{
	if (op->interface_version != hv->sysctl_version)
		return -EACCES;
	if (op->cmd != UNI_XEN_PHYSINFO)
		return -ENOSYS;
	memset(&op->u, 0xff, 128);
	op->u.physinfo.cpu_khz = hv->machine_khz;
	return 0;
}

static inline int hv_open(struct uni_xen_conn **ret, char *why, size_t cap)
{
	*ret = malloc(1);
	return *ret != NULL ? 0 : -ENOMEM;
}

static inline void hv_close(struct uni_xen_conn *c)
{
	free(c);
}

static inline void *hv_buffer(struct uni_xen_conn *c, size_t nr_pages)
{
	void *p = aligned_alloc(HV_PAGE, nr_pages * HV_PAGE);

	memset(p, 0, nr_pages * HV_PAGE);
	hv->buffers++;
	return p;
}

static inline void hv_buffer_free(struct uni_xen_conn *c, void *p, size_t nr_pages)
{
	hv->buffers--;
	free(p);
}

static inline int hv_call1(struct uni_xen_conn *c, unsigned op, void *arg)
{
	if (op == UNI_XEN_NR_SYSCTL)
		return hv_sysctl(arg);
	return op == UNI_XEN_NR_DOMCTL ? hv_domctl(arg) : -ENOSYS;
}

static inline int hv_call2(struct uni_xen_conn *c, unsigned op, void *arg, uint64_t nr)
{
	struct uni_xen_multicall *e = arg;

	if (op != UNI_XEN_NR_MULTICALL)
		return -ENOSYS;
	for (uint64_t i = 0; i < nr; i++)
		e[i].result = (uint64_t)(int64_t)hv_call1(
			c, (unsigned)e[i].op, (void *)(uintptr_t)e[i].args[0]);
	return 0;
}

static inline const uint8_t *hv_map(
	struct uni_xen_conn *c, uint32_t domid, const uint64_t *frame, size_t nr, int *err_ret)
{
	uint8_t *at = mmap(NULL, nr * HV_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t good = 0;

	hv->nr_maps++;
	for (size_t i = 0; i < nr; i++) {
		for (size_t k = 0; k < i; k++) {
			if (frame[k] == frame[i])
				abort(); /* mapped twice */
		}
		err_ret[i] = frame[i] >= HV_FIRST && frame[i] - HV_FIRST < HV_FRAMES ? 0 : EINVAL;
		if (err_ret[i] != 0)
			continue;
		good++;
		if (mmap(at + i * HV_PAGE, HV_PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, hv->ram_fd,
			    (off_t)(frame[i] - HV_FIRST) * HV_PAGE) == MAP_FAILED)
			abort();
	}
	if (good == 0) {
		(void)munmap(at, nr * HV_PAGE);
		return NULL;
	}
	hv->mapped += (int)nr;
	return at;
}

static inline uint8_t *hv_map_rw(
	struct uni_xen_conn *c, uint32_t domid, const uint64_t *frame, size_t nr, int *err_ret)
{
	uint8_t *at = (uint8_t *)(uintptr_t)hv_map(c, domid, frame, nr, err_ret);

	for (size_t i = 0; at != NULL && i < nr; i++) {
		if (i != 0 && frame[i] <= frame[i - 1])
			abort(); /* mapped twice, and written twice */
		if (err_ret[i] == 0 &&
			mprotect(at + i * HV_PAGE, HV_PAGE, PROT_READ | PROT_WRITE) != 0)
			abort();
	}
	return at;
}

/* Reference 100 + n is frame n. */
static inline const uint8_t *hv_grant_map(
	struct uni_xen_conn *c, uint32_t domid, const uint32_t *ref, size_t nr)
{
	uint64_t frame[HV_FRAMES];
	int why[HV_FRAMES];

	for (size_t i = 0; i < nr; i++) {
		errno = EINVAL;
		if (nr > HV_FRAMES || ref[i] < 100 || ref[i] >= 100 + HV_FRAMES)
			return NULL;
		frame[i] = HV_FIRST + ref[i] - 100;
	}
	return hv_map(c, domid, frame, nr, why);
}

static inline void hv_unmap(struct uni_xen_conn *c, const uint8_t *at, size_t nr)
{
	hv->mapped -= (int)nr;
	(void)munmap((void *)(uintptr_t)at, nr * HV_PAGE);
}

static inline char *hv_store_read(struct uni_xen_conn *c, const char *path, size_t *size_ret)
{
	char *v = NULL;

	if (strcmp(path, "/local/domain/7/name") == 0 || strcmp(path, "/local/domain/9/name") == 0)
		v = strdup(hv->name);
	else if (strncmp(path, "/vm/", 4) == 0 && hv->kernel[0] != '\0')
		v = strdup(hv->kernel);
	else if (strcmp(path, "/local/domain/7/data/mprof/ring-ref") == 0 && hv->refs[0] != '\0')
		v = strdup(hv->refs);
	else if (strcmp(path, "/libxl/7/type") == 0)
		v = strdup("pvh");
	*size_ret = v != NULL ? strlen(v) : 0;
	return v;
}

static inline char **hv_store_list(struct uni_xen_conn *c, const char *path, size_t *nr_ret)
{
	static const char names[] = "7\0000\0hello";
	char **v = malloc(3 * sizeof(*v) + sizeof(names));
	char *text = (char *)(v + 3);

	memcpy(text, names, sizeof(names));
	v[0] = text;
	v[1] = text + 2;
	v[2] = text + 4;
	*nr_ret = 3;
	return v;
}

static const struct uni_xen_module hv_module = {
	.version = UNI_XEN_MODULE_VERSION,
	.size = sizeof(hv_module),
	.open = hv_open,
	.close = hv_close,
	.buffer = hv_buffer,
	.buffer_free = hv_buffer_free,
	.call1 = hv_call1,
	.call2 = hv_call2,
	.map = hv_map,
	.unmap = hv_unmap,
	.map_rw = hv_map_rw,
	.grant_map = hv_grant_map,
	.grant_unmap = hv_unmap,
	.store_read = hv_store_read,
	.store_list = hv_store_list,
};

#endif
