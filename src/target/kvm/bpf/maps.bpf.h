/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps of a loaded object; abi.h says what is in them. */
#ifndef UNI_TARGET_KVM_BPF_MAPS_BPF_H
#define UNI_TARGET_KVM_BPF_MAPS_BPF_H

#include "target/kvm/bpf/guest.bpf.h"

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

/* struct kvm_vcpu * to the index in vcpus, for programs that do not belong to a thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNI_BPF_VCPUS);
	__type(key, u64);
	__type(value, u32);
} by_vcpu SEC(".maps");

/* One for each kind of program that another may interrupt. */
enum { UNI_SCRATCH_PERF, UNI_SCRATCH_EXIT, UNI_SCRATCH_NR };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNI_SCRATCH_NR);
	__type(key, u32);
	__type(value, struct uni_bpf_scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct uni_bpf_text));
		});
} texts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct uni_bpf_cfi));
		});
} cfis SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_HASH);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(struct uni_bpf_chain_key));
			__uint(value_size, sizeof(u32));
		});
} chains SEC(".maps");

struct uni_bpf_counts {
	u64 n[UNI_BPF_STATES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(u32));
			__uint(value_size, sizeof(struct uni_bpf_counts));
		});
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNI_BPF_GUESTS);
	__type(key, u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_RINGBUF);
			__uint(max_entries, 4096);
		});
} rings SEC(".maps");

static __always_inline const struct uni_bpf_text *uni_text_at(u32 guest, u32 at)
{
	void *inner = bpf_map_lookup_elem(&texts, &guest);

	return inner != NULL ? bpf_map_lookup_elem(inner, &at) : NULL;
}

static __always_inline const struct uni_bpf_cfi *uni_cfi_at(u32 guest, u32 at)
{
	void *inner = bpf_map_lookup_elem(&cfis, &guest);

	return inner != NULL ? bpf_map_lookup_elem(inner, &at) : NULL;
}

#endif
