/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/attach.h"
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

static void size_text(char *out, size_t cap, uint64_t bytes)
{
	if (bytes == 0)
		(void)snprintf(out, cap, "-");
	else if (bytes % (1u << 30) == 0)
		(void)snprintf(out, cap, "%" PRIu64 "G", bytes >> 30);
	else
		(void)snprintf(out, cap, "%" PRIu64 "M", bytes >> 20);
}

static const char *dash(const char *s)
{
	return s[0] != '\0' ? s : "-";
}

static void print_table(const struct uni_found *found, size_t nr)
{
	size_t name_w = 4, spec_w = 6;

	for (size_t i = 0; i < nr; i++) {
		char name[UNI_GUEST_NAME_MAX];
		size_t n, s = strlen(found[i].spec);

		uni_guest_name(&found[i].info, name);
		n = strlen(name);
		name_w = n > name_w ? n : name_w;
		spec_w = s > spec_w ? s : spec_w;
	}
	(void)printf("%-8s %-*s %-16s %-5s %5s %7s  %-*s %s\n", "PID", (int)name_w, "NAME", "VMM",
		"ACCEL", "VCPUS", "MEMORY", (int)spec_w, "TARGET", "IMAGE");
	for (size_t i = 0; i < nr; i++) {
		const struct uni_target_info *in = &found[i].info;
		char mem[32], vcpus[16] = "-", name[UNI_GUEST_NAME_MAX];

		uni_guest_name(in, name);
		size_text(mem, sizeof(mem), in->mem_bytes);
		if (in->nr_vcpus != 0)
			(void)snprintf(vcpus, sizeof(vcpus), "%" PRIu32, in->nr_vcpus);
		(void)printf("%-8d %-*s %-16s %-5s %5s %7s  %-*s %s\n", in->pid, (int)name_w,
			dash(name), dash(in->vmm), dash(in->accel), vcpus, mem, (int)spec_w,
			dash(found[i].spec), dash(in->image));
		if (found[i].spec[0] == '\0')
			(void)printf("         (%s)\n", found[i].why);
	}
}

static int print_json(const struct uni_found *found, size_t nr, struct uni_err *err)
{
	struct uni_sink *out;
	struct uni_json j;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	uni_json_init(&j, out, true);
	uni_json_array(&j);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_target_info *in = &found[i].info;

		uni_json_object(&j);
		uni_json_kv(i64, &j, "pid", in->pid);
		uni_json_kv(str, &j, "name", in->name);
		uni_json_kv(str, &j, "vmm", in->vmm);
		uni_json_kv(str, &j, "accel", in->accel);
		uni_json_kv(u64, &j, "vcpus", in->nr_vcpus);
		uni_json_kv(u64, &j, "memory_bytes", in->mem_bytes);
		uni_json_kv(str, &j, "image", in->image);
		uni_json_kv(str, &j, "target", found[i].spec[0] != '\0' ? found[i].spec : NULL);
		uni_json_kv(str, &j, "why", found[i].why);
		uni_json_object_end(&j);
	}
	uni_json_array_end(&j);
	return uni_sink_close(out, err);
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ struct uni_found *found = NULL;
	size_t nr = 0;
	int rc = uni_target_discover(&found, &nr, err);

	if (rc == 0 && o.json)
		rc = print_json(found, nr, err);
	else if (rc == 0 && nr == 0)
		uni_note("no guest is running on this host (or none that this user may see)");
	else if (rc == 0)
		print_table(found, nr);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_ls = {
	.name = "ls",
	.operands = "",
	.summary = "list the guests on this host and how each would be reached",
	.options = options,
	.run = run,
};
