/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the folder that `export -f mirage` made: the metadata, cpu0, cpu1 ... */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "format/mirage/mirage.h"
#include "promise/model.h"

#define FILE_MAX     (UINT64_C(4) << 30)
#define METADATA_MAX 65536

bool uni_mirage_is_folder(const char *path)
{
	_cleanup_strbuf_ struct uni_strbuf name;
	_cleanup_free_ char *text = NULL;
	struct uni_err ignored = { 0 };
	size_t size;

	uni_strbuf_init(&name);
	uni_strbuf_addf(&name, "%s/metadata", path);
	if (uni_strbuf_failed(&name) || uni_door_access(name.s, R_OK) != 0 ||
		uni_read_regular(name.s, METADATA_MAX, &text, &size, &ignored) != 0)
		return false;
	return memmem(text, size, UNI_MIRAGE_UUID, strlen(UNI_MIRAGE_UUID)) != NULL;
}

int uni_mirage_read_folder(const char *path, uni_promise_event_fn fn, void *arg,
	struct uni_mirage_stats *stats_ret, struct uni_err *err)
{
	struct uni_mirage_file files[UNI_PROMISE_CPUS];
	size_t nr = 0, size;
	char *data;
	int rc = 0;

	for (uint32_t cpu = 0; rc == 0 && cpu < UNI_PROMISE_CPUS; cpu++) {
		_cleanup_strbuf_ struct uni_strbuf name;

		uni_strbuf_init(&name);
		uni_strbuf_addf(&name, "%s/cpu%u", path, cpu);
		if (uni_strbuf_failed(&name))
			rc = uni_err_nomem(err);
		else if (uni_door_access(name.s, F_OK) != 0)
			continue;
		else
			rc = uni_read_regular(name.s, FILE_MAX, &data, &size, err);
		if (rc == 0)
			files[nr++] = (struct uni_mirage_file){ data, size, cpu };
	}
	if (rc == 0)
		rc = uni_mirage_merge(files, nr, fn, arg, stats_ret, err);
	while (nr-- > 0)
		free((void *)(uintptr_t)files[nr].data);
	return rc;
}
