/* SPDX-License-Identifier: BSD-2-Clause */
/* What xenstore, and xl's notes, say of domains. All of it is text that others wrote. */
#ifndef UNI_BACKEND_XEN_STORE_H
#define UNI_BACKEND_XEN_STORE_H

#include "backend/target.h"
#include "backend/xen/call.h"

#define UNI_XEN_DOMAIN_MAX 0x7ff0u /* DOMID_FIRST_RESERVED: domains are below */

/* The domains but dom0, ascending, at most cap; their number. */
size_t uni_xen_store_domains(struct uni_xen_call *x, uint32_t *ret, size_t cap);
/* "" unknown; cleaned text. */
void uni_xen_store_name(struct uni_xen_call *x, uint32_t domid, char *ret, size_t cap);
/* The kernel that the domain was made from; "" unknown. */
void uni_xen_store_image(
	struct uni_xen_call *x, const struct uni_xen_dominfo *d, char *ret, size_t cap);
/* "pv", "pvh" or "hvm" */
const char *uni_xen_store_kind(struct uni_xen_call *x, const struct uni_xen_dominfo *d);

/* A domain's number or its name, which only one may have: *ret, or -UNI_ENOENT, -UNI_EUSAGE. */
int uni_xen_store_find(
	struct uni_xen_call *x, const char *text, uint32_t *ret, struct uni_err *err);

/* The kernel that xl's notes (JSON) name, for tests; "" none. */
void uni_xen_store_kernel_of(const char *json, size_t size, char *ret, size_t cap);

#endif
