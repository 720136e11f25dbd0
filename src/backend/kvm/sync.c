/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/sync.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "backend/vmm/scan.h"

#define WANTED ((uint64_t)(KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS))

/* The part of struct kvm_run that is read: from kvm_valid_regs to the end of sregs. */
struct window {
	uint64_t valid_regs, dirty_regs;
	struct kvm_regs regs;
	struct kvm_sregs sregs;
};

#define MARK 0x0ddba11c0ffee000ull /* not canonical: never a guest's rip */

#define WINDOW_OFFSET offsetof(struct kvm_run, kvm_valid_regs)

_Static_assert(offsetof(struct kvm_run, kvm_dirty_regs) ==
		       WINDOW_OFFSET + offsetof(struct window, dirty_regs),
	"kvm_run");
_Static_assert(
	offsetof(struct kvm_run, s.regs.regs) == WINDOW_OFFSET + offsetof(struct window, regs),
	"kvm_run");
_Static_assert(
	offsetof(struct kvm_run, s.regs.sregs) == WINDOW_OFFSET + offsetof(struct window, sregs),
	"kvm_run");

/* glibc 2.36 has no pidfd_getfd(). */
static int get_fd(int pidfd, int fd)
{
	return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0u);
}

/* ioctls on the copied file are refused (it belongs to another mm), but mmap is not. */
static int map_run(struct uni_kvm_sync *s, int pidfd, int vcpu_fd)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t size = (sizeof(struct kvm_run) + (size_t)page - 1) & ~((size_t)page - 1);
	_cleanup_close_ int fd = get_fd(pidfd, vcpu_fd);
	void *p;

	if (fd < 0)
		return -errno;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	s->run = p;
	s->run_size = size;
	return 0;
}

static int read_window(const struct uni_kvm_sync *s, struct window *ret)
{
	if (s->run == NULL)
		return uni_vmm_copy(s->pid, s->run_hva + WINDOW_OFFSET, ret, sizeof(*ret));
	/* Copied once; the compiler must not read the shared page again afterwards. */
	memcpy(ret, (const uint8_t *)(uintptr_t)s->run + WINDOW_OFFSET, sizeof(*ret));
	__asm__ volatile("" ::: "memory");
	return 0;
}

/* Writes one aligned word, at once. */
static int write_word(struct uni_kvm_sync *s, size_t offset, uint64_t v)
{
	struct iovec local = { .iov_base = &v, .iov_len = sizeof(v) };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)(s->run_hva + offset),
		.iov_len = sizeof(v) };

	if (s->run != NULL) {
		*(volatile uint64_t *)((uintptr_t)s->run + offset) = v;
		return 0;
	}
	if (process_vm_writev(s->pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(v))
		return 0;
	return errno == ESRCH ? -UNI_EGONE : -UNI_EIO;
}

static int write_valid(struct uni_kvm_sync *s, uint64_t valid)
{
	return write_word(s, WINDOW_OFFSET, valid);
}

static int write_rip(struct uni_kvm_sync *s, uint64_t rip)
{
	return write_word(s, offsetof(struct kvm_run, s.regs.regs.rip), rip);
}

int uni_kvm_sync_open(struct uni_kvm_sync *s, int pid, int pidfd, int vcpu_fd, uint64_t run_hva,
	enum uni_kvm_method method, struct uni_err *err)
{
	struct window w;
	int r = 0, rc;

	*s = (struct uni_kvm_sync){ .pid = pid, .run_hva = run_hva };
	if (method != UNI_KVM_PROCMEM)
		r = map_run(s, pidfd, vcpu_fd);
	if (r != 0 && (method == UNI_KVM_MAPPED || run_hva == 0))
		return uni_err_set(err, r == -EPERM ? UNI_EPERM : UNI_EIO,
			"cannot map the vCPU of pid %d (pidfd_getfd, mmap): %s", pid, strerror(-r));
	if (s->run == NULL && run_hva == 0)
		return uni_err_set(err, UNI_EIO, "pid %d does not map its vCPU", pid);
	rc = read_window(s, &w);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"cannot read the vCPU state in pid %d: %s", pid, uni_strerror(rc));
	s->before = w.valid_regs;
	s->unused = w.valid_regs == 0 && w.dirty_regs == 0 &&
		    memcmp(&w.regs, &(struct kvm_regs){ 0 }, sizeof(w.regs)) == 0;
	return 0;
}

int uni_kvm_sync_start(struct uni_kvm_sync *s, bool vmm_never)
{
	int rc = 0;

	/* Before the request; otherwise it could overwrite KVM's reply. */
	if (s->unused || vmm_never) {
		rc = write_rip(s, MARK);
		s->marked = rc == 0;
	}
	return rc != 0 ? rc : write_valid(s, s->before | WANTED);
}

int uni_kvm_sync_read(struct uni_kvm_sync *s, struct kvm_regs *regs_ret,
	struct kvm_sregs *sregs_ret, bool *fresh_ret)
{
	struct window w;
	int rc = read_window(s, &w);

	if (rc != 0)
		return rc;
	if ((w.valid_regs & WANTED) != WANTED) {
		s->marked = false; /* the VMM itself uses this page */
		rc = write_valid(s, w.valid_regs | WANTED);
		return rc != 0 ? rc : -UNI_ESTALE;
	}
	if (w.regs.rip == MARK) /* our mark, or another profiler's */
		return -UNI_EAGAIN;
	*regs_ret = w.regs;
	*sregs_ret = w.sregs;
	*fresh_ret = s->marked;
	return 0;
}

void uni_kvm_sync_close(struct uni_kvm_sync *s, bool keep)
{
	struct window w;

	(void)write_valid(s, keep ? s->before : 0);
	if (s->marked && read_window(s, &w) == 0 && w.regs.rip == MARK)
		(void)write_rip(s, 0);
	if (s->run != NULL)
		(void)munmap((void *)(uintptr_t)s->run, s->run_size);
	s->run = NULL;
}
