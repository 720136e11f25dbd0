/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/bootable.h"

#include <elf.h>

#include "base/checked.h"
#include "base/privilege.h"
#include "app/apart.h"

struct job {
	const char *path;
	struct uni_bootable *ret;
};

static void read_image(const char *path, struct uni_bootable *ret)
{
	struct uni_image *image = NULL;
	struct uni_err ignored = { 0 };

	if (uni_solo5_read(path, &ret->notes, NULL) != 0)
		ret->notes = (struct uni_solo5){ 0 };
	if (uni_image_load(path, &image, &ignored) != 0)
		return;
	ret->machine = uni_image_machine(image);
	ret->pvh = (ret->machine == EM_X86_64 || ret->machine == EM_386) && uni_image_is_pvh(image);
	ret->nr_segments = uni_min(uni_image_nr_segments(image), (size_t)UNI_BOOTABLE_SEGMENTS);
	for (size_t i = 0; i < ret->nr_segments; i++) {
		ret->segment[i] = *uni_image_segment(image, i);
		ret->segment[i].bytes = NULL;
	}
	uni_image_destroy(image);
}

static int read_without_rights(void *ctx, struct uni_err *err)
{
	const struct job *job = ctx;
	int rc = uni_privilege_drop(err);

	if (rc == 0)
		read_image(job->path, job->ret);
	return rc;
}

/* The other process may have been taken over by the image. */
static void take_checked(const struct uni_bootable *from, struct uni_bootable *ret)
{
	*ret = *from;
	ret->nr_segments = uni_min(ret->nr_segments, (size_t)UNI_BOOTABLE_SEGMENTS);
	ret->notes.nr_devices = uni_min(ret->notes.nr_devices, (size_t)UNI_SOLO5_DEVICES_MAX);
	for (size_t i = 0; i < ret->notes.nr_devices; i++)
		ret->notes.device[i].name[UNI_SOLO5_NAME_MAX - 1] = '\0';
	for (size_t i = 0; i < ret->nr_segments; i++)
		ret->segment[i].bytes = NULL;
}

int uni_bootable_read(const char *path, struct uni_bootable *ret, struct uni_err *err)
{
	struct job job = { path, NULL };
	int rc;

	*ret = (struct uni_bootable){ 0 };
	if (!uni_privilege_has()) {
		read_image(path, ret);
		return 0;
	}
	job.ret = uni_apart_share(sizeof(*job.ret));
	if (job.ret == NULL)
		return uni_err_nomem(err);
	rc = uni_apart_run(
		&(struct uni_apart){
			.work = read_without_rights, .ctx = &job, .what = "read the image" },
		err);
	if (rc == 0)
		take_checked(job.ret, ret);
	uni_apart_unshare(job.ret, sizeof(*job.ret));
	return rc;
}
