/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of a guest's port: bytes, or bodies that are put into valid frames, so that the fuzzer
 * gets behind the checksum. The first byte says which.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "backend/stream/stream.h"
#include "told_regs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
	bool framed;
	uint8_t answer[sizeof(struct uni_stream_frame) + UNI_STREAM_BODY_MAX];
	size_t at, whole; /* of the answer */
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static uint8_t next(struct input *in)
{
	if (in->size == 0)
		return 0;
	in->size--;
	return *in->data++;
}

/* One body: status, length, bytes. */
static int on_send(void *ctx, const void *data, size_t size, uint64_t deadline_ns)
{
	struct uni_stream_frame f;
	struct input *in = ctx;
	uint32_t n;

	require(size <= sizeof(in->answer));
	if (!in->framed || size < sizeof(f) || in->size == 0)
		return 0;
	memcpy(&f, data, sizeof(f));
	if (f.magic != UNI_STREAM_MAGIC)
		return 0;
	require(f.size == size - sizeof(f));
	f.status = next(in) & 7;
	n = next(in);
	n |= (uint32_t)next(in) << 8;
	f.size = (uint32_t)uni_min(uni_min((size_t)n, in->size), (size_t)UNI_STREAM_BODY_MAX);
	if (f.size != 0)
		memcpy(in->answer + sizeof(f), in->data, f.size);
	in->data += f.size;
	in->size -= f.size;
	f.crc = uni_stream_frame_crc(&f, in->answer + sizeof(f));
	memcpy(in->answer, &f, sizeof(f));
	in->at = 0;
	in->whole = sizeof(f) + f.size;
	return 0;
}

static int on_receive(void *ctx, void *buf, size_t size, uint64_t deadline_ns)
{
	struct input *in = ctx;
	size_t n = in->framed ? in->whole - in->at : in->size;

	require(size != 0);
	if (in->size == 0 && n == 0)
		return -UNI_EGONE;
	if (n == 0)
		return -UNI_ETIMEDOUT;
	n = uni_min(n, uni_min(size, (size_t)1000));
	memcpy(buf, in->framed ? in->answer + in->at : in->data, n);
	if (in->framed) {
		in->at += n;
	} else {
		in->data += n;
		in->size -= n;
	}
	return (int)n;
}

static const struct uni_line_ops ops = { .send = on_send, .receive = on_receive };

static void on_raw(void *ctx, const struct uni_stream_raw *s)
{
	require(s->nr >= 1 && s->stack_size == 16 && s->vcpu < UNI_VCPU_MAX);
	require(s->pc[0] == s->regs.pc);
	tell_regs(&s->regs);
	told(s->pc, s->nr * sizeof(s->pc[0]));
	told_u64(s->vcpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct uni_stream_cfg cfg = { .frequency = 100 };
	static const uint8_t nop[5] = { 0x0f, 0x1f, 0x44, 0, 0 };
	const struct uni_attach_opts opts = { 0 };
	struct input *in = calloc(1, sizeof(*in));
	struct uni_line line = { .ops = &ops, .ctx = in, .text = "line" };
	const struct uni_stream_sink sink = { .raw = on_raw };
	struct uni_patch patch = { .va = 4096, .gpa = 4096, .len = 5 };
	struct uni_patch_job job = { .patch = &patch, .nr = 1 };
	struct uni_regs *regs = calloc(UNI_VCPU_MAX, sizeof(*regs));
	struct uni_stream_stats stats;
	struct uni_vcpuset all;
	struct uni_target *t;

	require(in != NULL && regs != NULL);
	in->data = data;
	in->size = size;
	in->framed = (next(in) & 1) != 0;
	memcpy(patch.old_bytes, nop, 5);
	if (uni_stream_attach_line(&line, NULL, &opts, &t, NULL) == 0) {
		if (t->ops->stream_start(t, &cfg, NULL, NULL) == 0) {
			for (int i = 0; i < 4; i++)
				(void)t->ops->stream_read(t, &sink);
			(void)t->ops->stream_stop(t);
			(void)t->ops->stream_read(t, &sink);
			t->ops->stream_stats(t, &stats);
		}
		(void)uni_patch_run(t, &job);
		require(job.bad == 0);
		all = uni_vcpuset_first((uint32_t)t->ops->nr_vcpus(t));
		(void)t->ops->snap(t, &all, regs, UNI_SNAP_HOLD);
		uni_target_detach(t);
	}
	free(regs);
	free(in);
	return 0;
}
