/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "app/cmd.h"
#include "app/term.h"
#include "app/uktrace.h"
#include "base/text.h"

static struct {
	struct uni_uktrace_args a;
	const char *output, *remote, *target;
	bool list, verbose, with_elf, remote_given;
} o;

static const struct uni_opt *list_uk_trace_fetch_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "out", UNI_OPT_OUTPUT, &o.output, "FILE",
			"trace file to write (default tracefile), - is standard output", "FILE",
			NULL },
		{ 'r', "remote", UNI_OPT_STR, &o.remote, "WHERE",
			"gdb stub of the guest, as in gdb's `target remote`: [HOST]:PORT, or the "
			"path of a socket (default :1234)",
			NULL, &o.remote_given },
		{ 't', "target", UNI_OPT_STR, &o.target, "TARGET",
			"any other way to the guest, instead: kvm:pid=N, core:file=PATH, a name "
			"that "
			"`uniscope ls` shows ...",
			NULL, NULL },
		{ 0, "list", UNI_OPT_FLAG, &o.list, NULL, "also list what was fetched", NULL,
			NULL },
		{ 0, "with-elf", UNI_OPT_FLAG, &o.with_elf, NULL,
			"also store the image's path, as Unikraft's own fetch does: its own list "
			"cannot read that",
			NULL, NULL },
		{ 0, "verbose", UNI_OPT_FLAG, &o.verbose, NULL, "say what was done", NULL, NULL },
		UNI_UKTRACE_OPTIONS(o.a),
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "tracefile", .remote = ":1234" };
	return table;
}

/* gdb's words for a stub as ours for a target. */
static void target_of(const char *remote, struct uni_strbuf *ret)
{
	const char *colon;

	if (strncmp(remote, "tcp:", 4) == 0)
		remote += 4;
	colon = strrchr(remote, ':');
	if (strchr(remote, '/') != NULL || colon == NULL)
		uni_strbuf_addf(ret, "gdb:unix=%s", remote);
	else if (colon == remote)
		uni_strbuf_addf(ret, "gdb:tcp=127.0.0.1%s", remote);
	else
		uni_strbuf_addf(ret, "gdb:tcp=%s", remote);
}

static int list_tracepoints(const struct uni_ukt_file *f, struct uni_err *err)
{
	struct uni_ukt_trace t;
	struct uni_sink *out;
	int rc = uni_ukt_trace_open(f, &t, err);

	if (rc != 0)
		return rc;
	if (o.verbose)
		uni_note("fetched %zu byte%s of %llu, %zu record%s of %zu tracepoint%s into %s",
			f->buffer_size, uni_plural(f->buffer_size), (unsigned long long)f->capacity,
			t.records.nr, uni_plural(t.records.nr), t.defs.all.nr,
			uni_plural(t.defs.all.nr), o.output);
	uni_uktrace_note(o.output, &t);
	if (o.list) {
		rc = uni_sink_open_file("-", &out, err);
		if (rc == 0) {
			uni_uktrace_print(&t, false, out);
			rc = uni_sink_close(out, err);
		}
	}
	uni_ukt_trace_close(&t);
	return rc;
}

static int save_tracefile(const struct uni_ukt_file *f, struct uni_err *err)
{
	struct uni_sink *out;
	int rc = uni_sink_open_file(o.output, &out, err);

	if (rc != 0)
		return rc;
	uni_ukt_file_write(f, o.with_elf, out);
	return uni_sink_close(out, err);
}

static int run_uk_trace_fetch(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf target;
	struct uni_ukt_file f;
	int rc;

	uni_strbuf_init(&target);
	if (o.target != NULL && o.remote_given)
		return uni_exit_of(
			uni_err_set(err, UNI_EUSAGE, "give one of --remote and --target"));
	if (o.list && strcmp(o.output, "-") == 0)
		return uni_exit_of(uni_err_set(
			err, UNI_EUSAGE, "--list and -o - would both write to standard output"));
	if (o.target != NULL)
		uni_strbuf_adds(&target, o.target);
	else
		target_of(o.remote, &target);
	if (uni_strbuf_failed(&target))
		return uni_exit_of(uni_err_nomem(err));
	o.a.image = ctx->operands[0];
	rc = uni_uktrace_fetch(target.s, &o.a, &f, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = save_tracefile(&f, err);
	if (rc == 0)
		rc = list_tracepoints(&f, err);
	uni_ukt_file_free(&f);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_uk_trace_fetch = {
	.name = "fetch",
	.operands = "IMAGE",
	.summary = "save a guest's trace buffer, with the definitions that are needed to "
		   "read it",
	.details = "IMAGE is the guest's image with debug data (.dbg): it has the tracepoints' "
		   "definitions.\n"
		   "The file is one that Unikraft's own `uk-trace list` reads as well.",
	.examples =
		"  uniscope compat uk-trace fetch app_qemu-x86_64.dbg -r :1234\n"
		"  uniscope compat uk-trace fetch app_qemu-x86_64.dbg -t kvm:pid=4121 -o web.trace "
		"--list\n"
		"  uniscope export web.trace -f chrome -o web.trace.json",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_uk_trace_fetch_options,
	.run = run_uk_trace_fetch,
};
