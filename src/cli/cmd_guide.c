/* SPDX-License-Identifier: BSD-2-Clause */
/* How to find a bottleneck with this program, with the exact commands: two pages of text. */
#include <stdio.h>

#include "app/cmd.h"

static const char text[] =
	"FIND A BOTTLENECK: from a running guest to a function. No step needs a picture.\n"
	"\n"
	"1. Which guests are there, and what does this host permit?\n"
	"     uniscope ls --json\n"
	"     uniscope doctor TARGET\n"
	"   TARGET is a name or a pid of `ls`, or a word such as kvm:pid=4121.\n"
	"   doctor says which right is missing. Exit status 0: the guest can be reached.\n"
	"\n"
	"2. Record it while it does the work in question. 10 s at 99 Hz are 990 samples.\n"
	"     uniscope record TARGET -d 10 -o before.uniscope\n"
	"     uniscope record TARGET -o before.uniscope -- COMMAND\n"
	"   The second one lasts as long as COMMAND, such as a load generator. To boot an image:\n"
	"     uniscope run IMAGE -d 10 -o before.uniscope\n"
	"\n"
	"3. Where is the time? 100 % is the guest's time on a CPU.\n"
	"     uniscope report before.uniscope\n"
	"   Without a name, report takes the newest session of the folder.\n"
	"   Read the lines above the table first. \"idle\": it waits, go to 5. \"stolen\": the "
	"host\n"
	"   is busy. \"KVM\" or \"VMM\": exits cost, go to 6. Few chains \"end at their root\": "
	"do\n"
	"   not trust TOTAL. SELF is the function's own code, TOTAL includes its callees.\n"
	"     uniscope report --tree --min 5 before.uniscope       who calls it\n"
	"     uniscope report --lines before.uniscope              which source lines\n"
	"     uniscope annotate before.uniscope 'FUNCTION'         which instructions\n"
	"     uniscope report --thread 'worker*' before.uniscope   one thread\n"
	"     uniscope report --from 2 --to 3.5 before.uniscope    a part of the time, in s\n"
	"   Names of C++ and Rust need the quotes. An [inlined] function has no code of its own:\n"
	"   annotate shows the one around it, and whose each line is (JSON: `inlined`).\n"
	"\n"
	"4. The same for a program, in small steps (schemas: docs/schema/; members:\n"
	"   docs/formats/json.md). Each answer has at most N functions, children and callers:\n"
	"     uniscope report --json --top 10 before.uniscope\n"
	"     uniscope report --json --top 10 --under HANDLE before.uniscope\n"
	"     uniscope report --json --top 10 --focus 'FUNCTION' before.uniscope\n"
	"   functions[0] has the largest `self`. Is one function hot? --focus tells its callers.\n"
	"   If none is, follow the child with most of `here`, by its handle. A handle stays the\n"
	"   same in other recordings of the program. --from, --to, --thread, --vcpu work, too.\n"
	"     uniscope annotate --json before.uniscope 'FUNCTION'\n"
	"\n"
	"5. It waits: for what? All threads, on a CPU or not (Unikraft, Mini-OS, Nanos):\n"
	"     uniscope record TARGET --threads -d 10 -o waits.uniscope\n"
	"     uniscope report --off-cpu --tree waits.uniscope\n"
	"\n"
	"6. VM exits: how many, how long, from which function (KVM):\n"
	"     uniscope record TARGET --exits -d 10 -o exits.uniscope\n"
	"     uniscope report --exits exits.uniscope\n"
	"\n"
	"7. Single calls: how long does each take? The guest must have been built for it\n"
	"   (-pg -mfentry, or our tracer; `uniscope trace start --help`).\n"
	"     uniscope trace record TARGET -d 5 -o calls.uniscope\n"
	"     uniscope trace report --sort p99 calls.uniscope\n"
	"\n"
	"8. Change the program, record again in the same way, and ask whether it helped:\n"
	"     uniscope diff before.uniscope after.uniscope\n"
	"     uniscope diff --json before.uniscope after.uniscope\n"
	"   Exit status 0: the same, or better. 3: it cannot tell; the line says how many samples\n"
	"   would tell. 4: a function takes a larger share. Only marked (*) rows are sure.\n"
	"   \"Slower\" needs known work: three recordings of each side, made with -- COMMAND:\n"
	"     uniscope diff old-1.uniscope old-2.uniscope old-3.uniscope -- \\\n"
	"       new-1.uniscope new-2.uniscope new-3.uniscope\n"
	"\n"
	"WHAT GOES WRONG\n"
	"  addresses instead of names   give the ELF with symbols: --image at record, or\n"
	"                               uniscope report --symbols app.elf before.uniscope\n"
	"  \"another build\"              the image on disk is not the one that runs\n"
	"  no samples                   uniscope stacks TARGET shows where it waits\n"
	"Each command has --help with examples, and a man page: man uniscope-report.\n";

static const struct uni_opt *list_guide_options(void)
{
	static const struct uni_opt table[] = { UNI_OPT_END };

	return table;
}

static int run_guide(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	(void)ctx;
	(void)err;
	(void)fputs(text, stdout);
	return UNI_EXIT_OK;
}

const struct uni_cmd uni_cmd_guide = {
	.name = "guide",
	.operands = "",
	.reads_only = true,
	.summary = "say how to find a bottleneck, with the exact commands",
	.details = "Two pages for somebody, or a program, that cannot look at pictures.",
	.examples = "  uniscope guide",
	.options = list_guide_options,
	.run = run_guide,
};
