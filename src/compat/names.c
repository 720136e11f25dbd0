/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "app/symbols.h"
#include "app/term.h"
#include "obj/symtext.h"

#define TABLE_MAX ((size_t)512 << 20)

int uni_compat_target(const char *operand, char ret[UNI_COMPAT_TARGET_MAX], struct uni_err *err)
{
	size_t len = strlen(operand);
	bool number = len != 0 && strspn(operand, "0123456789") == len;

	if (number && strspn(operand, "0") == len)
		return uni_err_set(err, UNI_EUSAGE,
			"domain 0 is the one that looks at the others: give another domain's "
			"number, or a target such as kvm:pid=4121");
	if (len + sizeof("xen:dom=") > UNI_COMPAT_TARGET_MAX)
		return uni_err_set(err, UNI_EUSAGE, "the target is too long");
	(void)snprintf(ret, UNI_COMPAT_TARGET_MAX, "%s%s", number ? "xen:dom=" : "", operand);
	return 0;
}

int uni_compat_symbols(const char *path, const struct uni_image_search *search,
	struct uni_symtab **ret, struct uni_err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc;

	if (uni_symbols_kind_of(path) != UNI_SYMBOLS_TEXT)
		return uni_symbols_load(path, search, NULL, ret, err);
	rc = uni_read_input(path, TABLE_MAX, &data, &size, err);
	return rc == 0 ? uni_symtab_of_nm(path, data, size, ret, err) : rc;
}

void uni_compat_note_trace(const char *path, const struct uni_symbolize_stats *st)
{
	if (st->missed != 0)
		uni_note("%s: uniprof missed %" PRIu64 " deadline%s", path, st->missed,
			uni_plural(st->missed));
	if (st->failed != 0)
		uni_note("%s: %" PRIu64 " times a vCPU could not be read", path, st->failed);
	if (st->broken != 0)
		uni_note("%s: %" PRIu64 " of %" PRIu64
			 " traces were broken off: they are marked " UNI_SYMBOLIZE_TRUNCATED,
			path, st->broken, st->traces);
}
