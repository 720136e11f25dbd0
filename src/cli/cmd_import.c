/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "base/text.h"
#include "app/self.h"
#include "app/source.h"
#include "app/term.h"
#include "config.h"
#include "profile/aggregate.h"

static struct {
	struct uni_source_args src;
	const char *output;
	bool overwrite, list;
} o;

static const struct uni_opt *list_import_options(void)
{
	static const struct uni_opt table[] = {
		UNI_INPUT_FORMAT_OPTION(o.src.format, .old_letter = 'f', .old_name = "format"),
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "NAME", "session folder to write",
			"FILE", NULL },
		{ 's', "symbols", UNI_OPT_STR, &o.src.symbols, "FILE",
			"names for raw addresses: an ELF or a .usym", "FILE", NULL },
		{ 0, "overwrite", UNI_OPT_FLAG, &o.overwrite, NULL,
			"replace the session that --output names, if there is one", NULL, NULL },
		{ 0, "list", UNI_OPT_FLAG, &o.list, NULL, "list the formats", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .src.build = UNI_BUILD_DEFAULTS };
	return table;
}

static int write_session(const struct uni_source *s, struct uni_err *err)
{
	char command[1024];
	struct uni_aggregate_origin from = {
		.source = o.src.path, .version = UNISCOPE_VERSION, .command = command
	};

	uni_self_command(command, sizeof(command));
	return uni_aggregate_write(s->profile, &from, o.output, o.overwrite, err);
}

static int run_import(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_source s;
	int rc;

	if (o.list) {
		for (size_t i = 0; uni_importers[i] != NULL; i++)
			(void)printf(
				"%-10s %s\n", uni_importers[i]->name, uni_importers[i]->summary);
		return UNI_EXIT_OK;
	}
	if (ctx->nr_operands != 1 || o.output == NULL)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope import -o NAME.uniscope FILE (see --help)"));
	o.src.path = ctx->operands[0];
	rc = uni_source_open(&o.src, &s, err);
	if (rc != 0)
		return uni_exit_of(rc);
	if (s.importer == NULL)
		rc = uni_err_set(err, UNI_EUSAGE, "%s is a session already", o.src.path);
	else
		rc = write_session(&s, err);
	if (rc == 0)
		uni_note("imported %" PRIu64 " stack%s of %s from %s (%" PRIu64
			 " cut short, %" PRIu64 " empty) into %s",
			s.stats.stacks, uni_plural(s.stats.stacks), s.importer->name, o.src.path,
			s.stats.truncated, s.stats.empty, o.output);
	uni_source_close(&s);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_import = {
	.name = "import",
	.group = UNI_CMDS_EXCHANGE,
	.operands = "FILE",
	.reads_only = true,
	.summary = "make a session of another tool's profile",
	.details = "The session is an aggregate: it has no times. `report` and `export` also read "
		   "these\n"
		   "formats directly.",
	.examples = "  uniscope import stacks.folded -o old.uniscope\n"
		    "  uniscope import cpu.pb.gz -o old.uniscope\n"
		    "  uniscope import trace --input-format uniprof -s app.elf -o old.uniscope",
	.min_operands = 0,
	.max_operands = 1,
	.options = list_import_options,
	.run = run_import,
};
