/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cli/cmd.h"
#include "cli/term.h"
#include "target/target.h"

static struct {
	bool json;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

struct finding {
	const char *what, *summary;
	bool ok;
	char advice[640];
};

static bool on_path(const char *program)
{
	const char *path = getenv("PATH");
	_cleanup_strbuf_ struct uni_strbuf b;

	uni_strbuf_init(&b);
	while (path != NULL && *path != '\0') {
		size_t n = strcspn(path, ":");

		uni_strbuf_reset(&b);
		uni_strbuf_addf(&b, "%.*s/%s", (int)n, path, program);
		if (!uni_strbuf_failed(&b) && access(b.s, X_OK) == 0)
			return true;
		path += n + (path[n] == ':' ? 1 : 0);
	}
	return false;
}

static void check_backend(const struct uni_target_ops *ops, struct finding *f)
{
	struct uni_err err = { 0 };

	f->what = ops->scheme;
	f->summary = ops->summary;
	f->ok = ops->host_check == NULL || ops->host_check(&err) == 0;
	(void)snprintf(f->advice, sizeof(f->advice), "%s", err.msg);
}

static void check_qemu(struct finding *f)
{
	f->what = "run";
	f->summary = "boot images under QEMU";
	f->ok = on_path("qemu-system-x86_64");
	(void)snprintf(f->advice, sizeof(f->advice), "%s",
		f->ok ? "" : "qemu-system-x86_64 is not installed (Debian: qemu-system-x86)");
}

static void print_text(const struct finding *f)
{
	bool colour = uni_term_colour(stdout);

	(void)printf("%s%-4s%s %-8s %s\n",
		!colour ? ""
		: f->ok ? "\033[32m"
			: "\033[33m",
		f->ok ? "ok" : "no", colour ? "\033[0m" : "", f->what, f->summary);
	if (!f->ok)
		(void)printf("              %s\n", f->advice);
}

static int print_all(const struct finding *f, size_t nr, struct uni_err *err)
{
	struct uni_sink *out;
	struct uni_json j;
	int rc;

	if (!o.json) {
		for (size_t i = 0; i < nr; i++)
			print_text(&f[i]);
		return 0;
	}
	rc = uni_sink_open_file("-", &out, err);
	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++) {
		uni_json_object(&j);
		uni_json_kv(str, &j, "name", f[i].what);
		uni_json_kv(str, &j, "summary", f[i].summary);
		uni_json_kv(bool, &j, "ok", f[i].ok);
		uni_json_kv(str, &j, "advice", f[i].ok ? NULL : f[i].advice);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	return uni_sink_close(out, err);
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct finding f[16];
	size_t nr = 0;
	bool any = false;
	int rc;

	memset(f, 0, sizeof(f));
	for (size_t i = 0; uni_target_backends[i] != NULL && nr < 15; i++) {
		check_backend(uni_target_backends[i], &f[nr]);
		any = any || f[nr].ok;
		nr++;
	}
	check_qemu(&f[nr++]);
	rc = print_all(f, nr, err);
	if (rc != 0)
		return uni_exit_of(rc);
	return any ? UNI_EXIT_OK : UNI_EXIT_FAILED;
}

const struct uni_cmd uni_cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "say which ways to reach a guest work on this host, and what is missing",
	.options = options,
	.run = run,
};
