/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a domain offers by grants, whose references it writes into xenstore: the trace ring
 * of MirageOS (mirage-profile), at data/mprof/ring-ref below the domain's path.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "backend/xen/store.h"
#include "backend/xen/xen.h"

#define REFS_MAX  16384u /* 64 MiB; the default is 245 pages */
#define REF_BYTES 11u	 /* of one reference, with its comma */

int uni_xen_grant_refs(const char *text, uint32_t *ret, size_t cap)
{
	size_t nr = 0;

	for (;;) {
		size_t len = strcspn(text, ",");
		char number[REF_BYTES];
		uint64_t ref;

		if (len == 0 || len >= sizeof(number) || nr == cap)
			return -UNI_EINVAL;
		memcpy(number, text, len);
		number[len] = '\0';
		if (!uni_parse_u64(number, &ref) || ref > UINT32_MAX)
			return -UNI_EINVAL;
		ret[nr++] = (uint32_t)ref;
		if (text[len] == '\0')
			return (int)nr;
		text += len + 1;
	}
}

/* Maps, copies and unmaps: the domain cannot take back a grant that we hold. */
static int copy_grants(struct uni_xen_target *t, const uint32_t *ref, size_t nr, uint8_t **ret,
	struct uni_err *err)
{
	const struct uni_xen_module *m = uni_xen_call_module(t->call);
	struct uni_xen_conn *c = uni_xen_call_conn(t->call);
	const uint8_t *at = m->grant_map(c, t->dom.domid, ref, nr);
	int e = errno;

	if (at == NULL)
		return uni_err_set(err, UNI_EIO,
			"xen: domain %" PRIu32 "'s %zu granted pages cannot be mapped (%s)",
			t->dom.domid, nr, strerror(e));
	*ret = malloc(nr * UNI_XEN_PAGE);
	if (*ret != NULL)
		memcpy(*ret, at, nr * UNI_XEN_PAGE);
	m->grant_unmap(c, at, nr);
	return *ret != NULL ? 0 : uni_err_nomem(err);
}

int uni_xen_granted(struct uni_target *base, const char *what, uint8_t **ret, size_t *size_ret,
	struct uni_err *err)
{
	struct uni_xen_target *t = (struct uni_xen_target *)base;
	_cleanup_free_ uint32_t *ref = calloc(REFS_MAX, sizeof(*ref));
	_cleanup_free_ char *text = NULL;
	char path[96];
	size_t size;
	int nr, rc;

	(void)snprintf(path, sizeof(path), "/local/domain/%" PRIu32 "/data/%.32s/ring-ref",
		t->dom.domid, what);
	if (ref == NULL)
		return uni_err_nomem(err);
	text = uni_xen_call_module(t->call)->store_read(uni_xen_call_conn(t->call), path, &size);
	if (text == NULL)
		return uni_err_set(err, UNI_ENOENT,
			"xen: domain %" PRIu32 " offers no such ring: there is no %s", t->dom.domid,
			path);
	nr = memchr(text, '\0', size) == NULL ? uni_xen_grant_refs(text, ref, REFS_MAX)
					      : -UNI_EINVAL;
	if (nr < 0)
		return uni_err_set(err, UNI_EINVAL,
			"xen: %s is no list of grant references, or one of more than %u", path,
			REFS_MAX);
	rc = copy_grants(t, ref, (size_t)nr, ret, err);
	if (rc == 0)
		*size_ret = (size_t)nr * UNI_XEN_PAGE;
	return rc;
}
