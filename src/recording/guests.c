/* SPDX-License-Identifier: BSD-2-Clause */
/* The guests of a recording by name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "recording/recording.h"

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

void uni_record_thread_name(const struct uni_record_thread *thread, size_t nr, uint32_t id,
	char ret[UNI_GUEST_NAME_MAX])
{
	const struct uni_record_thread *t = id != 0 && id <= nr ? &thread[id - 1] : NULL;
	const char *space;

	if (t == NULL) {
		(void)snprintf(
			ret, UNI_GUEST_NAME_MAX, "%s", id == 0 ? "[no thread]" : "[unknown]");
		return;
	}
	space = t->name[0] != '\0' ? " " : "";
	if (space[0] != '\0' && !t->has_twin)
		(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%s", t->name);
	else if (t->has_number)
		(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%s%s%" PRIu64, t->name, space, t->number);
	else
		(void)snprintf(
			ret, UNI_GUEST_NAME_MAX, "%s%s0x%" PRIx64, t->name, space, t->object);
}

void uni_thread_set_destroy(struct uni_thread_set *set)
{
	if (set == NULL)
		return;
	for (uint32_t i = 0; i < set->nr_guests; i++)
		free(set->guest[i].has);
	free(set);
}

static int no_such_thread(const struct uni_recording *r, const char *glob, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf known;
	char name[UNI_GUEST_NAME_MAX];

	uni_strbuf_init(&known);
	for (uint32_t i = 0; i < uni_recording_nr_guests(r); i++) {
		struct uni_recorded_guest g = uni_recording_guest(r, i);

		for (size_t k = 0; k < g.nr_thread && known.len < 400; k++) {
			uni_record_thread_name(g.thread, g.nr_thread, (uint32_t)k + 1, name);
			uni_strbuf_addf(&known, "%s %s", known.len != 0 ? "," : "; it has", name);
		}
	}
	if (known.len == 0)
		uni_strbuf_adds(&known, ": no threads were recorded (record --threads)");
	return uni_err_set(err, UNI_ENOENT, "this session has no thread %s%s", glob,
		uni_strbuf_failed(&known) ? "" : known.s);
}

/* How many of the guest's threads match; SIZE_MAX: out of memory. */
static size_t match_threads(
	const struct uni_recording *r, uint32_t guest, const char *glob, struct uni_thread_set *set)
{
	struct uni_recorded_guest g = uni_recording_guest(r, guest);
	bool *has = calloc(g.nr_thread + 1, sizeof(*has));
	char name[UNI_GUEST_NAME_MAX];
	size_t nr = 0;

	if (has == NULL)
		return SIZE_MAX;
	for (uint32_t id = 1; id <= g.nr_thread; id++) {
		uni_record_thread_name(g.thread, g.nr_thread, id, name);
		has[id] = uni_glob_match(glob, name) ||
			  (g.thread[id - 1].name[0] != '\0' &&
				  uni_glob_match(glob, g.thread[id - 1].name));
		nr += has[id];
	}
	set->guest[guest].has = has;
	set->guest[guest].nr = (uint32_t)g.nr_thread + 1;
	set->nr_guests = guest + 1;
	return nr;
}

int uni_recording_find_threads(const struct uni_recording *r, const char *glob,
	struct uni_thread_set **ret, struct uni_err *err)
{
	struct uni_thread_set *set = calloc(1, sizeof(*set));
	size_t nr = 0, one = set != NULL ? 0 : SIZE_MAX;

	for (uint32_t i = 0; one != SIZE_MAX && i < uni_recording_nr_guests(r); i++) {
		one = match_threads(r, i, glob, set);
		nr += one != SIZE_MAX ? one : 0;
	}
	if (one != SIZE_MAX && nr != 0) {
		*ret = set;
		return 0;
	}
	uni_thread_set_destroy(set);
	return one == SIZE_MAX ? uni_err_nomem(err) : no_such_thread(r, glob, err);
}
