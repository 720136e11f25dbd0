/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"

const struct uni_cmd uni_cmd_uk_trace = {
	.name = "uk-trace",
	.operands = "...",
	.summary = "for scripts of Unikraft's uk-trace: its tracepoints, from outside and without "
		   "gdb",
	.details = "uniscope compat uk-trace COMMAND --help tells more of each.",
	.sub = uni_uk_trace_cmds,
};
