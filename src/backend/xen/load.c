/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/xen/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define PRIVCMD "/dev/xen/privcmd"

static const char module_name[] = "uniscope-xen.so";

bool uni_xen_host_is_xen(void)
{
	char text[32];

	return (uni_read_small("/sys/hypervisor/type", text, sizeof(text)) > 0 &&
		       strncmp(text, "xen", 3) == 0) ||
	       access("/proc/xen/capabilities", F_OK) == 0 || access(PRIVCMD, F_OK) == 0;
}

/* Without xenfs, a dom0 cannot tell; then only trying shows it. */
static bool host_is_dom0(void)
{
	char text[64];

	return uni_read_small("/proc/xen/capabilities", text, sizeof(text)) <= 0 ||
	       strstr(text, "control_d") != NULL;
}

int uni_xen_host_check(struct uni_err *err)
{
	if (!uni_xen_host_is_xen())
		return uni_err_set(err, UNI_ENOTSUP, "this host does not run under Xen");
	if (!host_is_dom0())
		return uni_err_set(err, UNI_ENOTSUP,
			"this is a guest of Xen, not its dom0: run uniscope there");
	if (access(PRIVCMD, F_OK) != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"there is no " PRIVCMD ": load the kernel module xen-privcmd");
	if (access(PRIVCMD, R_OK | W_OK) != 0)
		return uni_err_set(err, UNI_EPERM,
			PRIVCMD " may not be opened (%s): run uniscope as root", strerror(errno));
	return 0;
}

/* Looks beside the program: where both were copied, or in the build tree. */
static bool module_beside(const char *where, char *ret, size_t cap)
{
	char exe[2048];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;
	int len;

	if (n <= 0)
		return false;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	len = snprintf(ret, cap, "%s/%s%s", exe, where, module_name);
	return len > 0 && (size_t)len < cap && access(ret, R_OK) == 0;
}

static bool find_module(char *ret, size_t cap)
{
	if (module_beside("", ret, cap) || module_beside("../backend/xen/module/", ret, cap))
		return true;
	(void)snprintf(ret, cap, UNI_XEN_MODULE_DIR "/%s", module_name);
	return access(ret, R_OK) == 0;
}

int uni_xen_lib_open(struct uni_xen_lib *ret, struct uni_err *err)
{
	memset(ret, 0, sizeof(*ret));
	if (!find_module(ret->path, sizeof(ret->path)))
		return uni_err_set(err, UNI_ENOTSUP,
			"the Xen module is not installed (%s): build uniscope where libxen-dev is",
			ret->path);
	ret->handle = dlopen(ret->path, RTLD_NOW | RTLD_LOCAL);
	if (ret->handle == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"the Xen module cannot be loaded: %s (Debian: libxencall1, "
			"libxenforeignmemory1, libxentoollog1)",
			dlerror());
	ret->m = dlsym(ret->handle, UNI_XEN_MODULE_SYMBOL);
	if (ret->m == NULL || ret->m->version != UNI_XEN_MODULE_VERSION ||
		ret->m->size != sizeof(*ret->m)) {
		uni_xen_lib_close(ret);
		return uni_err_set(err, UNI_EMISMATCH,
			"the Xen module %s is of another uniscope: install both of one version",
			ret->path);
	}
	return 0;
}

void uni_xen_lib_close(struct uni_xen_lib *lib)
{
	if (lib->handle != NULL)
		(void)dlclose(lib->handle);
	lib->handle = NULL;
	lib->m = NULL;
}
