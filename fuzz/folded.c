/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded text, one and two columns, on through every exporter that needs no recording. */
#include <stdlib.h>
#include <string.h>

#include "import.h"

static void write_all(const struct uni_profile *p)
{
	static const struct uni_export_opt no_pruning = { "minwidth", "0" };
	struct uni_view v = { .profile = p };

	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		const struct uni_exporter *e = uni_exporters[i];
		struct uni_strbuf b;
		struct uni_sink *out;

		if ((e->needs & (UNI_NEEDS_SAMPLES | UNI_NEEDS_TIMELINE)) != 0)
			continue;
		uni_strbuf_init(&b);
		if (uni_sink_open_strbuf(&b, &out) != 0)
			abort();
		(void)e->write(&v, &no_pruning, strcmp(e->name, "svg") == 0, out, NULL);
		if (uni_sink_close(out, NULL) != 0)
			abort();
		if (strcmp(e->name, "pprof") != 0) /* zlib packs it */
			told(b.s, b.len);
		uni_strbuf_deinit(&b);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct uni_importer *im = uni_importer_by_name("folded");

	told_u64((uint64_t)im->sniff((const char *)data, size));
	for (int diff = 0; diff < 4; diff++) {
		struct uni_import_opts opts = { .diff = (diff & 1) != 0, .reverse = size % 2 != 0 };
		struct uni_profile *p = uni_profile_create();
		struct uni_import_stats st;

		if (p == NULL)
			abort();
		if (diff > 1)
			uni_profile_pile_up(p);
		if (im->read((const char *)data, size, &opts, p, &st, NULL) == 0 &&
			uni_profile_finish(p) == 0) {
			fuzz_tell_stats(&st);
			write_all(p);
		}
		uni_profile_destroy(p);
	}
	return 0;
}
