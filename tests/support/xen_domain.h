/* SPDX-License-Identifier: BSD-2-Clause */
/* An HVM domain of the made-up hypervisor (xen.h), for each test anew, and how it is attached. */
#ifndef UNI_TESTS_SUPPORT_XEN_DOMAIN_H
#define UNI_TESTS_SUPPORT_XEN_DOMAIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/xen/xen.h"
#include "xen.h"

static char dir[32];

static int set_up(void **state)
{
	hv_create();
	hv->hvm = true;
	for (unsigned v = 0; v < HV_VCPUS; v++)
		hv_ctx_put(v, 512, 1u << 5); /* online */
	(void)snprintf(dir, sizeof(dir), "/tmp/xen-XXXXXX");
	return mkdtemp(dir) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	bool clean = hv->buffers == 0 && hv->mapped == 0;
	int r = rmdir(dir);

	hv_destroy();
	return clean && r == 0 ? 0 : -1;
}

static struct uni_target *attached(const char *text)
{
	struct uni_err err = { 0 };
	struct uni_target *t = NULL;
	struct uni_spec spec;

	assert_int_equal(uni_spec_parse(text, &spec, &err), 0);
	assert_int_equal(uni_xen_attach_with(&hv_module, dir, &spec, &t, &err), 0);
	return t;
}

#endif
