/* SPDX-License-Identifier: BSD-2-Clause */
/* A domain that is saved or migrated, and one that is given by its UUID, with a made-up hypervisor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/xen_domain.h"
#include "backend/guard.h"
#include "backend/xen/uuid.h"
#include "backend/xen/xen.h"

#define VCPUS(bits) (&(struct uni_vcpuset){ { bits } })

/* Saved, and it goes on (a checkpoint): nothing is sampled meanwhile, and nothing ends. Then it is
 * saved for good. */
static void outlives_checkpoint(void **state)
{
	struct uni_regs regs[HV_VCPUS];
	struct uni_target_info info;
	struct uni_pause p;

	for (int pauses = 0; pauses <= 1; pauses++) {
		struct uni_target *t;

		t = attached(pauses ? "xen:dom=7" : "xen:dom=7,pause=no");
		hv->shutdown = true;
		hv->reason = UNI_XEN_SUSPEND;
		(void)usleep(110000);
		assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), -UNI_EAGAIN);
		assert_true(t->ops->alive(t));
		t->ops->info(t, &info);
		assert_string_equal(info.rest, "suspended");
		hv->shutdown = false;
		(void)usleep(110000);
		assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), 0);
		assert_int_equal(uni_pause_end(&p), 0);
		hv->shutdown = true;
		(void)usleep(110000);
		assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), -UNI_EAGAIN);
		hv->dying = true;
		(void)usleep(110000);
		assert_int_equal(uni_pause_begin(&p, t, VCPUS(7), regs), -UNI_EGONE);
		t->ops->info(t, &info);
		assert_non_null(strstr(info.ended, "saved, or migrated"));
		uni_target_detach(t);
		hv->shutdown = hv->dying = false;
		hv->reason = 0;
	}
}

/* As `xl list -v` has it, whatever its number and name are. */
static void found_by_uuid(void **state)
{
	char uuid[UNI_XEN_UUID_TEXT], spec[80];
	struct uni_err err = { 0 };
	struct uni_target *t = NULL;
	struct uni_target_info info;
	struct uni_xen_dominfo d;
	struct uni_xen_call *x;
	struct uni_spec parsed;

	assert_int_equal(uni_xen_call_open(&hv_module, &x, &err), 0);
	assert_int_equal(uni_xen_call_info(x, 7, &d), 0);
	uni_xen_call_close(x);
	uni_xen_uuid_text(d.uuid, uuid);
	(void)snprintf(spec, sizeof(spec), "xen:dom=%s", uuid);
	t = attached(spec);
	t->ops->info(t, &info);
	assert_int_equal(info.domid, 7);
	uni_target_detach(t);
	spec[sizeof("xen:dom=") - 1] ^= 1;
	assert_int_equal(uni_spec_parse(spec, &parsed, &err), 0);
	assert_int_equal(uni_xen_attach_with(&hv_module, dir, &parsed, &t, &err), -UNI_ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(outlives_checkpoint, set_up, tear_down),
		cmocka_unit_test_setup_teardown(found_by_uuid, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
