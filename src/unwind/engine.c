/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

#include <string.h>

#include "base/checked.h"

#define FALLS_MAX 256 /* switches to a lower stack within one chain */
#define GAPS_MAX  ((UNI_CHAIN_DEPTH - UNI_CHAIN_MAX) / UNI_CHAIN_OUTER)

#define PERIOD_MAX 32	      /* calls from a recursive function to itself */
#define LEAP_MAX   (1u << 24) /* rounds of a recursion */

struct walk {
	const struct uni_unwinder *u;
	struct uni_as *as;
	struct uni_chain *ret;
	struct uni_regs regs; /* of the frame that was found last */
	struct uni_step st;
	unsigned falls;		   /* so often a caller was on a lower stack */
	uint64_t fall_sp, fall_pc; /* such a caller */
	unsigned gaps;		   /* so often frames were left out */
	unsigned since;		   /* frames since frames were left out without a look at each */
	bool guessed;		   /* and then all later frames are guesses, too */
	bool astray;		   /* rows have named a caller where no code is */
};

static void add_stepper(struct uni_unwinder *u, const struct uni_unwinder_ops *ops)
{
	size_t i = 0;

	while (u->stepper[i].ops != NULL)
		i++;
	u->stepper[i].ops = ops;
	u->stepper[i].ctx = u;
}

static bool has_stepper(const struct uni_unwinder *u, const struct uni_unwinder_ops *ops)
{
	for (size_t i = 0; i < uni_array_len(u->stepper); i++) {
		if (u->stepper[i].ops == ops)
			return true;
	}
	return false;
}

void uni_unwinder_init(
	struct uni_unwinder *u, const struct uni_arch *arch, const struct uni_unwind_hints *hints)
{
	memset(u, 0, sizeof(*u));
	u->arch = arch;
	u->hints = hints;
	add_stepper(u, &uni_unwind_cfi);
	add_stepper(u, &uni_unwind_fp);
	add_stepper(u, &uni_unwind_scan);
}

int uni_unwinder_use(struct uni_unwinder *u, const char *names, struct uni_err *err)
{
	static const struct uni_unwinder_ops *const all[] = { &uni_unwind_cfi, &uni_unwind_fp,
		&uni_unwind_scan };
	struct uni_unwinder chosen = *u;

	memset(chosen.stepper, 0, sizeof(chosen.stepper));
	for (const char *p = names;; p++) {
		size_t len = strcspn(p, ","), i = 0;

		while (i < uni_array_len(all) &&
			(strlen(all[i]->name) != len || memcmp(all[i]->name, p, len) != 0))
			i++;
		if (i == uni_array_len(all) || has_stepper(&chosen, all[i]))
			return uni_err_set(err, UNI_EUSAGE,
				"cannot unwind by '%s': give some of cfi, fp and scan, separated "
				"by commas, each once",
				names);
		add_stepper(&chosen, all[i]);
		p += len;
		if (*p == '\0')
			break;
	}
	memcpy(u->stepper, chosen.stepper, sizeof(u->stepper));
	for (size_t i = 0; i < uni_array_len(u->stepper); i++)
		u->stepper[i].ctx = u;
	return 0;
}

/* The callee's values that are still needed when the registers are already the caller's. */
struct callee {
	uint64_t pc, sp, fp, valid;
	bool sp_valid;
};

static struct callee remember_callee(const struct walk *w)
{
	const struct uni_regs *r = &w->regs;

	return (struct callee){ r->pc, r->sp, r->r[w->u->arch->fp_reg], r->valid, r->sp_valid };
}

/* Back to the callee, for a stepper that guesses: registers that only rows know of are lost. */
static void step_back(struct walk *w, const struct callee *c)
{
	const struct uni_arch *a = w->u->arch;
	struct uni_regs *r = &w->regs;

	r->valid = c->valid & (1ull << a->fp_reg | 1ull << a->sp_reg | 1ull << a->pc_reg);
	r->r[a->fp_reg] = c->fp;
	r->r[a->sp_reg] = r->sp = c->sp;
	r->r[a->pc_reg] = r->pc = c->pc;
	r->sp_valid = c->sp_valid;
}

/*
 * May the caller be on a lower stack? A chain that runs in a circle falls at the same places again
 * and again. It meets the place that is remembered, which changes at falls 1, 2, 4, 8 (Brent).
 */
static bool stack_falls(struct walk *w, bool same)
{
	if (!w->st.elsewhere || same || w->falls == FALLS_MAX)
		return false;
	if (w->falls != 0 && w->regs.sp == w->fall_sp && w->regs.pc == w->fall_pc)
		return false;
	if ((w->falls & (w->falls - 1)) == 0) {
		w->fall_sp = w->regs.sp;
		w->fall_pc = w->regs.pc;
	}
	w->falls++;
	return true;
}

/* May the stack pointer of a caller be this one? */
static bool stack_rises(struct walk *w, const struct callee *callee, bool leaf)
{
	const struct uni_regs *caller = &w->regs;

	if (!callee->sp_valid || !caller->sp_valid || caller->sp > callee->sp)
		return true;
	/* A leaf may not have touched the stack (a return address in a register). */
	if (caller->sp == callee->sp && leaf && !w->st.exact)
		return true;
	return stack_falls(w, caller->sp == callee->sp);
}

/* Is the chain broken for this reason, so that guessing may go on? */
static bool is_broken(enum uni_stop stop)
{
	return stop == UNI_STOP_LOOP || stop == UNI_STOP_BADPTR || stop == UNI_STOP_BADPC ||
	       stop == UNI_STOP_FAULT || stop == UNI_STOP_NOREGS;
}

/* An address in the function that the current frame called; 0: there is none. */
static uint64_t callee_pc(const struct uni_chain *c)
{
	unsigned i = c->nr - 2u;

	if (c->nr < 2)
		return 0;
	return (c->flags[i] & UNI_FRAME_EXACT) != 0 ? c->pc[i] : c->pc[i] - 1;
}

/* One frame up with the first stepper that can do it. 1: the chain ends. */
static int step_walk(struct walk *w)
{
	const struct uni_step in = {
		.leaf = w->st.exact, .guessed = w->guessed, .callee = callee_pc(w->ret)
	};
	const struct uni_unwinder *u = w->u;
	enum uni_stop stop = UNI_STOP_NR;

	for (size_t i = 0; i < uni_array_len(u->stepper) && u->stepper[i].ops != NULL; i++) {
		const struct uni_unwinder_ops *ops = u->stepper[i].ops;
		struct callee callee = remember_callee(w);
		int rc;

		if (stop != UNI_STOP_NR && !ops->guesses)
			continue;
		w->st = in;
		rc = ops->step(u->stepper[i].ctx, w->as, &w->regs, &w->st);
		if (rc == -UNI_ENOTSUP)
			continue;
		if (rc == 0 && stack_rises(w, &callee, in.leaf)) {
			w->guessed |= w->st.guess;
			return 0;
		}
		if (rc == 0)
			step_back(w, &callee);
		stop = rc == 0 ? UNI_STOP_LOOP : w->st.stop;
		w->astray |= stop == UNI_STOP_BADPC && ops->knows;
		/* A scan of this stack could not find a caller on another one. */
		if (!is_broken(stop) || (rc != 0 && w->st.elsewhere))
			break;
	}
	w->st.stop =
		stop != UNI_STOP_NR ? stop : UNI_STOP_BADPC; /* no stepper can unwind this code */
	return 1;
}

/* Runs the first stepper's run() as far as it goes. */
static void run_stepper(struct walk *w, uint16_t max)
{
	const struct uni_unwinder_ops *ops = w->u->stepper[0].ops;

	if (ops != NULL && ops->run != NULL && !w->guessed)
		ops->run(w->u->stepper[0].ctx, w->as, &w->regs, &w->st, w->ret, max);
}

int uni_unwind_begin(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs)
{
	struct uni_pt_root root;
	int rc;

	if (uni_gmem_space(uni_as_gmem(as)) == UNI_GMEM_VIRTUAL) {
		uni_as_begin(as, NULL);
		return 0;
	}
	rc = u->arch->paging(regs, &root);
	if (rc == 0)
		uni_as_begin(as, &root);
	return rc;
}

/* Appends a frame made from the walk's registers and its last step. */
static void append_frame(struct walk *w)
{
	struct uni_chain *c = w->ret;

	c->pc[c->nr] = w->u->arch->strip(&w->regs, w->regs.pc);
	c->sp[c->nr] = w->regs.sp_valid ? w->regs.sp : 0;
	c->flags[c->nr] =
		(uint8_t)((w->st.exact ? UNI_FRAME_EXACT : 0) | (w->guessed ? UNI_FRAME_GUESS : 0));
	c->nr++;
}

/* Below a process's own frames: the system call that it was in. */
static void append_kernel(struct uni_chain *c)
{
	c->pc[0] = c->sp[0] = 0;
	c->flags[0] = UNI_FRAME_KERNEL | UNI_FRAME_EXACT;
	c->nr = 1;
}

/* Starts with the pc only. False if even the pc is not known. */
static bool start_chain(struct walk *w)
{
	w->ret->nr = 0;
	w->ret->stop = UNI_STOP_NOREGS;
	w->ret->top_sp = w->regs.sp;
	if (w->regs.in_kernel)
		append_kernel(w->ret);
	if (w->regs.pc_valid)
		append_frame(w);
	return w->regs.pc_valid;
}

/* Leaves out frames behind the innermost ones; so many of the outermost ones stay. */
static void drop_frames(struct uni_chain *c, uint16_t keep)
{
	uint16_t from = (uint16_t)(c->nr - keep), to = UNI_CHAIN_INNER;

	memmove(&c->pc[to], &c->pc[from], keep * sizeof(c->pc[0]));
	memmove(&c->sp[to], &c->sp[from], keep * sizeof(c->sp[0]));
	memmove(&c->flags[to], &c->flags[from], keep);
	c->flags[to] |= UNI_FRAME_GAP;
	c->nr = (uint16_t)(to + keep);
}

/* Is there room for a further frame? */
static bool make_room(struct walk *w, uint16_t max)
{
	if (w->ret->nr < max)
		return true;
	if (max < UNI_CHAIN_MAX || w->gaps == GAPS_MAX)
		return false;
	drop_frames(w->ret, UNI_CHAIN_OUTER);
	w->gaps++;
	return true;
}

/* So many frames and bytes of stack are one round of a recursion. */
struct round {
	unsigned frames;
	uint64_t bytes;
	struct uni_regs regs[2]; /* a round's begin and its end */
};

/* Is frame i the same as a round before, so many bytes higher? */
static bool is_repeated(const struct uni_chain *c, unsigned i, const struct round *r)
{
	unsigned before = i - r->frames;

	return c->pc[i] == c->pc[before] && c->sp[i] - c->sp[before] == r->bytes &&
	       c->flags[i] == 0;
}

/* Do the outermost frames repeat with this number of frames? */
static bool is_round(const struct uni_chain *c, struct round *r, unsigned frames)
{
	unsigned last = c->nr - 1u;

	r->frames = frames;
	r->bytes = c->sp[last] - c->sp[last - frames];
	if (r->bytes - 1 >= UINT32_MAX || c->sp[last - frames] == 0)
		return false;
	for (unsigned i = 0; i < UNI_CHAIN_OUTER - frames; i++) {
		if (!is_repeated(c, last - i, r))
			return false;
	}
	return true;
}

/* From regs, one round of steps must meet the same frames again. Then regs are at its end. */
static bool walk_round(const struct walk *from, const struct round *r, struct uni_regs *regs)
{
	const struct uni_chain *c = from->ret;
	struct walk w = *from;

	w.regs = *regs;
	for (unsigned i = 0; i < r->frames; i++) {
		uint64_t sp = w.regs.sp;
		unsigned at = c->nr - r->frames + i, before = at - 1;

		if (step_walk(&w) != 0 || w.guessed || w.st.exact ||
			c->pc[at] != w.u->arch->strip(&w.regs, w.regs.pc) ||
			w.regs.sp - sp != c->sp[at] - c->sp[before])
			return false;
	}
	*regs = w.regs;
	return true;
}

/* So many rounds further out. A register that grew by a round's bytes points into the stack. */
static bool leap_rounds(
	const struct walk *w, const struct round *r, uint64_t rounds, struct uni_regs *ret)
{
	uint64_t add = r->bytes * rounds;

	*ret = r->regs[1];
	for (unsigned i = 0; i < UNI_REG_MAX; i++) {
		uint64_t grew = ret->r[i] - r->regs[0].r[i];

		if (grew == r->bytes)
			ret->r[i] += add;
		else if (grew != 0)
			ret->valid &= ~(1ull << i);
	}
	ret->sp += add;
	uni_regs_set(ret, w->u->arch->sp_reg, ret->sp);
	uni_regs_set(ret, w->u->arch->pc_reg, ret->pc);
	return walk_round(w, r, ret);
}

/*
 * Leaves out rounds of a recursion without a look at each: twice as far as long as the stack looks
 * the same there, then halves. The last frames are left to be walked.
 */
static void leap_recursion(struct walk *w)
{
	uint64_t good = 0, bad = 1;
	struct uni_regs regs;
	struct round r;
	unsigned n = 1;

	while (n <= PERIOD_MAX && !is_round(w->ret, &r, n))
		n++;
	if (n > PERIOD_MAX || w->guessed)
		return;
	r.regs[0] = r.regs[1] = w->regs;
	if (!walk_round(w, &r, &r.regs[1]))
		return;
	while (bad <= LEAP_MAX && leap_rounds(w, &r, bad, &regs)) {
		good = bad;
		bad *= 2;
	}
	while (bad - good > 1) {
		uint64_t mid = good + (bad - good) / 2;

		if (leap_rounds(w, &r, mid, &regs))
			good = mid;
		else
			bad = mid;
	}
	n = UNI_CHAIN_OUTER / r.frames + 1;
	if (good > n && leap_rounds(w, &r, good - n, &regs)) {
		w->regs = regs;
		w->since = 0;
	}
}

void uni_unwind_go(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret)
{
	struct walk w = { .u = u,
		.as = as,
		.ret = ret,
		.regs = *regs,
		.st.exact = true,
		.since = UNI_CHAIN_OUTER };
	uint16_t max = u->max_frames;

	if (max == 0 || max > UNI_CHAIN_MAX)
		max = UNI_CHAIN_MAX;
	if (!start_chain(&w))
		return;
	for (;;) {
		uint16_t before = ret->nr;

		run_stepper(&w, max);
		w.since += ret->nr - before;
		if (step_walk(&w) != 0)
			break;
		if (!make_room(&w, max)) {
			w.st.stop = UNI_STOP_LIMIT;
			break;
		}
		append_frame(&w);
		w.since++;
		if (w.gaps != 0 && ret->nr == UNI_CHAIN_INNER + UNI_CHAIN_OUTER + 1)
			leap_recursion(&w);
	}
	if (w.gaps != 0 && ret->nr > UNI_CHAIN_INNER + UNI_CHAIN_OUTER)
		drop_frames(ret, uni_min(w.since, (unsigned)UNI_CHAIN_OUTER));
	/* Guesses led to the root, but the way there is not known. */
	if (w.astray && w.st.stop == UNI_STOP_ROOT)
		w.st.stop = UNI_STOP_BADPC;
	ret->stop = (uint8_t)w.st.stop;
	ret->top_sp = w.regs.sp;
}

/* Without page tables, the chain has the pc only. */
static void unwind_blind(
	const struct uni_unwinder *u, const struct uni_regs *regs, struct uni_chain *ret)
{
	struct walk w = { .u = u, .ret = ret, .regs = *regs, .st.exact = true };

	(void)start_chain(&w);
}

void uni_unwind(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret)
{
	if (regs->pc_valid && uni_unwind_begin(u, as, regs) == 0)
		uni_unwind_go(u, as, regs, ret);
	else
		unwind_blind(u, regs, ret);
}
