/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hypercalls about one domain at a time. Of all that changes between Xen 4.7 and the newest only
 * domctl's interface version matters here, and that is found out: from the release that the
 * hypervisor says it is, else by trying.
 */
#ifndef UNI_BACKEND_XEN_CALL_H
#define UNI_BACKEND_XEN_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/vcpuset.h"
#include "backend/xen/module.h"

#define UNI_XEN_UUID_BYTES 16

struct uni_xen_call; /* opaque; a connection and the buffers of its hypercalls */

struct uni_xen_dominfo {
	uint32_t domid;
	bool dying, hvm, shutdown, paused;
	uint8_t reason;	   /* enum uni_xen_reason, if shutdown or dying */
	uint32_t nr_vcpus; /* that may exist; some may never have been started */
	uint64_t mem_bytes, max_mem_bytes;
	uint8_t uuid[UNI_XEN_UUID_BYTES];
};

/* err says which part of Xen is missing, or which right. */
int uni_xen_call_open(
	const struct uni_xen_module *m, struct uni_xen_call **ret, struct uni_err *err);
/* Room for the contexts of so many vCPUs, of ctx_bytes each: before any is asked for. */
int uni_xen_call_room(
	struct uni_xen_call *x, size_t ctx_bytes, uint32_t nr_vcpus, struct uni_err *err);
void uni_xen_call_close(struct uni_xen_call *x); /* NULL-safe */

const struct uni_xen_module *uni_xen_call_module(const struct uni_xen_call *x);
struct uni_xen_conn *uni_xen_call_conn(const struct uni_xen_call *x);
uint32_t uni_xen_call_version(const struct uni_xen_call *x); /* of domctl's interface */

/* All of these: 0, -UNI_EGONE (no such domain), -UNI_EPERM, or -UNI_EIO. */
int uni_xen_call_info(struct uni_xen_call *x, uint32_t domid, struct uni_xen_dominfo *ret);
/* Of a domain that is not paused: 0, nothing happens. */
int uni_xen_call_unpause(struct uni_xen_call *x, uint32_t domid);
/* Bits of an address of a PV domain. */
int uni_xen_call_width(struct uni_xen_call *x, uint32_t domid, unsigned *ret);

/* Does the vCPU wait for an event? */
int uni_xen_call_blocked(struct uni_xen_call *x, uint32_t domid, uint32_t vcpu, bool *ret);

/*
 * The contexts of the vCPUs in the set (below nr_vcpus), all at once, after pausing the domain if
 * it is asked for; have_ret: of which there is one (others were never started). On failure nothing
 * is paused. -UNI_EAGAIN: not now.
 */
int uni_xen_call_contexts(struct uni_xen_call *x, uint32_t domid, const struct uni_vcpuset *set,
	bool pause, struct uni_vcpuset *have_ret);
/* Of the last call; ctx_bytes long. */
const uint8_t *uni_xen_call_context(const struct uni_xen_call *x, uint32_t vcpu);

/* For tests: the interface version that a release has, 0 unknown. */
uint32_t uni_xen_version_of_release(unsigned major, unsigned minor);

#endif
