/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/part.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define SECONDS_MAX 1e9

bool uni_part_has_time(const struct uni_part *p)
{
	return p->from != 0 || p->to_given;
}

int uni_part_check(const struct uni_part *p, struct uni_err *err)
{
	if (p->from >= 0 && p->from <= SECONDS_MAX &&
		(!p->to_given || (p->to > p->from && p->to <= SECONDS_MAX)))
		return 0;
	return uni_err_set(
		err, UNI_EUSAGE, "--from and --to are seconds from 0 on, and --to is after --from");
}

void uni_part_window(
	const struct uni_part *p, uint64_t begin_ns, uint64_t *from_ret, uint64_t *to_ret)
{
	const uint64_t most = UINT64_MAX - begin_ns; /* a file gives it */

	*from_ret = p->from > 0 ? begin_ns + uni_min((uint64_t)(p->from * 1e9), most) : 0;
	*to_ret = p->to_given
			  ? begin_ns + uni_min(uni_max((uint64_t)(p->to * 1e9), (uint64_t)1), most)
			  : 0;
}

int uni_part_empty(const struct uni_part *p, const char *path, const char *what, uint64_t begin_ns,
	uint64_t last_ns, struct uni_err *err)
{
	double last = (double)(uni_max(last_ns, begin_ns) - begin_ns) / 1e9;

	if (!p->to_given)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no %s from %g s on: the last one is at %.4g s", path, what, p->from,
			last);
	return uni_err_set(err, UNI_ENOENT,
		"%s has no %s from %g s to %g s: the last one is at %.4g s", path, what, p->from,
		p->to, last);
}

void uni_part_text(char ret[UNI_PART_TEXT], const struct uni_record_part *p)
{
	char thread[UNI_PART_TEXT / 2], time[64] = "", vcpu[32] = "";

	if (p->to != 0)
		(void)snprintf(time, sizeof(time), ", %g s to %g s", p->from, p->to);
	else if (p->from != 0)
		(void)snprintf(time, sizeof(time), ", %g s and later", p->from);
	if (p->vcpu.chosen)
		(void)snprintf(vcpu, sizeof(vcpu), ", vCPU %" PRIu64, p->vcpu.nr);
	thread[0] = '\0';
	if (p->thread != NULL)
		(void)uni_text_clean(thread, sizeof(thread), p->thread, strlen(p->thread));
	(void)snprintf(ret, UNI_PART_TEXT, "%s%s%s%s only", time, vcpu,
		p->thread != NULL ? ", threads " : "", thread);
	memmove(ret, ret + 2, strlen(ret + 2) + 1);
}

static int take_sample(void *ctx, const struct uni_sample *s)
{
	*(uint64_t *)ctx = s->t_ns;
	return 1;
}

static int take_exit(void *ctx, const struct uni_stream_exit *e)
{
	*(uint64_t *)ctx = e->t_ns;
	return 1;
}

/* Highest number of vCPUs of the guests on show. */
static uint32_t count_vcpus(const struct uni_recording *rec, struct uni_only guest)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		if (uni_only_passes(guest, i))
			nr = uni_max(nr, uni_recording_guest(rec, i).meta->nr_vcpus);
	}
	return nr;
}

static int choose_vcpu(const struct uni_part *p, const struct uni_recording *rec,
	struct uni_sample_filter *filter, struct uni_err *err)
{
	uint32_t nr = count_vcpus(rec, filter->guest);

	if (!p->vcpu_given)
		return 0;
	filter->vcpu = uni_only(p->vcpu);
	if (p->vcpu < nr)
		return 0;
	if (nr == 1)
		return uni_err_set(err, UNI_EINVAL, "this session has 1 vCPU (0)");
	return uni_err_set(err, UNI_EINVAL, "this session has %" PRIu32 " vCPUs (0 to %" PRIu32 ")",
		nr, nr - 1);
}

int uni_part_choose(const struct uni_part *p, struct uni_recording *rec,
	struct uni_sample_filter *filter, struct uni_err *err)
{
	uint64_t begin = 0;
	int rc = choose_vcpu(p, rec, filter, err);

	if (rc == 0)
		rc = uni_part_check(p, err);
	if (rc != 0 || !uni_part_has_time(p))
		return rc;
	if (uni_recording_meta(rec)->aggregate)
		return uni_err_set(err, UNI_EUSAGE,
			"--from and --to need times, and %s has counts without",
			uni_recording_path(rec));
	rc = uni_recording_each(rec, take_sample, &begin, NULL, err);
	if (rc == 0)
		rc = uni_recording_each_exit(rec, take_exit, &begin, NULL, err);
	if (rc < 0)
		return rc;
	uni_part_window(p, begin, &filter->from_ns, &filter->to_ns);
	return 0;
}
