/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/clocks.h"

#include "base/checked.h"
#include "base/clock.h"

#define LEAST_NS (100 * UNI_NSEC_PER_MSEC) /* KVM itself moves clocks by a little */

bool uni_kvm_clock_look(
	struct uni_kvm_clock *c, const struct uni_kvm_clock_look *look, struct uni_stream_back *ret)
{
	const struct uni_kvm_clock last = *c;
	int64_t lost = (int64_t)(last.offset - look->offset);

	c->offset = look->offset;
	c->seen_ns = look->now_ns;
	c->samples = look->samples;
	if (look->halted)
		c->ran_ns = look->now_ns;
	else if (last.seen_ns != 0 && look->samples != last.samples)
		c->ran_ns = uni_max(c->ran_ns, last.seen_ns);
	/* It may have run since the clock was set: only looks before this one count. */
	if (last.ran_ns == 0 || look->offset == 0 || lost < (int64_t)LEAST_NS ||
		last.ran_ns + (uint64_t)lost <= look->now_ns)
		return false;
	*ret = (struct uni_stream_back){
		.begin_ns = last.seen_ns, .end_ns = look->now_ns, .back_ns = (uint64_t)lost
	};
	return true;
}
