/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/scan.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define SLOT_GUEST_MEMFD (1u << 2) /* KVM_MEM_GUEST_MEMFD */
#define READ_MAX	 (16u << 20)

/* KVM_X86_*_VM of the kernel's interface. */
enum { VM_SEV = 2, VM_TDX = 5 };

/* Used while slots are gathered. */
struct slots {
	UNI_VEC(struct uni_bpf_slot) s;
};

static int by_gpa(const void *a, const void *b)
{
	const struct uni_bpf_slot *x = a, *y = b;

	return x->gpa < y->gpa ? -1 : x->gpa > y->gpa;
}

static int by_size(const void *a, const void *b)
{
	const struct uni_bpf_slot *x = a, *y = b;

	return x->size > y->size ? -1 : x->size < y->size;
}

static int by_id(const void *a, const void *b)
{
	const struct uni_bpf_item *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Joins slots that are adjacent both in the guest and in the VMM. */
static void join_slots(struct slots *all, struct uni_kvm_scan *ret)
{
	size_t nr = 0;

	if (all->s.nr != 0)
		qsort(all->s.v, all->s.nr, sizeof(*all->s.v), by_gpa);
	for (size_t i = 0; i < all->s.nr; i++) {
		struct uni_bpf_slot *last = nr != 0 ? &all->s.v[nr - 1] : NULL, *s = &all->s.v[i];

		if (last != NULL && s->gpa - last->gpa == last->size &&
			s->hva - last->hva == last->size)
			last->size += s->size;
		else
			all->s.v[nr++] = *s;
	}
	if (nr != 0)
		qsort(all->s.v, nr, sizeof(*all->s.v), by_size);
	ret->nr_slots = (uint32_t)uni_min(nr, (size_t)UNI_BPF_SLOTS);
	ret->nr_left_off = (uint32_t)nr - ret->nr_slots;
	for (uint32_t i = 0; i < ret->nr_slots; i++)
		ret->slot[i] = all->s.v[i];
}

static size_t item_size(uint32_t kind)
{
	switch (kind) {
	case UNI_BPF_ITEM_VM:
		return UNI_BPF_ITEM_SIZE(vm);
	case UNI_BPF_ITEM_SLOT:
		return UNI_BPF_ITEM_SIZE(slot);
	case UNI_BPF_ITEM_VCPU:
		return UNI_BPF_ITEM_SIZE(vcpu);
	default:
		return 0;
	}
}

static void add_vm(struct uni_kvm_scan *ret, const struct uni_bpf_item *item)
{
	if (ret->kvm != 0 && ret->kvm != item->kvm) {
		ret->several = true;
		return;
	}
	ret->kvm = item->kvm;
	ret->generation = item->vm.generation;
	ret->clock_offset = item->vm.clock_offset;
	ret->online = item->vm.online;
	ret->tgid = item->vm.tgid;
	ret->vm_type = item->vm.vm_type;
	ret->private_memory |= item->vm.has_private != 0;
	ret->protected_regs |= item->vm.has_protected != 0;
}

static void add_vcpu(struct uni_kvm_scan *ret, const struct uni_bpf_item *item)
{
	for (uint32_t i = 0; i < ret->nr_vcpus; i++) {
		if (ret->vcpu[i].vcpu.vcpu == item->vcpu.vcpu)
			return; /* a duplicate of the file */
	}
	ret->protected_regs |= item->vcpu.protected_regs != 0;
	if (ret->nr_vcpus < UNI_VCPU_MAX)
		ret->vcpu[ret->nr_vcpus++] = *item;
}

static bool add_slot(struct slots *all, struct uni_kvm_scan *ret, const struct uni_bpf_item *item)
{
	struct uni_bpf_slot s = { item->slot.gpa, item->slot.size, item->slot.hva };

	ret->private_memory |= (item->slot.flags & SLOT_GUEST_MEMFD) != 0;
	if (s.size == 0 || !uni_range_ok(s.gpa, s.size) || !uni_range_ok(s.hva, s.size))
		return true;
	for (size_t i = 0; i < all->s.nr; i++) {
		if (all->s.v[i].gpa == s.gpa)
			return true; /* a duplicate of the VM's file */
	}
	return uni_vec_push(&all->s, s);
}

int uni_kvm_scan_parse(const void *data, size_t size, struct uni_kvm_scan *ret)
{
	struct slots all = { 0 };
	size_t pos = 0, len;
	bool ok = true;

	memset(ret, 0, offsetof(struct uni_kvm_scan, vcpu));
	while (ok && size - pos >= 16) {
		struct uni_bpf_item item = { 0 };

		memcpy(&item.kind, (const uint8_t *)data + pos, sizeof(item.kind));
		len = item_size(item.kind);
		if (len == 0 || size - pos < len)
			break;
		memcpy(&item, (const uint8_t *)data + pos, len);
		pos += len;
		if (item.kind == UNI_BPF_ITEM_VM)
			add_vm(ret, &item);
		else if (item.kind == UNI_BPF_ITEM_VCPU)
			add_vcpu(ret, &item);
		else
			ok = add_slot(&all, ret, &item);
	}
	join_slots(&all, ret);
	uni_vec_free(&all.s);
	if (ret->nr_vcpus != 0)
		qsort(ret->vcpu, ret->nr_vcpus, sizeof(ret->vcpu[0]), by_id);
	if (!ok)
		return -UNI_ENOMEM;
	return ret->kvm != 0 ? 0 : -UNI_ENOENT;
}

static int refuse_guest(struct uni_err *err, const char *why)
{
	return uni_err_set(err, UNI_ENOTSUP, "kvm: this guest cannot be profiled: %s", why);
}

int uni_kvm_scan_allow(const struct uni_kvm_scan *scan, struct uni_err *err)
{
	if (scan->several)
		return refuse_guest(err,
			"its process runs more than one VM, and which is meant cannot "
			"be told");
	if (scan->vm_type == VM_TDX)
		return refuse_guest(
			err, "it is a TDX guest, whose registers and memory nobody can read");
	if (scan->protected_regs || scan->vm_type > VM_TDX)
		return refuse_guest(err, "its registers are protected (SEV-ES, SEV-SNP or TDX)");
	if (scan->vm_type >= VM_SEV)
		return refuse_guest(err, "its memory is encrypted (SEV)");
	if (scan->private_memory)
		return refuse_guest(
			err, "it has private memory (guest_memfd), which cannot be read");
	return 0;
}

/* Reads all output of the iterator for one process. The caller owns *ret. */
static int read_iterator(int link_fd, uint8_t **ret, size_t *size_ret)
{
	_cleanup_close_ int fd = bpf_iter_create(link_fd);
	_cleanup_free_ uint8_t *buf = NULL;
	size_t size = 0, cap = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	for (;;) {
		if (cap - size < 8192) {
			uint8_t *p = cap <= READ_MAX ? realloc(buf, cap + 32768) : NULL;

			if (p == NULL)
				return -ENOMEM;
			buf = p;
			cap += 32768;
		}
		n = read(fd, buf + size, cap - size);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	if (n < 0)
		return -errno;
	*ret = uni_take(buf);
	*size_ret = size;
	return 0;
}

int uni_kvm_scan(
	const struct uni_kvm_bpf *b, int pid, struct uni_kvm_scan *ret, struct uni_err *err)
{
	_cleanup_free_ uint8_t *buf = NULL;
	union bpf_iter_link_info info = { .task = { .pid = (uint32_t)pid } };
	struct bpf_iter_attach_opts opts;
	struct bpf_link *link;
	size_t size = 0;
	int r, rc;

	/* LIBBPF_OPTS leaves garbage in the padding, which the library then refuses. */
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.link_info = &info;
	opts.link_info_len = sizeof(info);
	link = bpf_program__attach_iter(b->files, &opts);
	if (link == NULL)
		return uni_err_set(err, errno == ESRCH ? UNI_EGONE : UNI_EPERM,
			"cannot look at the files of pid %d from the kernel: %s", pid,
			strerror(errno));
	r = read_iterator(bpf_link__fd(link), &buf, &size);
	(void)bpf_link__destroy(link);
	if (r != 0)
		return uni_err_set(err, UNI_EIO, "reading the files of pid %d in the kernel: %s",
			pid, strerror(-r));
	rc = uni_kvm_scan_parse(buf, size, ret);
	if (rc == -UNI_ENOENT)
		return uni_err_set(err, UNI_ENOENT, "pid %d holds no KVM VM", pid);
	return rc == 0 ? 0 : uni_err_nomem(err);
}
