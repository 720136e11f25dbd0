/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/xen/vcpu.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/checked.h"

static const struct uni_xen_arch *const arches[] = {
	&uni_xen_arch_x86_64,
	&uni_xen_arch_aarch64,
};

const struct uni_xen_arch *uni_xen_arch_of_host(void)
{
	struct utsname u;

	if (uname(&u) != 0)
		return NULL;
	for (size_t i = 0; i < uni_array_len(arches); i++) {
		if (strcmp(arches[i]->machine, u.machine) == 0)
			return arches[i];
	}
	return NULL;
}
