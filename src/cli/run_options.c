/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/run_options.h"

#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "app/symbols.h"

#define BOOT_NS (60 * UNI_NSEC_PER_SEC) /* from the image's first instruction on */

struct uni_attach_args uni_run_attach_args(const struct uni_run_options *o, const char *image)
{
	bool is_table = o->symbols != NULL && uni_symbols_kind_of(o->symbols) != UNI_SYMBOLS_ELF;

	return (struct uni_attach_args){ .method = o->rec.method,
		.no_pause = o->rec.no_pause,
		.exits = o->rec.exits != NULL,
		.threads = o->rec.threads,
		.image = o->symbols != NULL && !is_table ? o->symbols : image,
		.table = is_table ? o->symbols : NULL,
		.search = uni_search_of(&o->rec.debug_dirs),
		.sysroot = &o->rec.sysroot,
		.accept_image = o->rec.accept_image,
		.unwind = o->rec.unwind,
		.wait_ns = o->wait != 0 ? (uint64_t)(o->wait * 1e9) : BOOT_NS };
}

/* NAME of NAME.uniscope with .console.log instead. */
static char *console_path(const char *session)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, session);
	if (b.len > 9 && strcmp(b.s + b.len - 9, ".uniscope") == 0)
		b.len -= 9;
	uni_strbuf_adds(&b, ".console.log");
	return uni_strbuf_detach(&b);
}

int uni_run_name_outputs(struct uni_run_options *o, const char *named, char **session_ret,
	char **console_ret, struct uni_err *err)
{
	const char *slash = strrchr(named, '/');

	*session_ret = o->rec.output != NULL ? strdup(o->rec.output)
					     : uni_session_name(slash != NULL ? slash + 1 : named);
	*console_ret = o->console != NULL
			       ? strdup(o->console)
			       : console_path(*session_ret != NULL ? *session_ret : "guest");
	if (*session_ret == NULL || *console_ret == NULL)
		return uni_err_nomem(err);
	o->rec.output = *session_ret;
	return 0;
}
