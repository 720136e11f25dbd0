/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/xen/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/target.h"
#include "backend/xen/abi.h"

#define PAGE	      4096u
#define VERSION_FIRST 0x06u
#define VERSION_LAST  0x20u
#define NO_VCPU	      UINT32_MAX

enum {		/* indexes into op[] */
	SINGLE, /* a domctl that is used alone */
	PAUSE,	/* the first one in a multicall */
	OF_VCPU /* and one for each vCPU */
};

struct uni_xen_call {
	const struct uni_xen_module *m;
	struct uni_xen_conn *conn;
	uint32_t version;
	size_t ctx_bytes, nr_pages;
	uint32_t nr_vcpus;
	/* One buffer has everything that the hypervisor reads and writes. */
	struct uni_xen_domctl *op;	 /* OF_VCPU + nr_vcpus; where it begins */
	struct uni_xen_multicall *entry; /* 1 + nr_vcpus */
	uint8_t *context;		 /* nr_vcpus */
};

uint32_t uni_xen_version_of_release(unsigned major, unsigned minor)
{
	/* XEN_DOMCTL_INTERFACE_VERSION of 4.6, 4.7, ... */
	static const uint8_t of_minor[] = { 0x0b, 0x0b, 0x0c, 0x0d, 0x0e, 0x10, 0x11, 0x12, 0x12,
		0x13, 0x14, 0x15, 0x16, 0x17, 0x17, 0x17, 0x18 };

	if (major != 4 || minor < 6 || minor - 6 >= uni_array_len(of_minor))
		return 0;
	return of_minor[minor - 6];
}

static int code_of(int rc)
{
	switch (-rc) {
	case 0:
		return 0;
	case ESRCH:
		return -UNI_EGONE;
	case EPERM:
	case EACCES:
		return -UNI_EPERM;
	case EAGAIN:
	case EBUSY:
	case ERANGE:
		return -UNI_EAGAIN;
	default:
		return rc < 0 ? -UNI_EIO : 0;
	}
}

static struct uni_xen_domctl *prepare_domctl(
	struct uni_xen_call *x, unsigned i, uint32_t cmd, uint32_t domid)
{
	struct uni_xen_domctl *op = &x->op[i];

	op->cmd = cmd;
	op->interface_version = x->version;
	op->domain = (uint16_t)domid;
	return op;
}

/* Runs the domctl that prepare(SINGLE) made. Returns 0 or Xen's -errno. */
static int do_single(struct uni_xen_call *x)
{
	int rc = x->m->call1(x->conn, UNI_XEN_NR_DOMCTL, &x->op[SINGLE]);

	return rc < 0 ? rc : 0;
}

/*
 * Is the call refused for another reason than its version? Asks dom0 about a vCPU that does not
 * exist.
 */
static int try_version(struct uni_xen_call *x, uint32_t version)
{
	struct uni_xen_domctl *op;

	x->version = version;
	op = prepare_domctl(x, SINGLE, UNI_XEN_VCPU_CONTEXT, 0);
	memset(&op->u, 0, sizeof(op->u));
	op->u.vcpu.vcpu = NO_VCPU;
	return do_single(x);
}

static unsigned release_part(const char *path)
{
	char text[16];
	uint64_t v;
	int n = uni_read_small(path, text, sizeof(text));

	if (n <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return uni_parse_u64(text, &v) && v < 1000 ? (unsigned)v : 0;
}

static int find_version(struct uni_xen_call *x, struct uni_err *err)
{
	uint32_t said = uni_xen_version_of_release(release_part("/sys/hypervisor/version/major"),
		release_part("/sys/hypervisor/version/minor"));
	int rc = said != 0 ? try_version(x, said) : -EACCES;

	for (uint32_t v = VERSION_FIRST; rc == -EACCES && v <= VERSION_LAST; v++)
		rc = try_version(x, v);
	if (rc == -EPERM)
		return uni_err_set(err, UNI_EPERM,
			"Xen does not let this domain look at others: run uniscope in dom0");
	if (rc == -EACCES)
		return uni_err_set(err, UNI_ENOTSUP,
			"this Xen speaks no interface version from 0x%x to 0x%x: is it older than "
			"4.6, or much newer than this uniscope?",
			VERSION_FIRST, VERSION_LAST);
	if (rc == -ENOSYS || rc == -ENOTTY)
		return uni_err_set(err, UNI_ENOTSUP, "this is no dom0 of Xen: no domctl");
	return 0;
}

static size_t to_line(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

int uni_xen_call_room(
	struct uni_xen_call *x, size_t ctx_bytes, uint32_t nr_vcpus, struct uni_err *err)
{
	size_t ops = to_line((OF_VCPU + nr_vcpus) * sizeof(*x->op));
	size_t entries = to_line((1 + nr_vcpus) * sizeof(*x->entry));
	size_t nr_pages = (ops + entries + nr_vcpus * ctx_bytes + PAGE - 1) / PAGE;
	uint8_t *p = x->m->buffer(x->conn, nr_pages);

	if (p == NULL)
		return uni_err_set(
			err, UNI_ENOMEM, "no memory for %zu pages of hypercall buffers", nr_pages);
	if (x->op != NULL)
		x->m->buffer_free(x->conn, x->op, x->nr_pages);
	x->op = (struct uni_xen_domctl *)(void *)p;
	x->entry = (struct uni_xen_multicall *)(void *)(p + ops);
	x->context = p + ops + entries;
	x->ctx_bytes = ctx_bytes;
	x->nr_vcpus = nr_vcpus;
	x->nr_pages = nr_pages;
	return 0;
}

int uni_xen_call_open(
	const struct uni_xen_module *m, struct uni_xen_call **ret, struct uni_err *err)
{
	struct uni_xen_call *x = calloc(1, sizeof(*x));
	char why[160] = "";
	int rc;

	if (x == NULL)
		return uni_err_nomem(err);
	x->m = m;
	rc = m->open(&x->conn, why, sizeof(why));
	if (rc < 0)
		rc = uni_err_set(err, rc == -EACCES || rc == -EPERM ? UNI_EPERM : UNI_ENOTSUP,
			"Xen cannot be asked (%s): run uniscope as root in dom0", why);
	if (rc == 0)
		rc = uni_xen_call_room(x, 0, 0, err);
	if (rc == 0)
		rc = find_version(x, err);
	if (rc != 0)
		uni_xen_call_close(x);
	else
		*ret = x;
	return rc;
}

void uni_xen_call_close(struct uni_xen_call *x)
{
	if (x == NULL)
		return;
	if (x->op != NULL)
		x->m->buffer_free(x->conn, x->op, x->nr_pages);
	if (x->conn != NULL)
		x->m->close(x->conn);
	free(x);
}

const struct uni_xen_module *uni_xen_call_module(const struct uni_xen_call *x)
{
	return x->m;
}

struct uni_xen_conn *uni_xen_call_conn(const struct uni_xen_call *x)
{
	return x->conn;
}

uint32_t uni_xen_call_version(const struct uni_xen_call *x)
{
	return x->version;
}

int uni_xen_call_info(struct uni_xen_call *x, uint32_t domid, struct uni_xen_dominfo *ret)
{
	const struct uni_xen_abi_info *i = &x->op[SINGLE].u.info;
	int rc;

	memset(&prepare_domctl(x, SINGLE, UNI_XEN_INFO, domid)->u, 0xff, sizeof(x->op[0].u));
	rc = do_single(x);
	if (rc < 0)
		return code_of(rc);
	/* If there is no such domain, some releases return the next one. */
	if (i->domain != domid)
		return -UNI_EGONE;
	*ret = (struct uni_xen_dominfo){
		.domid = domid,
		.dying = (i->flags & UNI_XEN_INFO_DYING) != 0,
		.hvm = (i->flags & UNI_XEN_INFO_HVM) != 0,
		.shutdown = (i->flags & UNI_XEN_INFO_SHUTDOWN) != 0,
		.paused = (i->flags & UNI_XEN_INFO_PAUSED) != 0,
		.reason = (uint8_t)(i->flags >> UNI_XEN_INFO_REASON_SHIFT),
		.nr_vcpus = i->max_vcpu_id == UINT32_MAX ? 0 : i->max_vcpu_id + 1,
	};
	if (__builtin_mul_overflow(i->tot_pages, (uint64_t)PAGE, &ret->mem_bytes))
		ret->mem_bytes = 0;
	if (__builtin_mul_overflow(i->max_pages, (uint64_t)PAGE, &ret->max_mem_bytes))
		ret->max_mem_bytes = 0;
	memcpy(ret->uuid, i->handle, sizeof(ret->uuid));
	return 0;
}

int uni_xen_call_unpause(struct uni_xen_call *x, uint32_t domid)
{
	int rc;

	(void)prepare_domctl(x, SINGLE, UNI_XEN_UNPAUSE, domid);
	rc = do_single(x);
	return rc == -EINVAL ? 0 : code_of(rc);
}

int uni_xen_call_width(struct uni_xen_call *x, uint32_t domid, unsigned *ret)
{
	struct uni_xen_domctl *op = prepare_domctl(x, SINGLE, UNI_XEN_ADDRESS_SIZE, domid);
	int rc;

	op->u.address_size = 0;
	rc = do_single(x);
	*ret = op->u.address_size;
	return code_of(rc);
}

/*
 * The rate of the machine's counter. A sysctl has an interface version of its own, which goes up
 * with some releases: the first that is not refused is this hypervisor's.
 */
static uint32_t machine_khz(struct uni_xen_call *x)
{
	struct uni_xen_sysctl *op = (struct uni_xen_sysctl *)(void *)&x->op[SINGLE];
	int rc = -EACCES;

	for (uint32_t v = VERSION_FIRST; rc == -EACCES && v <= VERSION_LAST; v++) {
		*op = (struct uni_xen_sysctl){ .cmd = UNI_XEN_PHYSINFO, .interface_version = v };
		rc = x->m->call1(x->conn, UNI_XEN_NR_SYSCTL, op);
	}
	return rc >= 0 ? op->u.physinfo.cpu_khz : 0;
}

/* A domain that reads the machine's counter itself has no rate of its own. */
uint64_t uni_xen_call_tsc_hz(struct uni_xen_call *x, uint32_t domid)
{
	struct uni_xen_domctl *op = prepare_domctl(x, SINGLE, UNI_XEN_TSC_INFO, domid);
	uint32_t khz = 0;

	op->u.tsc = (struct uni_xen_abi_tsc){ 0 };
	if (do_single(x) == 0)
		khz = op->u.tsc.mode == UNI_XEN_TSC_NATIVE ? machine_khz(x) : op->u.tsc.khz;
	return UINT64_C(1000) * khz;
}

int uni_xen_call_blocked(struct uni_xen_call *x, uint32_t domid, uint32_t vcpu, bool *ret)
{
	struct uni_xen_domctl *op = prepare_domctl(x, SINGLE, UNI_XEN_VCPU_INFO, domid);
	int rc;

	op->u.vcpu_info = (struct uni_xen_abi_vcpu_info){ .vcpu = vcpu };
	rc = do_single(x);
	*ret = rc == 0 && op->u.vcpu_info.blocked != 0;
	return code_of(rc);
}

static void add_entry(struct uni_xen_call *x, size_t i, const struct uni_xen_domctl *op)
{
	x->entry[i] = (struct uni_xen_multicall){
		.op = UNI_XEN_NR_DOMCTL,
		.args[0] = (uintptr_t)op,
	};
}

static const struct uni_xen_domctl *ask_context(
	struct uni_xen_call *x, uint32_t domid, uint32_t vcpu)
{
	struct uni_xen_domctl *op = prepare_domctl(x, OF_VCPU + vcpu, UNI_XEN_VCPU_CONTEXT, domid);

	op->u.vcpu = (struct uni_xen_abi_vcpu){
		.vcpu = vcpu,
		.context = (uintptr_t)(x->context + vcpu * x->ctx_bytes),
	};
	return op;
}

/*
 * Takes a vCPU's result: it is there; or it was never started (also fine); or the whole call
 * failed.
 */
static int take_result(int64_t result, uint32_t vcpu, struct uni_vcpuset *have)
{
	if (result == 0)
		uni_vcpuset_add(have, vcpu);
	if (result == 0 || result == -ENODATA)
		return 0;
	return code_of((int)result);
}

/* Makes the only entry a call of its own, whose error is the result. */
static int call_alone(struct uni_xen_call *x)
{
	struct uni_xen_multicall *e = &x->entry[0];

	e->result = (uint64_t)(int64_t)x->m->call1(
		x->conn, UNI_XEN_NR_DOMCTL, (void *)(uintptr_t)e->args[0]);
	return 0;
}

int uni_xen_call_contexts(struct uni_xen_call *x, uint32_t domid, const struct uni_vcpuset *set,
	bool pause, struct uni_vcpuset *have_ret)
{
	const struct uni_xen_multicall *e = x->entry;
	struct uni_vcpuset have = { 0 };
	size_t nr = 0;
	int rc;

	if (pause)
		add_entry(x, nr++, prepare_domctl(x, PAUSE, UNI_XEN_PAUSE, domid));
	for (uint32_t v = 0; v < x->nr_vcpus; v++) {
		if (uni_vcpuset_has(set, v))
			add_entry(x, nr++, ask_context(x, domid, v));
	}
	/* A single entry needs no list. */
	if (nr == 1)
		rc = call_alone(x);
	else
		rc = x->m->call2(x->conn, UNI_XEN_NR_MULTICALL, x->entry, nr);
	if (rc < 0)
		return code_of(rc);
	nr = 0;
	rc = pause ? code_of((int)(int64_t)e[nr++].result) : 0;
	if (rc < 0)
		return rc;
	for (uint32_t v = 0; v < x->nr_vcpus && rc == 0; v++) {
		if (uni_vcpuset_has(set, v))
			rc = take_result((int64_t)e[nr++].result, v, &have);
	}
	if (rc < 0 && pause)
		(void)uni_xen_call_unpause(x, domid);
	if (rc == 0)
		*have_ret = have;
	return rc;
}

const uint8_t *uni_xen_call_context(const struct uni_xen_call *x, uint32_t vcpu)
{
	return x->context + vcpu * x->ctx_bytes;
}
