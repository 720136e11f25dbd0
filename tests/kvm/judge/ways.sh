#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The verifier's own depths of the frames against those that tests/unit/bpf_frames.py computes.
. "$SRC/tests/lab/judge.sh"
verdict 'frames are as deep as computed, or less' python3 "$SRC/tests/unit/bpf_frames.py" \
	--against "$OUT/verifier" "$BUILD"/src/backend/kvm/bpf/sampler.bpf.o "$BUILD"/src/backend/kvm/bpf/exit.bpf.o
echo "1..$n"
