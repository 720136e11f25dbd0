/* SPDX-License-Identifier: BSD-2-Clause */
/* `record` of a QEMU that counts with our plugin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/exact.h"
#include "app/resolve.h"
#include "app/term.h"
#include "backend/vmm/proc.h"
#include "base/cleanup.h"

/* A command line is what its process says: the file has to be of the same user. */
static bool is_its_file(int pid, const char *path)
{
	struct stat process, file;
	char proc[32];

	(void)snprintf(proc, sizeof(proc), "/proc/%d", pid);
	return stat(proc, &process) == 0 && lstat(path, &file) == 0 && S_ISREG(file.st_mode) &&
	       process.st_uid == file.st_uid;
}

int uni_exact_find(const char *target, char *counts_ret, size_t cap)
{
	_cleanup_free_ struct uni_vmm_cmdline *c = calloc(1, sizeof(*c));
	int pid = uni_guest_pid(target), len;

	if (c == NULL || pid <= 0 || uni_vmm_cmdline_read(pid, c) != 0 || c->exact[0] == '\0')
		return 0;
	len = snprintf(counts_ret, cap, "%s", c->exact);
	return len > 0 && (size_t)len < cap && is_its_file(pid, c->exact) ? pid : 0;
}

void uni_exact_note_counts(const struct uni_target_info *info)
{
	if (info->counts[0] != '\0')
		uni_note("QEMU counts every instruction of this guest with our plugin: `uniscope "
			 "record %d` takes the counts, and these are samples",
			info->pid);
}

int uni_exact_record(int pid, const char *counts, const char *symbols, const char *target,
	const struct uni_record_args *rec, struct uni_err *err)
{
	_cleanup_free_ struct uni_vmm_cmdline *c = calloc(1, sizeof(*c));
	_cleanup_free_ char *name = NULL;
	struct uni_record_args own = *rec;
	struct uni_exact_args args = { .follow = true, .pid = pid, .rec = &own };
	const char *slash;

	if (c == NULL)
		return uni_err_nomem(err);
	(void)uni_vmm_cmdline_read(pid, c); /* if it has ended, its counts are there */
	args.qemu.image = symbols != NULL ? symbols : c->image;
	if (args.qemu.image[0] == '\0')
		return uni_err_set(err, UNI_EUSAGE,
			"%s: which image does it run? Give its ELF with the symbols by -e", target);
	slash = strrchr(args.qemu.image, '/');
	if (own.output == NULL) {
		name = uni_session_name(slash != NULL ? slash + 1 : args.qemu.image);
		own.output = name;
	}
	if (own.output == NULL)
		return uni_err_nomem(err);
	if (!own.quiet)
		uni_note(
			"the QEMU of %s counts every instruction with our plugin: these counts are "
			"recorded, and no samples (-F or --method pause takes some)",
			target);
	return uni_exact_read(&args, counts, err);
}
