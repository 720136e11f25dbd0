/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvm_stream TARGET IMAGE SECONDS HZ counts|ordered [SCHEDSTAT]: samples a guest from the kernel.
 * It prints the results as "KEY VALUE" lines, and folded stacks as "stack A;B;C N". Chains that do
 * not end where a lab guest's begin are "broken". "host ON WAITING ALL" are seconds that the host's
 * own file of a thread (/proc/PID/task/TID/schedstat) counted meanwhile. For tests and for looking
 * at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arch/stop.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "obj/image.h"
#include "backend/target.h"

#define STACKS_MAX 65536
#define SELF_MAX   1024
#define TEXT_HINTS 16

struct stack {
	char *folded;
	uint64_t n;
};

struct run {
	struct uni_image *image;
	uint64_t total, broken, depth, late;
	uint64_t by_state[UNI_VCPU_STATE_NR], by_stop[UNI_STOP_NR], in_vmm;
	uint64_t last_ns[UNI_VCPU_MAX];
	struct stack *stack;
	size_t nr_stacks;
	struct stack self[SELF_MAX]; /* functions, while the guest ran */
	size_t nr_self;
};

static const char *name_of(const struct run *r, uint64_t pc)
{
	const struct uni_symbol *s = uni_image_lookup(r->image, pc);

	return s != NULL ? uni_image_sym_name(r->image, s) : "?";
}

static void count_self(struct run *r, const struct uni_stream_sample *s)
{
	const char *name = name_of(r, s->pc[0]);

	for (size_t i = 0; i < r->nr_self; i++) {
		if (strcmp(r->self[i].folded, name) == 0) {
			r->self[i].n += s->weight;
			return;
		}
	}
	if (r->nr_self < SELF_MAX)
		r->self[r->nr_self++] = (struct stack){ strdup(name), s->weight };
}

static void count_stack(struct run *r, const struct uni_stream_sample *s)
{
	char buf[16384];
	size_t len = 0;

	(void)snprintf(buf, sizeof(buf), "vcpu%u", s->vcpu);
	len = strlen(buf);
	for (uint16_t i = s->nr; i-- != 0 && len < sizeof(buf) - 300;) {
		(void)snprintf(buf + len, sizeof(buf) - len, ";%s",
			name_of(r, i == 0 ? s->pc[i] : s->pc[i] - 1));
		len += strlen(buf + len);
	}
	for (size_t i = 0; i < r->nr_stacks; i++) {
		if (strcmp(r->stack[i].folded, buf) == 0) {
			r->stack[i].n += s->weight;
			return;
		}
	}
	if (r->nr_stacks < STACKS_MAX)
		r->stack[r->nr_stacks++] = (struct stack){ strdup(buf), s->weight };
}

static void on_sample(void *ctx, const struct uni_stream_sample *s)
{
	struct run *r = ctx;

	if (s->state < UNI_VCPU_STATE_NR)
		r->by_state[s->state] += s->weight;
	r->in_vmm += s->vmm ? s->weight : 0;
	if (s->vcpu < UNI_VCPU_MAX) {
		r->late += s->t_ns < r->last_ns[s->vcpu];
		r->last_ns[s->vcpu] = s->t_ns;
	}
	r->total += s->weight;
	r->depth += s->weight * s->nr;
	if (s->stop < UNI_STOP_NR)
		r->by_stop[s->stop] += s->weight;
	if (s->nr != 0) {
		const char *root = name_of(r, s->nr == 1 ? s->pc[0] : s->pc[s->nr - 1] - 1);
		bool whole = s->stop == UNI_STOP_ROOT &&
			     (strcmp(root, "lab_entry") == 0 || strcmp(root, "lab_ap_entry") == 0 ||
				     strcmp(root, "lab_thread_entry") == 0);

		r->broken += whole ? 0 : s->weight;
		if (!whole && r->broken <= 20) {
			(void)printf("broken_chain %s state %u:", uni_stop_name(s->stop), s->state);
			for (uint16_t i = 0; i < s->nr && i < 12; i++)
				(void)printf(" %" PRIx64 "=%s", s->pc[i],
					name_of(r, i == 0 ? s->pc[i] : s->pc[i] - 1));
			(void)printf("\n");
		}
		count_stack(r, s);
		if (s->state == UNI_VCPU_RUNNING)
			count_self(r, s);
	}
}

static size_t text_hints(const struct uni_image *image, struct uni_text_hint *hint)
{
	size_t n = 0;

	for (size_t i = 0; i < uni_image_nr_segments(image) && n < TEXT_HINTS; i++) {
		const struct uni_segment *s = uni_image_segment(image, i);

		if (!s->write && s->file_size != 0)
			hint[n++] = (struct uni_text_hint){ .gva = s->vaddr,
				.paddr = s->paddr,
				.bytes = s->bytes,
				.size = s->file_size,
				.exec = s->exec };
	}
	return n;
}

static void print_times(struct uni_target *t)
{
	for (int i = 0; i < t->ops->nr_vcpus(t); i++) {
		struct uni_vcpu_times v;

		if (t->ops->stream_times(t, (uint32_t)i, &v) == 0)
			(void)printf(
				"times %d guest %.4f kvm %.4f vmm %.4f idle %.4f stolen %.4f\n", i,
				(double)v.guest_ns / 1e9, (double)v.kvm_ns / 1e9,
				(double)v.vmm_ns / 1e9, (double)v.idle_ns / 1e9,
				(double)v.stolen_ns / 1e9);
	}
}

static void print(const struct run *r, struct uni_target *t)
{
	static const char *const state[UNI_VCPU_STATE_NR] = { "guest", "halted", "offline",
		"unknown", "kvm", "vmm", "stolen", "ready", "blocked", "sleeping", "waiting" };
	struct uni_stream_stats st;

	t->ops->stream_stats(t, &st);
	for (size_t i = 0; i < r->nr_stacks; i++)
		(void)printf("stack %s %" PRIu64 "\n", r->stack[i].folded, r->stack[i].n);
	for (size_t i = 0; i < r->nr_self; i++)
		(void)printf("self %s %" PRIu64 "\n", r->self[i].folded, r->self[i].n);
	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++)
		(void)printf("%s %" PRIu64 "\n", state[i], r->by_state[i]);
	for (unsigned i = 0; i < UNI_STOP_NR; i++) {
		if (r->by_stop[i] != 0)
			(void)printf("stop %s %" PRIu64 "\n", uni_stop_name(i), r->by_stop[i]);
	}
	(void)printf("vmm_idle %" PRIu64 "\n", r->in_vmm);
	print_times(t);
	(void)printf("total %" PRIu64 "\nbroken %" PRIu64 "\nout_of_order %" PRIu64 "\n", r->total,
		r->broken, r->late);
	(void)printf("depth %.1f\n", r->total != 0 ? (double)r->depth / (double)r->total : 0);
	(void)printf("lost %" PRIu64 "\nfailed %" PRIu64 "\n", st.lost, st.failed);
	(void)printf("host_runs %" PRIu64 "\nhost_us_per_run %.3f\n", st.host_runs,
		st.host_runs != 0 ? (double)st.host_ns / (double)st.host_runs / 1000 : 0);
	(void)printf("cpu_s %.3f\n", (double)clock() / CLOCKS_PER_SEC);
}

/* The host's counts of a thread, and its clock. Without a file, nothing. */
struct host {
	uint64_t on_ns, waits_ns, now_ns;
};

static struct host host_counts(const char *path)
{
	struct host ret = { .now_ns = uni_now_ns() };
	FILE *f = path != NULL ? fopen(path, "re") : NULL;

	if (f == NULL)
		return ret;
	if (fscanf(f, "%" SCNu64 " %" SCNu64, &ret.on_ns, &ret.waits_ns) != 2)
		ret.on_ns = 0;
	(void)fclose(f);
	return ret;
}

static void print_host(const struct host *begin, const struct host *end)
{
	(void)printf("host %.4f %.4f %.4f\n", (double)(end->on_ns - begin->on_ns) / 1e9,
		(double)(end->waits_ns - begin->waits_ns) / 1e9,
		(double)(end->now_ns - begin->now_ns) / 1e9);
}

static int sample(struct run *r, struct uni_target *t, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, double seconds, const char *schedstat,
	struct uni_err *err)
{
	const struct uni_stream_sink sink = { .ctx = r, .sample = on_sample };
	int rc = t->ops->stream_start(t, cfg, hints, err);
	const struct host before = host_counts(schedstat);
	uint64_t end = before.now_ns + (uint64_t)(seconds * 1e9);
	struct host after;

	while (rc == 0 && uni_now_ns() < end) {
		(void)usleep(100000);
		rc = t->ops->stream_read(t, &sink);
	}
	if (rc != 0 && rc != -UNI_EGONE)
		return rc;
	(void)printf("ended %d\n", rc == -UNI_EGONE);
	after = host_counts(schedstat);
	(void)t->ops->stream_stop(t);
	print_host(&before, &after);
	(void)t->ops->stream_read(t, &sink);
	return 0;
}

int main(int argc, char **argv)
{
	struct uni_text_hint hint[TEXT_HINTS];
	struct uni_attach_opts opts = { .text = hint };
	const struct uni_unwind_hints *hints = NULL;
	struct uni_stream_cfg cfg = { 0 };
	struct run r = { 0 };
	struct uni_err err = { 0 };
	struct uni_target *t = NULL;
	struct uni_spec spec;
	struct uni_target_info info;
	int rc;

	if (argc < 6) {
		(void)fprintf(stderr,
			"usage: kvm_stream TARGET IMAGE SECONDS HZ counts|ordered [SCHEDSTAT]\n");
		return 2;
	}
	r.stack = calloc(STACKS_MAX, sizeof(*r.stack));
	cfg.frequency = strtod(argv[4], NULL);
	cfg.ordered = strcmp(argv[5], "ordered") == 0;
	rc = r.stack == NULL ? 1 : uni_image_load(argv[2], &r.image, &err);
	if (rc == 0)
		rc = uni_image_hints(r.image, 0, &hints, &err);
	if (rc == 0)
		rc = uni_spec_parse(argv[1], &spec, &err);
	if (rc == 0) {
		opts.nr_text = text_hints(r.image, hint);
		rc = uni_target_attach(&spec, &opts, &t, &err);
	}
	if (rc == 0) {
		t->ops->info(t, &info);
		(void)printf("note %s\n", info.note);
		rc = sample(&r, t, &cfg, hints, strtod(argv[3], NULL), argv[6], &err);
	}
	if (rc == 0)
		print(&r, t);
	else
		(void)fprintf(stderr, "%s\n", err.msg);
	uni_target_detach(t);
	for (size_t i = 0; i < r.nr_stacks; i++)
		free(r.stack[i].folded);
	for (size_t i = 0; i < r.nr_self; i++)
		free(r.self[i].folded);
	free(r.stack);
	uni_image_destroy(r.image);
	return rc == 0 ? 0 : 1;
}
