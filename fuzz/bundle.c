/* SPDX-License-Identifier: BSD-2-Clause */
/* A session in one stream, in pieces of all sizes: its files must be safe to make. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recording/bundle.h"
#include "recording/folder.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int begin(void *arg, const char *sub, const char *name, struct uni_err *err)
{
	int *open = arg;

	(void)err;
	told_text(sub != NULL ? sub : "");
	told_text(name);
	if ((*open)++ != 0 || strchr(name, '/') != NULL || name[0] == '.' ||
		(sub != NULL && !uni_sdir_is_folder(sub)) || !uni_sdir_is_file(sub, name))
		abort();
	return 0;
}

static int take(void *arg, const void *bytes, size_t size, struct uni_err *err)
{
	(void)err;
	told(bytes, size);
	if (*(int *)arg != 1 || size == 0)
		abort();
	return 0;
}

static int end(void *arg, struct uni_err *err)
{
	(void)err;
	if ((*(int *)arg)-- != 1)
		abort();
	return 0;
}

static const struct uni_bundle_ops ops = { begin, take, end };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t pieces[] = { 511, 512, 4096 };

	for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
		struct uni_bundle_reader r;
		struct uni_err err = { 0 };
		int open = 0, rc = 0;

		uni_bundle_reader_init(&r, &ops, &open);
		for (size_t at = 0; rc == 0 && at < size; at += pieces[p])
			rc = uni_bundle_feed(
				&r, data + at, size - at < pieces[p] ? size - at : pieces[p], &err);
		if (rc == 0)
			(void)uni_bundle_end(&r, &err);
		told_text(err.msg);
	}
	return 0;
}
