/* SPDX-License-Identifier: BSD-2-Clause */
/* mksession PATH SAMPLES VCPUS [GUESTS [unsure]]: a session with so many samples of each guest, for
 * tests of its readers. unsure: some are so (e2e/unsure_judge.py), and two lists of threads were
 * short. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "recording/recording.h"

struct args {
	uint64_t nr, vcpus, guests;
	bool unsure;
};

/* An exit of the sample's chain. */
static void put_exit(struct uni_recorder *r, const struct uni_sample *s, uint64_t n)
{
	const struct uni_stream_exit e = { .t_ns = s->t_ns,
		.weight = n,
		.host_ns = n * 5000,
		.stolen_ns = n % 4 * 1000,
		.info = 0x3f8 + n % 3,
		.guest = s->guest,
		.vcpu = s->vcpu,
		.reason = 2,
		.isa = (uint8_t)(n / 10 % UNI_EXIT_ISA_NR),
		.info_kind = (uint8_t)(n / 10 % UNI_EXIT_INFO_NR),
		.access = (uint8_t)(n / 10 % UNI_EXIT_ACCESS_NR),
		.userspace = n % 20 == 0,
		.stop = s->stop,
		.nr = s->nr,
		.pc = s->pc,
		.flags = s->flags };

	uni_recorder_exit(r, &e);
}

/* Chains of 1 to 512 frames, equal ones now and then, each state and each stop reason. */
static void put_sample(struct uni_recorder *r, const struct args *a, uint32_t guest, uint64_t n)
{
	static uint64_t pc[UNI_CHAIN_MAX];
	static uint8_t flags[UNI_CHAIN_MAX];
	struct uni_sample s = { .t_ns = 5 * UNI_NSEC_PER_SEC + guest + n * 1000,
		.weight = 1 + n % 3,
		.guest = guest,
		.vcpu = (uint32_t)(n % a->vcpus),
		.thread = (uint32_t)(n % 5),
		.pause_ns = (uint32_t)n,
		.stop = (uint8_t)(n % UNI_STOP_NR),
		.state = (uint8_t)(n % UNI_VCPU_STATE_NR),
		.nr = (uint16_t)(n % 97 == 0 ? UNI_CHAIN_MAX : n % 30),
		.pc = pc,
		.flags = flags };

	for (size_t i = 0; i < s.nr; i++) {
		pc[i] = 0xffffffff80000000ull + n % 11 * 16 + i;
		flags[i] = (uint8_t)(i % 3);
	}
	/* A half of the samples in one function, and few of those in another one. */
	if (a->unsure && ((n % 11 == 3 && n % 4 == 0) || (n % 11 == 0 && n % 64 == 0)))
		flags[0] = UNI_FRAME_UNSURE;
	uni_recorder_sample(r, &s);
	if (n % 10 == 0)
		put_exit(r, &s, n);
	if (n % 1000 == 999)
		(void)uni_recorder_flush(r, NULL);
}

/* All guests alike: t0 apart by a nanosecond, so that they interleave. */
static void fill(struct uni_recorder *r, const struct args *a, struct uni_err *err)
{
	struct uni_record_stats stats = { .short_lists = a->unsure ? 2 : 0 };
	struct uni_guest_result result[UNI_GUEST_MAX];

	for (uint64_t n = 0; n < a->nr; n++) {
		for (uint32_t g = 0; g < a->guests; g++)
			put_sample(r, a, g, n);
	}
	for (size_t g = 0; g < a->guests; g++)
		result[g] = (struct uni_guest_result){ .stats = &stats };
	(void)uni_recorder_close(r, result, a->guests, err);
}

int main(int argc, char **argv)
{
	struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	struct args a = { .guests = 1 };
	struct uni_recorder *r;
	struct uni_err err = { 0 };
	uint32_t guest;

	if (meta == NULL || argc < 4 || argc > 6 || !uni_parse_u64(argv[2], &a.nr) ||
		!uni_parse_u64(argv[3], &a.vcpus) || a.vcpus == 0 || a.vcpus > UNI_VCPU_MAX ||
		(argc > 4 && !uni_parse_u64(argv[4], &a.guests)) || a.guests > UNI_GUEST_MAX) {
		(void)fprintf(stderr, "usage: mksession PATH SAMPLES VCPUS [GUESTS [unsure]]\n");
		return 2;
	}
	a.unsure = argc == 6;
	meta->nr_vcpus = (uint32_t)a.vcpus;
	meta->frequency = 1e6;
	meta->exits_every = 10;
	/* 2023-11-14 22:13:20 UTC, and t0 above: the times that a reader must show. */
	meta->realtime_offset_ns = 1700000000ull * UNI_NSEC_PER_SEC;
	if (uni_recorder_create(argv[1], meta, false, &r, &err) == 0) {
		for (uint64_t g = 1; g < a.guests && err.code == 0; g++)
			(void)uni_recorder_add_guest(r, meta, &guest, &err);
		fill(r, &a, &err);
	}
	free(meta);
	if (err.code != 0)
		(void)fprintf(stderr, "mksession: %s\n", err.msg);
	return err.code != 0;
}
