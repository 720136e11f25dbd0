/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "target/vmm/proc.h"

void uni_guest_name(const struct uni_target_info *info, char ret[UNI_GUEST_NAME_MAX])
{
	const char *slash = strrchr(info->image, '/');
	const char *base = slash != NULL ? slash + 1 : info->image;
	size_t len = strlen(base);
	uint64_t number;

	(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%s", info->name);
	if (ret[0] != '\0')
		return;
	if (len > 4 && strcmp(base + len - 4, ".elf") == 0)
		len -= 4;
	if (len >= UNI_GUEST_NAME_MAX)
		return;
	(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%.*s", (int)len, base);
	/* These would be taken for a pid or for a target. */
	if (uni_parse_u64(ret, &number) || strchr(ret, ':') != NULL)
		ret[0] = '\0';
}

static void choose(struct uni_found *f)
{
	char keys[300];

	(void)snprintf(f->why, sizeof(f->why), "no backend of this build reaches it%s",
		strcmp(f->info.vmm, "qemu") == 0 && strcmp(f->info.accel, "kvm") != 0
			? ": start QEMU with -gdb unix:PATH,server=on,wait=off"
			: "");
	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		const struct uni_target_ops *ops = uni_target_backends[i];
		struct uni_err err = { 0 };

		if (ops->claims == NULL || !ops->claims(&f->info, keys, sizeof(keys)))
			continue;
		if (ops->host_check != NULL && ops->host_check(&err) != 0) {
			(void)snprintf(f->why, sizeof(f->why), "%s: %.120s", ops->scheme, err.msg);
			continue;
		}
		(void)snprintf(f->spec, sizeof(f->spec), "%s:%s", ops->scheme, keys);
		(void)snprintf(f->why, sizeof(f->why), "%s", ops->summary);
		return;
	}
}

int uni_target_discover(struct uni_found **ret, size_t *nr_ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_target_info *info = NULL;
	struct uni_found *found;
	size_t nr = 0;
	int rc = uni_vmm_list(&info, &nr, err);

	if (rc != 0)
		return rc;
	found = calloc(nr + 1, sizeof(*found));
	if (found == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		found[i].info = info[i];
		choose(&found[i]);
	}
	*ret = found;
	*nr_ret = nr;
	return 0;
}
