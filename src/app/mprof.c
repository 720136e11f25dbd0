/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/mprof.h"

#include <stdio.h>
#include <string.h>

#include "app/attach.h"
#include "app/resolve.h"

/* Nothing of the guest is stopped for this, nor need it run. */
static int attach(const char *operand, struct uni_target **ret, struct uni_err *err)
{
	struct uni_attach_opts opts = { 0 };
	char text[sizeof(((struct uni_spec *)NULL)->text)];
	struct uni_spec spec;
	int rc = uni_guest_resolve(operand, &spec, err), n;

	if (rc == 0 && strcmp(spec.scheme, "xen") != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: MirageOS offers its trace ring by Xen's grants: give a domain "
			"(xen:dom=ID)",
			spec.text);
	if (rc == 0 && uni_spec_get(&spec, "pause") == NULL) {
		n = snprintf(text, sizeof(text), "%s,pause=no", spec.text);
		rc = n > 0 && (size_t)n < sizeof(text)
			     ? uni_spec_parse(text, &spec, err)
			     : uni_err_set(err, UNI_EUSAGE, "the target is too long");
	}
	return rc == 0 ? uni_target_attach(&spec, &opts, ret, err) : rc;
}

int uni_mprof_fetch(const char *target, uint8_t **ring_ret, size_t *size_ret, struct uni_err *err)
{
	struct uni_target *t = NULL;
	int rc = attach(target, &t, err);

	if (rc != 0)
		return rc;
	rc = t->ops->granted(t, "mprof", ring_ret, size_ret, err);
	uni_target_detach(t);
	return rc;
}
