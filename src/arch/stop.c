/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/stop.h"

#include <string.h>

static const char *const names[UNI_STOP_NR] = {
	[UNI_STOP_ROOT] = "root",
	[UNI_STOP_FAULT] = "fault",
	[UNI_STOP_LOOP] = "loop",
	[UNI_STOP_LIMIT] = "limit",
	[UNI_STOP_BADPTR] = "bad-pointer",
	[UNI_STOP_BADPC] = "bad-pc",
	[UNI_STOP_BUDGET] = "budget",
	[UNI_STOP_NOREGS] = "no-registers",
	[UNI_STOP_GONE] = "gone",
};

const char *uni_stop_name(unsigned stop)
{
	return stop < UNI_STOP_NR ? names[stop] : "unknown";
}
