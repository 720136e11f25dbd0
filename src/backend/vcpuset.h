/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of a guest's vCPUs, by their target's numbers: 0 to UNI_VCPU_MAX - 1. */
#ifndef UNI_TARGET_VCPUSET_H
#define UNI_TARGET_VCPUSET_H

#include <stdbool.h>
#include <stdint.h>

#define UNI_VCPU_MAX  1024
#define UNI_VCPU_MOST "uniscope reaches at most 1024"

struct uni_vcpuset { /* empty if zeroed */
	uint64_t word[UNI_VCPU_MAX / 64];
};

static inline bool uni_vcpuset_has(const struct uni_vcpuset *s, uint32_t vcpu)
{
	return vcpu < UNI_VCPU_MAX && (s->word[vcpu / 64] >> vcpu % 64 & 1) != 0;
}

static inline void uni_vcpuset_add(struct uni_vcpuset *s, uint32_t vcpu)
{
	if (vcpu < UNI_VCPU_MAX)
		s->word[vcpu / 64] |= 1ull << vcpu % 64;
}

static inline struct uni_vcpuset uni_vcpuset_one(uint32_t vcpu)
{
	struct uni_vcpuset s = { 0 };

	uni_vcpuset_add(&s, vcpu);
	return s;
}

/* The vCPUs 0 to nr - 1. */
static inline struct uni_vcpuset uni_vcpuset_first(uint32_t nr)
{
	struct uni_vcpuset s = { 0 };

	for (uint32_t i = 0; i < UNI_VCPU_MAX / 64 && nr > i * 64; i++)
		s.word[i] = nr - i * 64 >= 64 ? UINT64_MAX : (1ull << (nr - i * 64)) - 1;
	return s;
}

static inline uint32_t uni_vcpuset_count(const struct uni_vcpuset *s)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < UNI_VCPU_MAX / 64; i++)
		nr += (uint32_t)__builtin_popcountll(s->word[i]);
	return nr;
}

/* Can a target with nr vCPUs read these: is there at least one, and none from nr on? */
static inline bool uni_vcpuset_fits(const struct uni_vcpuset *s, uint32_t nr)
{
	const struct uni_vcpuset all = uni_vcpuset_first(nr);
	uint64_t any = 0, more = 0;

	for (uint32_t i = 0; i < UNI_VCPU_MAX / 64; i++) {
		any |= s->word[i];
		more |= s->word[i] & ~all.word[i];
	}
	return any != 0 && more == 0;
}

#endif
