/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/allow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define WANTED (KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS)

/* linux/kvm.h of Debian 12 (6.1) does not have these yet. */
#define CAP_VM_TYPES   235
#define PLAIN_VM_TYPES 3 /* bits of KVM_X86_DEFAULT_VM and KVM_X86_SW_PROTECTED_VM */

/* The first character of a module's parameter; 0: no such parameter; '?': not readable. */
static char read_module_param(const char *path)
{
	char buf[16];
	int n = uni_read_small(path, buf, sizeof(buf));

	if (n == -ENOENT || n == -ENOTDIR)
		return 0;
	return n <= 0 ? '?' : buf[0];
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int uni_kvm_host_read(int pidfd, int vmm_kvm_fd, struct uni_kvm_host *ret, struct uni_err *err)
{
	_cleanup_close_ int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int vm = -1;
	int why = errno;

	if (kvm < 0 && vmm_kvm_fd >= 0)
		kvm = (int)syscall(SYS_pidfd_getfd, pidfd, vmm_kvm_fd, 0u);
	if (kvm < 0)
		return uni_err_set(err, UNI_EPERM,
			"cannot open /dev/kvm: %s; it is needed to prove that reading registers "
			"cannot "
			"harm the guest (are you in the group kvm?)",
			strerror(why));
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0)
		return uni_err_set(err, UNI_EIO, "cannot make a VM to ask KVM what it supports: %s",
			strerror(errno));
	ret->sync_regs = ioctl(vm, KVM_CHECK_EXTENSION, KVM_CAP_SYNC_REGS);
	ret->vm_types = ioctl(kvm, KVM_CHECK_EXTENSION, CAP_VM_TYPES);
	ret->sev_es = read_module_param("/sys/module/kvm_amd/parameters/sev_es");
	ret->tdx = read_module_param("/sys/module/kvm_intel/parameters/tdx");
	ret->other = !is_dir("/sys/module/kvm_amd") && !is_dir("/sys/module/kvm_intel");
	return 0;
}

static bool is_param_off(char param_value)
{
	return param_value == 0 || param_value == 'N' || param_value == '0';
}

/* Is this host unable to run guests whose registers are protected? */
static bool host_cannot_protect(const struct uni_kvm_host *host)
{
	if (host->vm_types > 0 && (host->vm_types & ~PLAIN_VM_TYPES) != 0)
		return false;
	/* Another vendor's module has no such parameters: the VM types must tell. */
	if (host->other && host->vm_types <= 0)
		return false;
	return is_param_off(host->sev_es) && is_param_off(host->tdx);
}

static int refuse_vmm(struct uni_err *err, const char *why)
{
	return uni_err_set(err, UNI_ENOTSUP,
		"kvm: will not touch this VMM: %s, and asking KVM for protected registers would "
		"end "
		"the guest",
		why);
}

int uni_kvm_allow(const struct uni_kvm_host *host, const struct uni_vmm_cmdline *cmdline,
	const struct uni_vmm_fds *fds, struct uni_err *err)
{
	if (host->sync_regs <= 0 || (host->sync_regs & WANTED) != WANTED)
		return uni_err_set(err, UNI_ENOTSUP,
			"kvm: this KVM has no synchronized registers (KVM_CAP_SYNC_REGS says %d)",
			host->sync_regs);
	if (cmdline->confidential)
		return refuse_vmm(
			err, "its command line asks for a confidential guest (SEV or TDX)");
	if (fds->sev)
		return refuse_vmm(err, "it has /dev/sev open");
	if (fds->guest_memfd)
		return refuse_vmm(err, "its guest has private memory (guest_memfd)");
	if (host_cannot_protect(host))
		return 0;
	/*
	 * This host can run such guests. So this VMM must be one that would show the signs above.
	 */
	if (cmdline->vmm[0] == '\0')
		return refuse_vmm(err,
			"this host can run confidential guests and the VMM is none that is known");
	if (cmdline->opaque)
		return refuse_vmm(err, "this host can run confidential guests and the VMM reads "
				       "options from a file");
	return 0;
}
