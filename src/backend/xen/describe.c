/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts about Xen and its domains for ls and doctor. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "backend/xen/abi.h"
#include "backend/xen/store.h"
#include "backend/xen/xen.h"

const char *uni_xen_fate(const struct uni_xen_dominfo *d)
{
	static const char *const by_reason[] = {
		[UNI_XEN_POWEROFF] = "powered off",
		[UNI_XEN_REBOOT] = "rebooted",
		[UNI_XEN_SUSPEND] = "was suspended: saved, or migrated to another host",
		[UNI_XEN_CRASH] = "crashed",
		[UNI_XEN_WATCHDOG] = "was ended by its watchdog",
	};

	if (d->shutdown && d->reason < uni_array_len(by_reason))
		return by_reason[d->reason];
	if (d->shutdown)
		return "shut down";
	return "was destroyed, or has left this host";
}

bool uni_xen_is_suspended(const struct uni_xen_dominfo *d)
{
	return d->shutdown && d->reason == UNI_XEN_SUSPEND;
}

void uni_xen_say_rest(const struct uni_xen_dominfo *d, struct uni_target_info *ret)
{
	static const char *const by_reason[] = {
		[UNI_XEN_POWEROFF] = "powered off",
		[UNI_XEN_REBOOT] = "rebooted",
		[UNI_XEN_SUSPEND] = "suspended",
		[UNI_XEN_CRASH] = "crashed",
	};
	const char *word = d->paused ? "paused" : "";

	if (d->shutdown)
		word = d->reason < uni_array_len(by_reason) ? by_reason[d->reason] : "shut down";
	(void)snprintf(ret->rest, sizeof(ret->rest), "%s", word);
}

void uni_xen_describe(
	struct uni_xen_call *x, const struct uni_xen_dominfo *d, struct uni_target_info *ret)
{
	const char *kind = uni_xen_store_kind(x, d);
	char state[96] = "";

	ret->domid = d->domid;
	(void)snprintf(ret->vmm, sizeof(ret->vmm), "xen");
	(void)snprintf(ret->accel, sizeof(ret->accel), "%s", kind);
	uni_xen_store_name(x, d->domid, ret->name, sizeof(ret->name));
	uni_xen_store_image(x, d, ret->image, sizeof(ret->image));
	ret->nr_vcpus = d->nr_vcpus;
	ret->mem_bytes = d->mem_bytes;
	uni_xen_say_rest(d, ret);
	if (d->shutdown)
		(void)snprintf(state, sizeof(state), "it %s and is preserved", uni_xen_fate(d));
	else if (d->paused)
		(void)snprintf(state, sizeof(state), "it is paused");
	if (ret->note[0] == '\0' && state[0] != '\0')
		(void)snprintf(ret->note, sizeof(ret->note), "Xen domain %" PRIu32 " (%s): %s",
			d->domid, kind, state);
}

void uni_xen_say_healed(uint32_t domid, struct uni_target_info *ret)
{
	(void)snprintf(ret->note, sizeof(ret->note),
		"domain %" PRIu32 " stood still since a uniscope was killed: it runs again", domid);
}

/* healed: it was resumed just now; 0: none was. */
static int list_domains(struct uni_xen_call *x, uint32_t healed, struct uni_target_info **ret,
	size_t *nr_ret, struct uni_err *err)
{
	_cleanup_free_ uint32_t *domid = calloc(UNI_XEN_DOMAIN_MAX, sizeof(*domid));
	struct uni_target_info *info;
	size_t nr, n = 0;

	if (domid == NULL)
		return uni_err_nomem(err);
	nr = uni_xen_store_domains(x, domid, UNI_XEN_DOMAIN_MAX);
	info = calloc(nr + 1, sizeof(*info));
	if (info == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < nr; i++) {
		struct uni_xen_dominfo d;

		if (uni_xen_call_info(x, domid[i], &d) != 0 || d.dying)
			continue;
		if (domid[i] == healed)
			uni_xen_say_healed(healed, &info[n]);
		uni_xen_describe(x, &d, &info[n++]);
	}
	*ret = info;
	*nr_ret = n;
	return 0;
}

int uni_xen_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err)
{
	struct uni_xen_lib lib = { 0 };
	struct uni_xen_call *x = NULL;
	uint32_t healed = 0;
	int rc = 0;

	*ret = NULL;
	*nr_ret = 0;
	/*
	 * On any other host there are no domains, which is no error; doctor says what is missing.
	 */
	if (uni_xen_host_check(NULL) == 0 && uni_xen_lib_open(&lib, NULL) == 0 &&
		uni_xen_call_open(lib.m, &x, NULL) == 0) {
		(void)uni_xen_heal(x, UNI_XEN_STATE_DIR, &healed);
		rc = list_domains(x, healed, ret, nr_ret, err);
	}
	uni_xen_call_close(x);
	uni_xen_lib_close(&lib);
	return rc;
}

/* Facts about Xen itself: can it be asked, and with which version? */
static void add_hypervisor(struct uni_host_way *way)
{
	struct uni_err err = { 0 };
	struct uni_xen_lib lib = { 0 };
	struct uni_xen_call *x = NULL;
	int rc = uni_xen_lib_open(&lib, &err);

	uni_host_fact_add(way, "module", rc == 0, "%s", rc == 0 ? lib.path : err.msg);
	if (rc == 0 && uni_xen_host_is_xen()) {
		rc = uni_xen_call_open(lib.m, &x, &err);
		if (rc == 0)
			uni_host_fact_add(way, "hypercalls", true,
				"Xen answers, interface version 0x%" PRIx32,
				uni_xen_call_version(x));
		else
			uni_host_fact_add(way, "hypercalls", false, "%s", err.msg);
	}
	uni_xen_call_close(x);
	uni_xen_lib_close(&lib);
}

uint32_t uni_xen_host_ways(struct uni_host_way *ret, uint32_t cap)
{
	struct uni_err err = { 0 };
	int rc = uni_xen_host_check(&err);

	*ret = (struct uni_host_way){ .name = "xen", .summary = uni_target_xen.summary };
	uni_host_fact_add(ret, "dom0", rc == 0, "%s", rc == 0 ? "this is Xen's dom0" : err.msg);
	add_hypervisor(ret);
	uni_host_way_judge(ret);
	return 1;
}
