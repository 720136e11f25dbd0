/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"

const struct uni_cmd uni_cmd_compat = {
	.name = "compat",
	.group = UNI_CMDS_COMPAT,
	.operands = "...",
	.summary = "run as an older tool did, with its options and its output",
	.details = "uniscope compat NAME --help describes each. A link with the older "
		   "tool's name\n"
		   "to uniscope does the same; so does `uniscope NAME`.",
	.examples = "  uniscope compat uniprof -F 99 -T 10 traces 5\n"
		    "  uniscope compat xenctx -C 3",
	.sub = uni_compat_cmds,
};
