/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oracle_chains TARGET IMAGE SAMPLES [LEAST [time]]: holds the guest so many times, a little
 * irregularly, and unwinds each stack twice. We unwind it, and elfutils' libdwfl does from the same
 * registers and memory. Prints the result. Returns 0 if no chain is longer than libdwfl's or
 * different from it. At least LEAST per cent (99) must be equal to it and reach the root. With
 * `time` also what a frame costs both, the memory being at hand.
 */
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/clock.h"
#include "obj/image.h"
#include "backend/target.h"
#include "unwind/unwind.h"

#define SHOWN	    5
#define TIMED_MAX   10000u
#define TIMED_TURNS 16u
#define LOOKUPS	    2000000u

struct oracle {
	struct uni_target *t;
	struct uni_image *img;
	const struct uni_unwind_hints *hints;
	struct uni_unwinder u;
	struct uni_as *as;
	Dwfl *dwfl;
	struct uni_regs regs[UNI_VCPU_MAX];
	const struct uni_regs *cur; /* whose stack is unwound */
	struct uni_chain ours, theirs;
	unsigned long same, complete, shorter, longer, different, frames, rowless;
	unsigned shown;
	bool timed;
	size_t nr_timed;
	double our_ns[TIMED_MAX], their_ns[TIMED_MAX]; /* a frame */
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg != NULL)
		return 0;
	*thread_arg = arg;
	return 1;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	struct oracle *o = arg;
	uint64_t v;

	if (uni_as_read_u64(o->as, uni_gva_of(addr), &v) != 0)
		return false;
	*ret = v;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct oracle *o = arg;
	const struct uni_arch *a = o->u.arch;
	Dwarf_Word r[UNI_REG_MAX];
	bool own_pc = a == &uni_arch_aarch64; /* libdwfl keeps it apart from the registers */

	for (unsigned i = 0; i < a->nr_regs; i++)
		r[i] = o->cur->r[i];
	r[a->sp_reg] = o->cur->sp;
	r[a->pc_reg] = o->cur->pc;
	if (own_pc)
		dwfl_thread_state_register_pc(thread, o->cur->pc);
	return dwfl_thread_state_registers(thread, 0, a->nr_regs - own_pc, r);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct uni_chain *c = arg;
	Dwarf_Addr pc;
	bool exact;

	if (c->nr == UNI_CHAIN_MAX || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	c->flags[c->nr] = exact ? UNI_FRAME_EXACT : 0;
	c->pc[c->nr++] = pc;
	return DWARF_CB_OK;
}

static int each_thread(Dwfl_Thread *thread, void *arg)
{
	struct oracle *o = arg;

	/* An error is an end: the frames before it count. */
	(void)dwfl_thread_getframes(thread, add_frame, &o->theirs);
	return DWARF_CB_OK;
}

static bool open_dwfl(struct oracle *o, const char *path)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo };
	bool ok;

	o->dwfl = dwfl_begin(&callbacks);
	if (o->dwfl == NULL)
		return false;
	dwfl_report_begin(o->dwfl);
	ok = dwfl_report_elf(o->dwfl, "guest", path, -1, 0, false) != NULL &&
	     dwfl_report_end(o->dwfl, NULL, NULL) == 0 &&
	     dwfl_attach_state(o->dwfl, NULL, 1, &thread_callbacks, o);
	if (!ok)
		fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
	return ok;
}

static void show(const char *who, const struct oracle *o, const struct uni_chain *c)
{
	printf("# %-7s %3u", who, c->nr);
	for (unsigned i = 0; i < uni_min(c->nr, 12); i++) {
		const struct uni_symbol *s =
			uni_image_lookup(o->img, c->pc[i] - ((c->flags[i] & UNI_FRAME_EXACT) == 0));

		printf(" %s%s", s != NULL ? uni_image_sym_name(o->img, s) : "?",
			(c->flags[i] & UNI_FRAME_EXACT) != 0 ? "*" : "");
	}
	printf("\n");
}

/*
 * libdwfl takes the pc of an interrupt's own frame for exact, too, though it is that of a call. The
 * interrupted pc must be exact on both sides.
 */
static bool same_frames(const struct uni_chain *a, const struct uni_chain *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (a->pc[i] != b->pc[i] || (a->flags[i] & ~b->flags[i]) != 0)
			return false;
		if (i > 0 && (b->flags[i] & ~a->flags[i]) != 0 &&
			(i + 1 == b->nr || b->flags[i + 1] == 0))
			return false;
	}
	return true;
}

static bool judge(struct oracle *o)
{
	const struct uni_chain *a = &o->ours, *b = &o->theirs;
	unsigned n = uni_min(a->nr, b->nr);

	o->frames += a->nr;
	if (!same_frames(a, b, n)) {
		o->different++;
		return false;
	}
	o->longer += a->nr > b->nr;
	o->shorter += a->nr < b->nr;
	o->same += a->nr == b->nr;
	o->complete += a->nr == b->nr && a->stop == UNI_STOP_ROOT;
	return a->nr == b->nr && a->stop == UNI_STOP_ROOT;
}

/* Both once more, with everything in our cache. */
static void measure(struct oracle *o, const struct uni_regs *regs)
{
	uint64_t t = uni_now_ns();

	if (o->nr_timed == TIMED_MAX || o->ours.nr == 0)
		return;
	for (unsigned i = 0; i < TIMED_TURNS; i++)
		uni_unwind_go(&o->u, o->as, regs, &o->ours);
	o->our_ns[o->nr_timed] = (double)(uni_now_ns() - t) / TIMED_TURNS / o->ours.nr;
	o->theirs.nr = 0;
	t = uni_now_ns();
	(void)dwfl_getthreads(o->dwfl, each_thread, o);
	o->their_ns[o->nr_timed++] =
		(double)(uni_now_ns() - t) / (o->theirs.nr != 0 ? o->theirs.nr : 1);
}

/*
 * An interrupt that has just begun, in the vectors of aarch64, has no row: a system register has
 * the pc that it came from. libdwfl has its own idea of frame pointers, which is no judge.
 */
static bool has_no_row(const struct oracle *o, const struct uni_regs *regs)
{
	return o->u.arch == &uni_arch_aarch64 && uni_cfi_find(o->hints->cfi, regs->pc) == NULL;
}

static void compare(struct oracle *o, const struct uni_regs *regs)
{
	if (has_no_row(o, regs)) {
		o->rowless++;
		return;
	}
	o->cur = regs;
	o->theirs.nr = 0;
	uni_unwind(&o->u, o->as, regs, &o->ours); /* leaves the space rooted for libdwfl */
	(void)dwfl_getthreads(o->dwfl, each_thread, o);
	if (o->timed)
		measure(o, regs);
	if (judge(o) || o->shown++ >= SHOWN)
		return;
	printf("# pc 0x%llx, stop %s\n", (unsigned long long)regs->pc, uni_stop_name(o->ours.stop));
	show("ours", o, &o->ours);
	show("libdwfl", o, &o->theirs);
}

static bool sample(struct oracle *o)
{
	int nr = o->t->ops->nr_vcpus(o->t);
	const struct uni_vcpuset all = uni_vcpuset_first((uint32_t)nr);
	int rc = o->t->ops->snap(o->t, &all, o->regs, UNI_SNAP_HOLD);

	if (rc == -UNI_EAGAIN)
		return true;
	if (rc != 0) {
		fprintf(stderr, "no registers: %s\n", uni_strerror(rc));
		return false;
	}
	for (int i = 0; i < nr; i++) {
		if (o->regs[i].pc_valid && o->regs[i].state != UNI_VCPU_OFFLINE)
			compare(o, &o->regs[i]);
	}
	return o->t->ops->release == NULL || o->t->ops->release(o->t) == 0;
}

static bool open_guest(struct oracle *o, const char *target, const char *path, struct uni_err *err)
{
	static const struct uni_as_budget budget = { .bytes = 64u << 20, .table_loads = 1u << 20 };
	struct uni_text_hint text[8];
	struct uni_attach_opts opts = { .text = text };
	struct uni_spec spec;

	if (uni_image_load(path, &o->img, err) != 0 ||
		uni_image_hints(o->img, 0, &o->hints, err) != 0 ||
		uni_spec_parse(target, &spec, err) != 0)
		return false;
	opts.arch = uni_image_arch(o->img);
	for (size_t i = 0; i < uni_image_nr_segments(o->img) && opts.nr_text < 8; i++) {
		const struct uni_segment *s = uni_image_segment(o->img, i);

		if (!s->write && s->file_size != 0)
			text[opts.nr_text++] = (struct uni_text_hint){ s->vaddr, s->paddr, s->bytes,
				s->file_size, s->exec };
	}
	if (uni_target_attach(&spec, &opts, &o->t, err) != 0)
		return false;
	uni_unwinder_init(&o->u, opts.arch, o->hints);
	return uni_as_create(o->t->ops->gmem(o->t), &budget, &o->as, err) == 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t nr)
{
	qsort(v, nr, sizeof(*v), by_value);
	return nr != 0 ? v[nr / 2] : 0;
}

/* Million lookups a second of addresses all over the code. */
static double lookup_rate(const struct uni_cfi_table *t)
{
	uint64_t begin = uni_now_ns(), pc = 0, found = 0, ns;

	for (unsigned i = 0; i < LOOKUPS; i++) {
		pc = pc * 6364136223846793005ull + 1442695040888963407ull;
		found += uni_cfi_find(t, t->base + (pc >> 32) % t->size) != NULL;
	}
	ns = uni_now_ns() - begin;
	return found != 0 && ns != 0 ? LOOKUPS * 1e3 / (double)ns : 0;
}

static void report_times(struct oracle *o)
{
	printf("a frame, median: %.0f ns, libdwfl %.0f ns; ", median(o->our_ns, o->nr_timed),
		median(o->their_ns, o->nr_timed));
	printf("%.1f million lookups a second in %u rows\n", lookup_rate(o->hints->cfi),
		o->hints->cfi->nr_rows);
}

static int report(const struct oracle *o, double least)
{
	unsigned long all = o->same + o->shorter + o->longer + o->different;

	printf("%lu chains of %.1f frames: %lu equal, %lu of them complete (%.2f %%); %lu shorter, "
	       "%lu longer, %lu different; %lu of no row left out\n",
		all, all != 0 ? (double)o->frames / (double)all : 0.0, o->same, o->complete,
		all != 0 ? 100.0 * (double)o->complete / (double)all : 0.0, o->shorter, o->longer,
		o->different, o->rowless);
	return all <= o->rowless || o->longer != 0 || o->different != 0 ||
	       (double)o->complete * 100.0 < least * (double)all;
}

int main(int argc, char **argv)
{
	struct oracle *o = calloc(1, sizeof(*o));
	struct uni_err err = { 0 };
	bool ok;

	if (argc < 4 || o == NULL) {
		fprintf(stderr, "usage: oracle_chains TARGET IMAGE SAMPLES [LEAST [time]]\n");
		return 2;
	}
	o->timed = argc > 5 && strcmp(argv[5], "time") == 0;
	ok = open_guest(o, argv[1], argv[2], &err) && open_dwfl(o, argv[2]);
	for (long i = strtol(argv[3], NULL, 10); ok && i > 0; i--) {
		struct timespec ts = uni_ns_timespec((uint64_t)(i % 7 + 1) * 311000);

		ok = sample(o);
		(void)nanosleep(&ts, NULL);
	}
	if (!ok && err.code != 0)
		fprintf(stderr, "%s\n", err.msg);
	if (ok && o->timed && o->hints->cfi != NULL)
		report_times(o);
	uni_target_detach(o->t);
	dwfl_end(o->dwfl);
	uni_as_destroy(o->as);
	uni_image_destroy(o->img);
	ok = ok && report(o, argc > 4 ? strtod(argv[4], NULL) : 99.0) == 0;
	free(o);
	return ok ? 0 : 1;
}
