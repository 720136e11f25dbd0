/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hypercalls about one domain at a time. Between Xen 4.7 and the newest release, only a change of
 * domctl's interface version matters here. The version is found from the hypervisor's release, or
 * else by trying.
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

struct uni_xen_call; /* opaque; a connection, and the buffers of its hypercalls */

struct uni_xen_dominfo {
	uint32_t domid;
	bool dying, hvm, shutdown, paused;
	uint8_t reason;	   /* enum uni_xen_reason, if shutdown or dying */
	uint32_t nr_vcpus; /* possible vCPUs; some may never have been started */
	uint64_t mem_bytes, max_mem_bytes;
	uint8_t uuid[UNI_XEN_UUID_BYTES];
};

/* err says which part of Xen is missing, or which right. */
int uni_xen_call_open(
	const struct uni_xen_module *m, struct uni_xen_call **ret, struct uni_err *err);
/*
 * Makes room for the contexts of so many vCPUs, of ctx_bytes each; call it before reading contexts.
 */
int uni_xen_call_room(
	struct uni_xen_call *x, size_t ctx_bytes, uint32_t nr_vcpus, struct uni_err *err);
void uni_xen_call_close(struct uni_xen_call *x); /* NULL-safe */

const struct uni_xen_module *uni_xen_call_module(const struct uni_xen_call *x);
struct uni_xen_conn *uni_xen_call_conn(const struct uni_xen_call *x);
uint32_t uni_xen_call_version(const struct uni_xen_call *x); /* of domctl's interface */

/* All of these return 0, -UNI_EGONE (no such domain), -UNI_EPERM, or -UNI_EIO. */
int uni_xen_call_info(struct uni_xen_call *x, uint32_t domid, struct uni_xen_dominfo *ret);
/* If the domain is not paused, does nothing, and returns 0. */
int uni_xen_call_unpause(struct uni_xen_call *x, uint32_t domid);
/* The bits of an address in a PV domain. */
int uni_xen_call_width(struct uni_xen_call *x, uint32_t domid, unsigned *ret);

/* The rate of the domain's time stamp counter; 0: Xen does not tell (arm64). Xen pauses the domain
 * for it. */
uint64_t uni_xen_call_tsc_hz(struct uni_xen_call *x, uint32_t domid);

/* Does the vCPU wait for an event? */
int uni_xen_call_blocked(struct uni_xen_call *x, uint32_t domid, uint32_t vcpu, bool *ret);

/*
 * Reads the contexts of the vCPUs in the set (below nr_vcpus), all at once; with `pause`, after
 * pausing the domain. have_ret: the vCPUs with a context (others were never started). On failure
 * nothing is paused. -UNI_EAGAIN: not now.
 */
int uni_xen_call_contexts(struct uni_xen_call *x, uint32_t domid, const struct uni_vcpuset *set,
	bool pause, struct uni_vcpuset *have_ret);
/* The context from the last call; ctx_bytes long. */
const uint8_t *uni_xen_call_context(const struct uni_xen_call *x, uint32_t vcpu);

/* For tests: the interface version of a release; 0 unknown. */
uint32_t uni_xen_version_of_release(unsigned major, unsigned minor);

#endif
