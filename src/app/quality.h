/* SPDX-License-Identifier: BSD-2-Clause */
/* How and how well a guest was sampled, and the cost: for record's summary and for report. */
#ifndef UNI_APP_QUALITY_H
#define UNI_APP_QUALITY_H

#include "base/sink.h"
#include "recording/recording.h"

#define UNI_QUALITY_TEXT   256
#define UNI_QUALITY_METHOD 640
#define UNI_QUALITY_ENOUGH 30 /* samples, for shares to mean something */

/* "guest and KVM 97.1 %, VMM 1.0 %, idle 0.5 %, stolen 1.4 %". */
void uni_quality_where(char ret[UNI_QUALITY_TEXT], const struct uni_vcpu_times *t);
/* All vCPUs' times together. */
struct uni_vcpu_times uni_quality_all_vcpus(const struct uni_record_stats *st);
/* "samples made by the host's kernel (bpf)", or by a lesser method and why; "" unknown. */
void uni_quality_method(char ret[UNI_QUALITY_METHOD], const struct uni_record_meta *m);
/* The same for one part of a recording that has several. */
void uni_quality_way(
	char ret[UNI_QUALITY_METHOD], const char *method, bool counts, const char *why);
/* By the host's kernel, which takes samples when their time has come, or not at all. */
/* True, and says so: lists of threads were not read to their ends. */
bool uni_quality_short_lists(char ret[UNI_QUALITY_METHOD], const struct uni_record_stats *st);
bool uni_quality_streamed(const struct uni_record_meta *m);
/* Does it lack samples of time off the CPU? That of a process whose samples the kernel made. */
bool uni_quality_is_unseen(const struct uni_record_meta *m);
/* Made by the guest: it pays the cost that the host pays otherwise. */
bool uni_quality_inside(const struct uni_record_meta *m);
enum uni_doubt {
	UNI_DOUBT_NONE,
	/* All of them, or all but a few, are not of the image; or no vCPU ran. */
	UNI_DOUBT_NO_PROFILE,
	UNI_DOUBT_TOO_FEW,
	/* Under TCG: many may be of another function than the one that they are given to. */
	UNI_DOUBT_UNSURE,
};
/* Are the samples shown a profile of the image? If not, says in one line what they are. m: NULL if
 * not known. */
enum uni_doubt uni_quality_doubt(char ret[UNI_QUALITY_METHOD], const struct uni_record_meta *m,
	const struct uni_record_stats *st, const struct uni_sample_filter *shown);
/* How many of the samples are shown. */
uint64_t uni_quality_count(
	const struct uni_record_stats *st, const struct uni_sample_filter *shown);
/* A sum over the states that are shown. */
uint64_t uni_quality_sum(
	const uint64_t by_state[UNI_VCPU_STATE_NR], const struct uni_sample_filter *shown);
/* There are samples, but no vCPU ran at any: their chains say nothing of a profile. */
bool uni_quality_stands_still(
	const struct uni_record_stats *st, const struct uni_sample_filter *shown);
/* Was the guest not stopped for any sample? */
bool uni_quality_never_stopped(const struct uni_record_meta *m, const struct uni_record_stats *st);
/* No samples were asked for (record --exits -F 0). */
bool uni_quality_exits_only(const struct uni_record_meta *m);
/* Host CPU time for a sample, us; negative: not counted. */
double uni_quality_host_us(const struct uni_record_stats *st);
double uni_quality_share(uint64_t part, uint64_t whole); /* in %, 0 of nothing */
double uni_quality_seconds(const struct uni_record_stats *st);

/* In such a head: the parts of a recording, and what lies between them. */
void uni_quality_put_gaps(struct uni_sink *out, const struct uni_recorded_guest *g);

/* The head of a report, which shows such samples: one block for each of its guests. */
void uni_quality_print(const struct uni_recording *rec, const struct uni_sample_filter *shown,
	struct uni_sink *out);

#endif
