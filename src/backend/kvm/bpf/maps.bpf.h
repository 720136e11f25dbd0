/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps of a loaded object; abi.h describes their contents. */
#ifndef UNI_BACKEND_KVM_BPF_MAPS_BPF_H
#define UNI_BACKEND_KVM_BPF_MAPS_BPF_H

#include "backend/kvm/bpf/guest.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__type(value, struct uni_bpf_guest);
} guests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNI_BPF_VCPUS);
	__type(key, u32);
	__type(value, struct uni_bpf_vcpu);
} vcpus SEC(".maps");

/* One for each kind of program that another may interrupt. */
enum { UNI_SCRATCH_PERF, UNI_SCRATCH_EXIT, UNI_SCRATCH_NR };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNI_SCRATCH_NR);
	__type(key, u32);
	__type(value, struct uni_bpf_scratch);
} scratches SEC(".maps");

/* A separate map for each guest, which the loader makes: __VA_ARGS__ is its shape. */
#define UNI_PER_GUEST(name, ...)                          \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); \
		__uint(max_entries, UNI_BPF_GUESTS);      \
		__type(key, u32);                         \
		__array(values, struct { __VA_ARGS__ });  \
	} name SEC(".maps")

#define UNI_INNER_ARRAY(value)                               \
	__uint(type, BPF_MAP_TYPE_ARRAY);                    \
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP); \
	__uint(max_entries, 1);                              \
	__uint(key_size, sizeof(u32));                       \
	__uint(value_size, sizeof(value));

#define UNI_INNER_HASH(key, value)       \
	__uint(type, BPF_MAP_TYPE_HASH); \
	__uint(max_entries, 1);          \
	__uint(key_size, sizeof(key));   \
	__uint(value_size, sizeof(value));

struct uni_bpf_counts {
	u64 n[UNI_BPF_STATES];
};

UNI_PER_GUEST(texts, UNI_INNER_ARRAY(struct uni_bpf_text));
UNI_PER_GUEST(cfis, UNI_INNER_ARRAY(struct uni_bpf_cfi));
UNI_PER_GUEST(chains, UNI_INNER_HASH(struct uni_bpf_chain_key, u32));
UNI_PER_GUEST(counts, UNI_INNER_ARRAY(struct uni_bpf_counts));
UNI_PER_GUEST(rings, __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096););

/* The value of a key in a guest's map; NULL: none, or it has no such map. */
#define UNI_OF_GUEST(name, guest, key)                                    \
	({                                                                \
		u32 guest_ = (guest);                                     \
		void *inner_ = bpf_map_lookup_elem(&(name), &guest_);     \
                                                                          \
		inner_ != NULL ? bpf_map_lookup_elem(inner_, key) : NULL; \
	})

static __always_inline const struct uni_bpf_text *uni_text_at(u32 guest, u32 at)
{
	return UNI_OF_GUEST(texts, guest, &at);
}

static __always_inline const struct uni_bpf_cfi *uni_cfi_at(u32 guest, u32 at)
{
	return UNI_OF_GUEST(cfis, guest, &at);
}

#endif
