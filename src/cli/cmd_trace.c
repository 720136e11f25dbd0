/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"

const struct uni_cmd uni_cmd_trace = {
	.name = "trace",
	.group = UNI_CMDS_TRACE,
	.operands = "...",
	.summary = "trace every call of a guest that links our tracer",
	.details = "uniscope trace COMMAND --help describes each.",
	.sub = uni_trace_cmds,
};
