/* SPDX-License-Identifier: BSD-2-Clause */
/* The guests of a recording by name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "session/recording.h"

/* As it would be called if it were alone. */
static void plain_name(const struct uni_recording *r, uint32_t guest, char ret[UNI_GUEST_NAME_MAX])
{
	const struct uni_record_meta *m = uni_recording_guest(r, guest).meta;
	struct uni_target_info info;

	uni_guest_name(&m->info, ret);
	if (ret[0] != '\0')
		return;
	info = (struct uni_target_info){ 0 };
	(void)snprintf(info.image, sizeof(info.image), "%s", m->image_path);
	uni_guest_name(&info, ret);
	if (ret[0] == '\0')
		(void)snprintf(ret, UNI_GUEST_NAME_MAX, "guest-%" PRIu32, guest);
}

void uni_recording_guest_name(
	const struct uni_recording *r, uint32_t guest, char ret[UNI_GUEST_NAME_MAX])
{
	char other[UNI_GUEST_NAME_MAX], name[UNI_GUEST_NAME_MAX];
	bool alone = true;

	plain_name(r, guest, name);
	for (uint32_t i = 0; alone && i < uni_recording_nr_guests(r); i++) {
		plain_name(r, i, other);
		alone = i == guest || strcmp(other, name) != 0;
	}
	if (alone)
		(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%s", name);
	else
		(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%.100s#%" PRIu32, name, guest);
}

static int no_such_guest(const struct uni_recording *r, const char *text, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf known;
	char name[UNI_GUEST_NAME_MAX];

	uni_strbuf_init(&known);
	for (uint32_t i = 0; i < uni_recording_nr_guests(r); i++) {
		uni_recording_guest_name(r, i, name);
		uni_strbuf_addf(&known, "%s %" PRIu32 " (%s)", i != 0 ? "," : "", i, name);
	}
	return uni_err_set(err, UNI_ENOENT, "this session has no guest %s; it has%s", text,
		uni_strbuf_failed(&known) ? " others" : known.s);
}

int uni_recording_find_guest(
	const struct uni_recording *r, const char *text, uint32_t *ret, struct uni_err *err)
{
	char name[UNI_GUEST_NAME_MAX];
	uint64_t number;

	for (uint32_t i = 0; i < uni_recording_nr_guests(r); i++) {
		uni_recording_guest_name(r, i, name);
		if (strcmp(name, text) != 0)
			continue;
		*ret = i;
		return 0;
	}
	if (uni_parse_u64(text, &number) && number < uni_recording_nr_guests(r)) {
		*ret = (uint32_t)number;
		return 0;
	}
	return no_such_guest(r, text, err);
}
