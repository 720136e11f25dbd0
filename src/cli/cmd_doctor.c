/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hurry.h"
#include "base/io.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "app/attach.h"
#include "app/cmd.h"
#include "app/exact.h"
#include "app/pace.h"
#include "app/qemu.h"
#include "app/resolve.h"
#include "app/term.h"
#include "app/way.h"
#include "backend/target.h"

static struct {
	bool json;
} o;

static const struct uni_opt *list_doctor_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

#define NR_WAYS	     20
#define BACKEND_WAYS 4 /* of one backend */

/* Path of the program; b is empty if there is none. */
static bool on_path(const char *program, struct uni_strbuf *b)
{
	const char *path = getenv("PATH");

	while (path != NULL && *path != '\0') {
		size_t n = strcspn(path, ":");

		uni_strbuf_reset(b);
		uni_strbuf_addf(b, "%.*s/%s", (int)n, path, program);
		if (!uni_strbuf_failed(b) && access(b->s, X_OK) == 0)
			return true;
		path += n + (path[n] == ':' ? 1 : 0);
	}
	uni_strbuf_reset(b);
	return false;
}

static uint32_t check_backend(
	const struct uni_target_ops *ops, struct uni_host_way *ret, uint32_t cap)
{
	struct uni_err err = { 0 };

	if (ops->host_ways != NULL)
		return ops->host_ways(ret, cap);
	*ret = (struct uni_host_way){ .name = ops->scheme, .summary = ops->summary };
	ret->ok = ops->host_check == NULL || ops->host_check(&err) == 0;
	(void)snprintf(ret->advice, sizeof(ret->advice), "%s", err.msg);
	return 1;
}

static void check_qemu(struct uni_host_way *ret)
{
	const char *package, *why, *program = uni_qemu_native(&package);
	_cleanup_strbuf_ struct uni_strbuf path;
	char plugin[4096];
	struct uni_err err = { 0 };
	bool ok;

	*ret = (struct uni_host_way){ .name = "run", .summary = "boot images under QEMU" };
	uni_strbuf_init(&path);
	ret->ok = on_path(program, &path);
	if (!ret->ok) {
		(void)snprintf(ret->advice, sizeof(ret->advice), "%s is not installed (Debian: %s)",
			program, package);
		return;
	}
	ret->ok = uni_process_numbers_check(&err) == 0;
	(void)snprintf(ret->advice, sizeof(ret->advice), "%s", err.msg);
	err = (struct uni_err){ 0 };
	ok = uni_qemu_has_kvm(&why);
	uni_host_fact_add(ret, "kvm", ok, "%s: %s%s", why,
		ok ? "guests boot with KVM" : "guests boot without KVM (TCG), which is slower",
		!ok && access("/dev/kvm", F_OK) == 0
			? "; the device's group may open it: adduser NAME kvm"
			: "");
	ok = uni_exact_plugin(plugin, sizeof(plugin), &err) == 0;
	if (ok && !uni_exact_can_load(path.s)) {
		ok = false;
		(void)uni_err_set(&err, UNI_ENOTSUP,
			"%s was built without plugins: another build of QEMU is needed", path.s);
	}
	uni_host_fact_add(ret, "exact", ok, "%s",
		ok ? "QEMU takes plugins: `run --exact` can count" : err.msg);
}

/* How the thread runs that pauses guests: tries it. */
static void check_sampler(struct uni_host_way *ret)
{
	struct uni_hurry hurry;

	*ret = (struct uni_host_way){ .name = "sampler",
		.summary = "stop guests for samples, and not for long",
		.ok = true };
	uni_hurry_begin(&hurry);
	uni_host_fact_add(ret, "class", hurry.on, "%s: %s", uni_pace_class(hurry.on),
		hurry.on ? "on a busy host, a paused guest does not wait for a CPU; --sched other "
			   "leaves it"
			 : "on a busy host, a paused guest waits until the sampler gets a CPU; "
			   "CAP_SYS_NICE or `ulimit -r 1` permits another");
	uni_hurry_end(&hurry);
}

/* A pid is KVM's if it can be: without rights, its gdb stub may be all that is seen of it. */
static int find_target(const char *text, struct uni_spec *ret, struct uni_err *err)
{
	const struct uni_target_ops *kvm = uni_target_backend("kvm");
	struct uni_target_info info;
	char spec[64], keys[64];
	uint64_t pid;

	if (!uni_parse_u64(text, &pid) || kvm == NULL || kvm->claims == NULL)
		return uni_guest_resolve(text, ret, err);
	(void)snprintf(spec, sizeof(spec), "kvm:pid=%.20s", text);
	if (uni_spec_parse(spec, ret, NULL) == 0 && uni_target_probe(ret, &info, NULL) == 0 &&
		kvm->claims(&info, keys, sizeof(keys)))
		return 0;
	return uni_guest_resolve(text, ret, err);
}

/* The ways of a backend among those of all; trying them once more would take as long again. */
static const struct uni_host_way *find_ways(
	const char *scheme, const struct uni_host_way *all, uint32_t nr_all, uint32_t *nr_ret)
{
	const size_t len = strlen(scheme);

	*nr_ret = 0;
	for (uint32_t i = 0; i < nr_all; i++) {
		if (strcmp(all[i].name, scheme) != 0)
			continue;
		do
			++*nr_ret;
		while (i + *nr_ret < nr_all && strncmp(all[i + *nr_ret].name, scheme, len) == 0 &&
			all[i + *nr_ret].name[len] == '-');
		return &all[i];
	}
	return NULL;
}

/* This user and that guest: may it be reached, and by which of its backend's ways? */
static int check_target(const char *text, const struct uni_host_way *all, uint32_t nr_all,
	struct uni_host_way *ret, struct uni_err *err)
{
	const struct uni_target_ops *ops;
	const struct uni_host_way *way;
	struct uni_target_info info;
	struct uni_spec spec;
	char why[640] = "the guest itself is asked on attaching";
	const char *stops;
	uint32_t nr;
	int rc = find_target(text, &spec, err);

	if (rc == 0)
		rc = uni_target_probe(&spec, &info, err);
	if (rc != 0)
		return rc;
	*ret = (struct uni_host_way){ .name = "target", .summary = "the guest that was asked for" };
	ops = uni_target_backend(spec.scheme);
	way = find_ways(ops->scheme, all, nr_all, &nr);
	if (way == NULL)
		return uni_err_set(err, UNI_ENOTSUP, "%s: this host was not checked", ops->scheme);
	uni_host_fact_add(ret, "host", way[0].ok, "%s",
		way[0].ok ? "this way of reaching guests works here" : way[0].advice);
	rc = ops->choose != NULL ? ops->choose(&info, way, nr, why, sizeof(why)) : 0;
	uni_host_fact_add(
		ret, "process", rc >= 0, "%s", rc >= 0 ? "this user may look into it" : why);
	uni_host_way_judge(ret);
	stops = rc > 0 ? uni_guest_image_stops(&spec) : NULL;
	if (stops != NULL)
		uni_host_fact_add(ret, way[0].name, true, "stopped for each sample: %s", stops);
	else if (rc >= 0)
		uni_host_fact_add(ret, way[rc].name, true, "%s", why);
	for (uint32_t i = 1; i < nr && rc == 0; i++)
		uni_host_fact_add(ret, way[i].name, way[i].ok, "%s", way[i].advice);
	return 0;
}

static void print_mark(bool ok)
{
	bool colour = uni_term_colour(stdout);

	(void)printf("%s%-4s%s ",
		!colour ? ""
		: ok	? "\033[32m"
			: "\033[33m",
		ok ? "ok" : "no", colour ? "\033[0m" : "");
}

static void print_text(const struct uni_host_way *w)
{
	bool said = false;

	print_mark(w->ok);
	(void)printf("%-9s %s\n", w->name, w->summary);
	for (uint32_t i = 0; i < w->nr; i++) {
		said = said || !w->fact[i].ok;
		(void)printf("     ");
		print_mark(w->fact[i].ok);
		(void)printf("%-14s %s\n", w->fact[i].name, w->fact[i].text);
	}
	if (!w->ok && !said)
		(void)printf("               %s\n", w->advice);
}

static void print_facts(struct uni_json *j, const struct uni_host_way *w)
{
	uni_json_key(j, "checks");
	uni_json_array(j);
	for (uint32_t i = 0; i < w->nr; i++) {
		uni_json_object(j);
		uni_json_kv(str, j, "name", w->fact[i].name);
		uni_json_kv(bool, j, "ok", w->fact[i].ok);
		uni_json_kv(str, j, "text", w->fact[i].text);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static int print_all(const struct uni_host_way *w, size_t nr, struct uni_err *err)
{
	struct uni_sink *out;
	struct uni_json j;
	int rc;

	if (!o.json) {
		for (size_t i = 0; i < nr; i++)
			print_text(&w[i]);
		return 0;
	}
	rc = uni_sink_open_file("-", &out, err);
	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-doctor");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_key(&j, "ways");
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++) {
		uni_json_object(&j);
		uni_json_kv(str, &j, "name", w[i].name);
		uni_json_kv(str, &j, "summary", w[i].summary);
		uni_json_kv(bool, &j, "ok", w[i].ok);
		uni_json_kv(str, &j, "advice", w[i].ok ? NULL : w[i].advice);
		print_facts(&j, &w[i]);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	return uni_sink_close(out, err);
}

static int run_doctor(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ struct uni_host_way *w = calloc(NR_WAYS, sizeof(*w));
	uint32_t nr = 0;
	bool any = false;
	int rc;

	if (w == NULL)
		return uni_exit_of(uni_err_nomem(err));
	for (size_t i = 0; uni_target_backends[i] != NULL && nr < NR_WAYS - BACKEND_WAYS - 1; i++) {
		uint32_t n = check_backend(uni_target_backends[i], &w[nr], NR_WAYS - 3 - nr);

		for (uint32_t k = nr; k < nr + n; k++)
			any = any || w[k].ok;
		nr += n;
	}
	check_qemu(&w[nr++]);
	check_sampler(&w[nr++]);
	if (ctx->nr_operands != 0) {
		rc = check_target(ctx->operands[0], w, nr, &w[nr], err);
		if (rc != 0)
			return uni_exit_of(rc);
		any = w[nr++].ok;
	}
	rc = print_all(w, nr, err);
	if (rc != 0)
		return uni_exit_of(rc);
	return any ? UNI_EXIT_OK : UNI_EXIT_FAILED;
}

const struct uni_cmd uni_cmd_doctor = {
	.name = "doctor",
	.operands = "[TARGET]",
	.summary = "say which ways to reach a guest work on this host, and what is missing",
	.details = "With a target, it also says whether this user may look into that guest, "
		   "and how the\n"
		   "guest would be sampled.",
	.max_operands = 1,
	.options = list_doctor_options,
	.run = run_doctor,
};
