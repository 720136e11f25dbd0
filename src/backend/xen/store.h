/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about domains from xenstore and from xl's notes. All of it is text that others wrote. */
#ifndef UNI_BACKEND_XEN_STORE_H
#define UNI_BACKEND_XEN_STORE_H

#include "backend/target.h"
#include "backend/xen/call.h"

#define UNI_XEN_DOMAIN_MAX 0x7ff0u /* DOMID_FIRST_RESERVED: domains are below */

/* Lists the domains except dom0, ascending, at most cap. Returns their number. */
size_t uni_xen_store_domains(struct uni_xen_call *x, uint32_t *ret, size_t cap);
/* Cleaned text; "" unknown. */
void uni_xen_store_name(struct uni_xen_call *x, uint32_t domid, char *ret, size_t cap);
/* The kernel of the domain; "" unknown. */
void uni_xen_store_image(
	struct uni_xen_call *x, const struct uni_xen_dominfo *d, char *ret, size_t cap);
/* "pv", "pvh" or "hvm" */
const char *uni_xen_store_kind(struct uni_xen_call *x, const struct uni_xen_dominfo *d);

/* Finds a domain by number or name; the name must be unique. *ret, or -UNI_ENOENT, -UNI_EUSAGE. */
int uni_xen_store_find(
	struct uni_xen_call *x, const char *text, uint32_t *ret, struct uni_err *err);

/* The kernel in xl's notes (JSON), for tests; "" none. */
void uni_xen_store_kernel_of(const char *json, size_t size, char *ret, size_t cap);

#endif
