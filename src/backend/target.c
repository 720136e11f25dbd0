/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/target.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/strbuf.h"

const struct uni_target_ops *uni_target_backend(const char *scheme)
{
	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		if (strcmp(uni_target_backends[i]->scheme, scheme) == 0)
			return uni_target_backends[i];
	}
	return NULL;
}

static int unknown_scheme(const struct uni_spec *spec, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf known;

	uni_strbuf_init(&known);
	for (size_t i = 0; uni_target_backends[i] != NULL; i++)
		uni_strbuf_addf(&known, "%s%s:", i == 0 ? "" : " ", uni_target_backends[i]->scheme);
	return uni_err_set(err, UNI_EUSAGE, "target %s: unknown scheme %s: (this build has: %s)",
		spec->text, spec->scheme, known.s);
}

bool uni_target_settled(struct uni_target *t, uint64_t wait_ns)
{
	const struct timespec nap = uni_ns_timespec(5 * UNI_NSEC_PER_MSEC);
	uint64_t until_ns = uni_now_ns() + wait_ns;

	while (t->ops->settled != NULL && !t->ops->settled(t)) {
		if (uni_now_ns() >= until_ns)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

const char *uni_target_units(const char *spec)
{
	const struct uni_target_ops *ops = NULL;
	struct uni_spec parsed;
	struct uni_err ignored = { 0 };

	if (uni_spec_parse(spec, &parsed, &ignored) == 0)
		ops = uni_target_backend(parsed.scheme);
	return ops != NULL && ops->units != NULL ? ops->units : "vCPUs";
}

int uni_target_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err)
{
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);

	memset(ret, 0, sizeof(*ret));
	if (ops == NULL)
		return unknown_scheme(spec, err);
	return ops->probe != NULL ? ops->probe(spec, ret, err) : 0;
}

int uni_target_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	static const struct uni_attach_opts no_opts;
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);

	if (ops == NULL)
		return unknown_scheme(spec, err);
	return ops->attach(spec, opts != NULL ? opts : &no_opts, ret, err);
}

int uni_target_look(const struct uni_target_ops *ops, const struct uni_spec *spec,
	struct uni_target_info *ret, struct uni_err *err)
{
	static const struct uni_attach_opts opts;
	struct uni_target *t;
	int rc = ops->attach(spec, &opts, &t, err);

	if (rc != 0)
		return rc;
	ops->info(t, ret);
	ops->detach(t);
	return 0;
}

void uni_target_detach(struct uni_target *t)
{
	if (t != NULL)
		t->ops->detach(t);
}
