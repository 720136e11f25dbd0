/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact counts as JSON: calls and instructions of each function, executions of each instruction. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "format/opts.h"
#include "obj/usym.h"
#include "recording/exact.h"
#include "recording/recording.h"

static int write_counts(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_counts = {
	.name = "counts",
	.ext = "counts.json",
	.mime = "application/json",
	.summary = "exact counts: calls and instructions by function, executions by instruction",
	.needs = UNI_NEEDS_SAMPLES | UNI_NEEDS_EXACT,
	.write = write_counts,
};

static const struct {
	const char *key;
	enum uni_exact_stat stat;
} stats[] = {
	{ "calls", UNI_EXACT_CALLS },
	{ "tail_calls", UNI_EXACT_TAIL_CALLS },
	{ "returns", UNI_EXACT_RETURNS },
	{ "frames_dropped", UNI_EXACT_DROPPED },
	{ "frames_open", UNI_EXACT_OPEN },
	{ "returns_unmatched", UNI_EXACT_UNMATCHED },
	{ "interrupts", UNI_EXACT_INTERRUPTS },
	{ "interrupts_resumed", UNI_EXACT_RESUMED },
	{ "blocks_cut", UNI_EXACT_CUT },
	{ "blocks_cut_anywhere", UNI_EXACT_UNKNOWN_CUTS },
	{ "stack_switches", UNI_EXACT_SWITCHES },
	{ "stacks", UNI_EXACT_STACKS },
	{ "calls_folded", UNI_EXACT_FOLDED },
	{ "blocks_uncounted", UNI_EXACT_UNCOUNTED },
};

static void put_stat(
	struct uni_json *j, const struct uni_exact *e, const char *key, enum uni_exact_stat stat)
{
	uni_json_key(j, key);
	if (uni_exact_knows(e, stat))
		uni_json_u64(j, uni_exact_stat(e, stat));
	else
		uni_json_null(j);
}

static void put_functions(struct uni_json *j, const struct uni_exact *e,
	const struct uni_exact_total *total, uint32_t nr, const struct uni_symtab *symtab)
{
	const struct uni_exact_function *f = uni_exact_functions(e, &nr);

	uni_json_key(j, "functions");
	uni_json_array(j);
	for (uint32_t i = 0; i < nr; i++) {
		const char *name = NULL;
		uint64_t offset = 0;

		if (total[i].insns == 0 && total[i].calls == 0)
			continue;
		if (f[i].end == 0 || symtab == NULL ||
			!uni_symtab_lookup(symtab, f[i].start, &name, &offset))
			name = NULL;
		uni_json_object(j);
		uni_json_kv(str, j, "name", name);
		uni_json_kv(hex, j, "address", f[i].start);
		uni_json_kv(u64, j, "size", f[i].end != 0 ? f[i].end - f[i].start : 0);
		uni_json_kv(u64, j, "calls", total[i].calls);
		uni_json_kv(u64, j, "instructions", total[i].insns);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void put_insns(struct uni_json *j, const struct uni_exact_insn *insn, size_t nr)
{
	uni_json_key(j, "executions");
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++) {
		uni_json_array(j);
		uni_json_hex(j, insn[i].addr);
		uni_json_u64(j, insn[i].count);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

static int put_all(const struct uni_view *v, const struct uni_exact *e, struct uni_sink *out)
{
	const struct uni_symtab *symtab =
		v->symtab != NULL ? v->symtab : uni_recording_guest(v->samples, 0).symtab;
	_cleanup_free_ struct uni_exact_total *total = NULL;
	_cleanup_free_ struct uni_exact_insn *insn = NULL;
	uint32_t nr_functions;
	size_t nr_insns;
	struct uni_json j;

	if (uni_exact_count_functions(e, &total, &nr_functions) != 0 ||
		uni_exact_count_insns(e, &insn, &nr_insns) != 0)
		return -UNI_ENOMEM;
	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-counts");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(str, &j, "state", uni_exact_state_name(e));
	uni_json_kv(u64, &j, "instructions", uni_exact_insns(e));
	uni_json_kv(u64, &j, "instructions_before_image", uni_exact_before(e));
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		put_stat(&j, e, stats[i].key, stats[i].stat);
	put_functions(&j, e, total, nr_functions, symtab);
	put_insns(&j, insn, nr_insns);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
	return 0;
}

static int write_counts(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	int rc = uni_export_opts_parse(&uni_exporter_counts, opts, nr_opts, NULL, err);
	struct uni_exact *e = NULL;

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_counts, v, err);
	if (rc == 0)
		rc = uni_exact_load(uni_recording_path(v->samples), 0, &e, err);
	if (rc == 0 && put_all(v, e, out) != 0)
		rc = uni_err_nomem(err);
	uni_exact_destroy(e);
	return rc;
}
