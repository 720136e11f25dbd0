#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The verifier's own depths of the frames against those that tests/unit/bpf_frames.py computes. Each field that the programs use,
# in the types of this kernel and its three modules.
. "$SRC/tests/lab/judge.sh"
fields() {
	# shellcheck disable=SC2154 # exported by kvm_host.sh
	of=$BUILD/kvm/$kernel
	python3 "$SRC/tests/unit/bpf_fields.py" "$of/vmlinuz" "$of"/modules/kvm.ko* "$of"/modules/kvm-intel.ko* \
		"$of"/modules/kvm-amd.ko* -- "$BUILD"/src/backend/kvm/bpf/sampler.bpf.o "$BUILD"/src/backend/kvm/bpf/exit.bpf.o >"$OUT/fields"
	status=$?
	grep -v '^ok' "$OUT/fields"
	return $status
}
verdict 'frames are as deep as computed, or less' python3 "$SRC/tests/unit/bpf_frames.py" \
	--against "$OUT/verifier" "$BUILD"/src/backend/kvm/bpf/sampler.bpf.o "$BUILD"/src/backend/kvm/bpf/exit.bpf.o
verdict 'and those without casts' python3 "$SRC/tests/unit/bpf_frames.py" \
	--against "$OUT/verifierplain" "$BUILD"/src/backend/kvm/bpf/sampler_plain.bpf.o "$BUILD"/src/backend/kvm/bpf/exit_plain.bpf.o
verdict 'each field lies in the types of kvm.ko, and there in those of kvm-intel.ko and kvm-amd.ko' fields
echo "1..$n"
