/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces for symbolize: what comes out holds as many traces as are counted, and no address. */
#include <stdlib.h>
#include <string.h>

#include "format/import.h"
#include "format/uniprof/symbolize.h"
#include "obj/symtext.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* The importer, which reads the same language, must find the same traces in it. */
static void check_output(const struct uni_strbuf *text, const struct uni_symbolize_stats *stats)
{
	const struct uni_importer *im = uni_importer_by_name("uniprof");
	struct uni_import_opts opts = { 0 };
	struct uni_import_stats st = { 0 };
	struct uni_profile *p = uni_profile_create();

	require(p != NULL);
	if (im->read(text->s, text->len, &opts, p, &st, NULL) == 0)
		require(st.stacks == stats->traces);
	else
		require(stats->traces == 0);
	uni_profile_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char table[] = "0 T zero\n1000 T foo\n1100 T bar\nffffffffffffff00 T top\n";
	struct uni_symbolize_stats stats;
	struct uni_symtab *symtab = NULL;
	struct uni_strbuf text;
	struct uni_sink *out = NULL;
	bool as_is = size % 2 != 0;

	require(uni_symtab_of_nm("x", table, strlen(table), &symtab, NULL) == 0);
	uni_strbuf_init(&text);
	require(uni_sink_open_strbuf(&text, &out) == 0);
	uni_symbolize(symtab, as_is, (const char *)data, size, out, &stats);
	require(uni_sink_close(out, NULL) == 0);
	require(stats.broken <= stats.traces);
	check_output(&text, &stats);
	told(text.s, text.len);
	told_u64(stats.traces);
	told_u64(stats.broken);
	uni_strbuf_deinit(&text);
	uni_symtab_destroy(symtab);
	return 0;
}
