/* SPDX-License-Identifier: BSD-2-Clause */
/* uniprof's text, raw and with names; each stack must be counted once. */
#include <stdlib.h>

#include "import.h"
#include "obj/usym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "foo", "bar", "baz" };
	const struct uni_importer *im = uni_importer_by_name("uniprof");
	struct uni_import_opts opts = { 0 };
	struct uni_symtab *sym = NULL;
	struct uni_profile *p = uni_profile_create();
	struct uni_import_stats st;

	if (p == NULL || uni_symtab_of_names("x", names, 3, &sym, NULL) != 0)
		abort();
	opts.symtab = size % 2 != 0 ? sym : NULL;
	told_u64((uint64_t)im->sniff((const char *)data, size));
	if (im->read((const char *)data, size, &opts, p, &st, NULL) == 0) {
		if (uni_profile_finish(p) != 0 || uni_profile_total(p) < (double)st.stacks)
			abort();
		if (st.truncated > st.stacks || st.empty > st.stacks)
			abort();
		fuzz_tell_stats(&st);
		fuzz_tell_profile(p);
	}
	uni_profile_destroy(p);
	uni_symtab_destroy(sym);
	return 0;
}
