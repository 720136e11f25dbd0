/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/mprof.h"

#include "app/attach.h"
#include "app/resolve.h"

/* Nothing of the guest is stopped for this, nor need it run. */
static int attach_granter(const char *operand, struct uni_target **ret, struct uni_err *err)
{
	static const struct uni_way_wish wish = { .no_pause = true };
	const struct uni_target_ops *ops = NULL;
	struct uni_attach_opts opts = { 0 };
	struct uni_way_key key = { 0 };
	struct uni_spec spec;
	int rc = uni_guest_resolve(operand, &spec, err);

	if (rc == 0)
		ops = uni_target_backend(spec.scheme);
	if (rc == 0 && (ops == NULL || ops->granted == NULL))
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: MirageOS offers its trace ring by Xen's grants: give a domain "
			"(xen:dom=ID)",
			spec.text);
	if (rc == 0 && ops->choose_key != NULL)
		ops->choose_key(&spec, &wish, &key);
	if (key.key != NULL)
		rc = uni_spec_add(&spec, key.key, key.value, err);
	return rc == 0 ? uni_target_attach(&spec, &opts, ret, err) : rc;
}

int uni_mprof_fetch(const char *target, uint8_t **ring_ret, size_t *size_ret, struct uni_err *err)
{
	struct uni_target *t = NULL;
	int rc = attach_granter(target, &t, err);

	if (rc != 0)
		return rc;
	rc = t->ops->granted(t, "mprof", ring_ret, size_ret, err);
	uni_target_detach(t);
	return rc;
}
