/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the harnesses of importers: read, and write with exporters that keep whole stacks. */
#ifndef UNI_FUZZ_IMPORT_H
#define UNI_FUZZ_IMPORT_H

#include <stdlib.h>

#include "format/export.h"
#include "format/import.h"
#include "told.h"

#define FUZZ_EXPORTS 3

static inline void fuzz_tell_stats(const struct uni_import_stats *st)
{
	told(st, offsetof(struct uni_import_stats, samples));
	told(&st->samples, sizeof(st->samples));
	told_u64(st->left_out);
	told_text(st->left_why != NULL ? st->left_why : "");
}

static inline void fuzz_tell_profile(const struct uni_profile *p)
{
	for (uint32_t i = 1; i < uni_profile_nr_nodes(p); i++) {
		const struct uni_node *node = uni_profile_node(p, i);

		told_u64(node->parent);
		told(&node->self, sizeof(node->self));
		told(&node->total, sizeof(node->total));
		told_text(uni_profile_str(p, uni_profile_get_frame(p, node->frame)->name));
	}
}

static inline void fuzz_write_as(const struct uni_profile *p, const char *format)
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
	if (strcmp(format, "pprof") != 0) /* zlib packs it */
		told(b.s, b.len);
	uni_strbuf_deinit(&b);
}

static inline int fuzz_import(const char *importer, const char *const formats[FUZZ_EXPORTS],
	const uint8_t *data, size_t size)
{
	const struct uni_importer *im = uni_importer_by_name(importer);
	const struct uni_import_opts opts = { 0 };
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st;
	struct uni_err err = { 0 };

	if (p == NULL)
		abort();
	told_u64((uint64_t)im->sniff((const char *)data, size));
	if (im->read((const char *)data, size, &opts, p, &st, &err) == 0) {
		if (st.stacks == 0 || uni_profile_finish(p) != 0)
			abort();
		fuzz_tell_stats(&st);
		for (size_t i = 0; i < FUZZ_EXPORTS; i++)
			fuzz_write_as(p, formats[i]);
	}
	told_text(err.msg);
	uni_profile_destroy(p);
	return 0;
}

#endif
