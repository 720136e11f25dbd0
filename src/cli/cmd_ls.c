/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "app/attach.h"
#include "app/cmd.h"
#include "app/term.h"
#include "app/way.h"
#include "backend/target.h"

static struct {
	bool json;
} o;

static const struct uni_opt *list_ls_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

static void size_text(char *out, size_t cap, uint64_t bytes)
{
	if (bytes == 0)
		(void)snprintf(out, cap, "-");
	else if (bytes % (1u << 30) == 0)
		(void)snprintf(out, cap, "%" PRIu64 "G", bytes >> 30);
	else
		(void)snprintf(out, cap, "%" PRIu64 "M", bytes >> 20);
}

static const char *or_dash(const char *s)
{
	return s[0] != '\0' ? s : "-";
}

#define NR_COLUMNS 10
#define WIDTH_MAX  48 /* of a column: longer texts stick out */

struct row {
	char pid[16], vcpus[16], mem[32], name[UNI_GUEST_NAME_MAX];
	const char *column[NR_COLUMNS];
};

static void fill_row(const struct uni_found *f, struct row *r)
{
	const struct uni_target_info *in = &f->info;
	const char *const column[NR_COLUMNS] = { r->pid, r->name, in->vmm, in->accel, r->vcpus,
		r->mem, f->spec, in->image, f->way, f->why };

	(void)snprintf(r->pid, sizeof(r->pid), "-");
	if (in->pid != 0)
		(void)snprintf(r->pid, sizeof(r->pid), "%d", in->pid);
	uni_guest_name(in, r->name);
	size_text(r->mem, sizeof(r->mem), in->mem_bytes);
	(void)snprintf(r->vcpus, sizeof(r->vcpus), "-");
	if (in->nr_vcpus != 0)
		(void)snprintf(r->vcpus, sizeof(r->vcpus), "%" PRIu32, in->nr_vcpus);
	for (size_t c = 0; c < NR_COLUMNS; c++)
		r->column[c] = or_dash(column[c]);
}

static void print_row(const struct row *r, const size_t *width)
{
	for (size_t c = 0; c < NR_COLUMNS; c++)
		(void)printf("%s%-*s", c != 0 ? "  " : "", c + 1 < NR_COLUMNS ? (int)width[c] : 0,
			r->column[c]);
	(void)printf("\n");
}

static void print_table(const struct uni_found *found, size_t nr)
{
	static const struct row head = { .column = { "PID", "NAME", "VMM", "ACCEL", "VCPUS",
						 "MEMORY", "TARGET", "IMAGE", "BACKEND", "WHY" } };
	size_t width[NR_COLUMNS];
	struct row r;

	for (size_t c = 0; c < NR_COLUMNS; c++)
		width[c] = strlen(head.column[c]);
	for (size_t i = 0; i < nr; i++) {
		fill_row(&found[i], &r);
		for (size_t c = 0; c < NR_COLUMNS; c++) {
			size_t w = uni_min(strlen(r.column[c]), (size_t)WIDTH_MAX);

			width[c] = uni_max(width[c], w);
		}
	}
	print_row(&head, width);
	for (size_t i = 0; i < nr; i++) {
		fill_row(&found[i], &r);
		print_row(&r, width);
	}
}

static unsigned left_off(const struct uni_target_info *in)
{
	return in->nr_vcpus > UNI_VCPU_MAX ? in->nr_vcpus - UNI_VCPU_MAX : 0;
}

static int print_json(const struct uni_found *found, size_t nr, struct uni_err *err)
{
	struct uni_sink *out;
	struct uni_json j;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-ls");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_key(&j, "guests");
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_target_info *in = &found[i].info;
		char name[UNI_GUEST_NAME_MAX];

		uni_json_object(&j);
		uni_json_kv(i64, &j, "pid", in->pid);
		uni_guest_name(in, name);
		uni_json_kv(str, &j, "name", name);
		uni_json_kv(str, &j, "vmm", in->vmm);
		uni_json_kv(str, &j, "accel", in->accel);
		uni_json_kv(u64, &j, "vcpus", in->nr_vcpus);
		uni_json_kv(u64, &j, "vcpus_left_off", left_off(in));
		uni_json_kv(u64, &j, "memory_bytes", in->mem_bytes);
		uni_json_kv(str, &j, "image", in->image);
		uni_json_kv(str, &j, "target", found[i].spec[0] != '\0' ? found[i].spec : NULL);
		uni_json_kv(str, &j, "backend", found[i].way[0] != '\0' ? found[i].way : NULL);
		uni_json_kv(str, &j, "why", found[i].why);
		if (in->counts[0] != '\0')
			uni_json_kv(str, &j, "counts", in->counts);
		uni_json_kv(u64, &j, "uid", in->uid);
		if (in->domid != 0)
			uni_json_kv(u64, &j, "domain", in->domid);
		if (in->ns_pid != 0)
			uni_json_kv(i64, &j, "pid_in_container", in->ns_pid);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	return uni_sink_close(out, err);
}

/* The plain way has the scheme's name; record takes it if the image asks for that. */
static void look_at_image(struct uni_found *f)
{
	struct uni_err ignored = { 0 };
	struct uni_spec spec;
	const char *why;

	if (f->spec[0] == '\0' || f->info.counts[0] != '\0' ||
		uni_spec_parse(f->spec, &spec, &ignored) != 0 || strcmp(f->way, spec.scheme) == 0)
		return;
	why = uni_guest_image_stops(&spec);
	if (why == NULL)
		return;
	(void)snprintf(f->way, sizeof(f->way), "%s", spec.scheme);
	(void)snprintf(f->why, sizeof(f->why), "stopped for each sample: %s", why);
}

/* Guests that no file of /proc shows, and that this user may not ask for. */
static void note_forbidden(void)
{
	for (size_t i = 0; uni_target_backends[i] != NULL; i++) {
		const struct uni_target_ops *ops = uni_target_backends[i];
		struct uni_err err = { 0 };

		if (ops->list != NULL && ops->host_check != NULL &&
			ops->host_check(&err) == -UNI_EPERM)
			uni_note("guests of %s: are not listed: %s", ops->scheme, err.msg);
	}
}

static int run_ls(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ struct uni_found *found = NULL;
	size_t nr = 0;
	int rc = uni_target_discover(&found, &nr, err);

	for (size_t i = 0; rc == 0 && i < nr; i++)
		look_at_image(&found[i]);
	if (rc == 0 && o.json)
		rc = print_json(found, nr, err);
	else if (rc == 0 && nr == 0)
		uni_note(uni_process_ids_are_inner()
				 ? "no guest is running in this container (those of the host are "
				   "not seen from here: run uniscope there, or with --pid=host)"
				 : "no guest is running on this host (or none that this user may "
				   "see)");
	else if (rc == 0)
		print_table(found, nr);
	if (rc == 0)
		note_forbidden();
	for (size_t i = 0; rc == 0 && i < nr; i++) {
		if (found[i].spec[0] != '\0')
			uni_note_left_off(
				found[i].spec, left_off(&found[i].info), found[i].info.nr_vcpus);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_ls = {
	.name = "ls",
	.operands = "",
	.summary = "list the guests on this host and how each would be reached",
	.options = list_ls_options,
	.run = run_ls,
};
