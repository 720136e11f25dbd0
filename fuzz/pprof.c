/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof's profiles, on through the exporters that keep whole stacks. */
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In all formats alike that know of no times of their own. */
static void write_as(const struct uni_profile *p, const char *format)
{
	struct uni_view v = { .profile = p };
	struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	if (uni_sink_open_strbuf(&b, &out) != 0)
		abort();
	(void)uni_exporter_by_name(format)->write(&v, NULL, 0, out, NULL);
	if (uni_sink_close(out, NULL) != 0)
		abort();
	uni_strbuf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = { "pprof", "callgrind", "perfetto" };
	const struct uni_importer *im = uni_importer_by_name("pprof");
	const struct uni_import_opts opts = { 0 };
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st;

	if (p == NULL)
		abort();
	(void)im->sniff((const char *)data, size);
	if (im->read((const char *)data, size, &opts, p, &st, NULL) == 0) {
		if (st.stacks == 0 || uni_profile_finish(p) != 0)
			abort();
		for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
			write_as(p, formats[i]);
	}
	uni_profile_destroy(p);
	return 0;
}
