/* SPDX-License-Identifier: BSD-2-Clause */
/* Is this the image that the guest runs, and which of its functions are as in the file? */
#ifndef UNI_SAMPLING_CHECK_H
#define UNI_SAMPLING_CHECK_H

#include "base/vec.h"
#include "mem/as.h"
#include "obj/image.h"
#include "obj/changes.h"

/* Pages to compare: */
#define UNI_CHECK_FEW  64u    /* to tell images apart */
#define UNI_CHECK_SOME 512u   /* if the guest is stopped meanwhile */
#define UNI_CHECK_MANY 16384u /* if it runs */

enum uni_check_id {
	UNI_ID_UNKNOWN, /* the image has no build-id, or the guest none where it would be */
	UNI_ID_SAME,
	UNI_ID_OTHER,
};

/* How the guest's code differs from the image's. */
struct uni_difference {
	enum uni_check_id id;
	uint64_t compared;		 /* bytes of code */
	uint64_t changed[UNI_CHANGE_NR]; /* of them, by reason; [UNI_CHANGE_NONE]: none is known */
	UNI_VEC(struct uni_span) code;	 /* SVMA: the functions with bytes of no known reason */
};

void uni_difference_deinit(struct uni_difference *d); /* zeroed ones, too */
/* Other code than the file's, which no table of the image explains. */
bool uni_difference_is_stale(const struct uni_difference *d);

/*
 * Compares the code of the image at bias with the guest's memory, through regs' address space.
 * Compares up to nr_pages pages, evenly spread, and the build-id. The caller zeroes d.
 * -UNI_EMISMATCH: most is other code, or nothing is mapped; the message says what was compared and
 * what to do next. Unmapped pages are skipped, but not all may be.
 */
int uni_check_image(struct uni_as *as, const struct uni_arch *arch, const struct uni_regs *regs,
	const struct uni_image *img, uint64_t bias, unsigned nr_pages, struct uni_difference *d,
	struct uni_err *err);

enum uni_fit {
	UNI_FIT_EMPTY, /* nothing of the image's code can be read there */
	UNI_FIT_OTHER, /* other code */
	UNI_FIT_SAME,
};

/* The same comparison without words. root NULL: addresses are not translated. */
enum uni_fit uni_check_fit(struct uni_as *as, const struct uni_pt_root *root,
	const struct uni_image *img, uint64_t bias);

/* The message for the user: "" if the guest runs the image. */
void uni_difference_text(const struct uni_difference *d, const struct uni_image *img, bool accepted,
	char *ret, size_t cap);
/* How that was found out: "build-id and 120 KiB of code compared; ...". */
void uni_difference_how(const struct uni_difference *d, char *ret, size_t cap);

#endif
