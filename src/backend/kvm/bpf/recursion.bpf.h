/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The middle of a deep recursion is left out without a look at each frame, as in unwind/engine.c.
 * Looks are twice as far away each time, as long as the stack looks the same there, then by halves.
 * A look is one round of the recursion: uni_frame_step() walks it, and after each frame
 * uni_leap_step() says what is next.
 */
#ifndef UNI_BACKEND_KVM_BPF_RECURSION_BPF_H
#define UNI_BACKEND_KVM_BPF_RECURSION_BPF_H

#include "backend/kvm/bpf/guest.bpf.h"

#define UNI_LEAP_MAX (1u << 24) /* rounds of a recursion */

enum {
	UNI_LEAP_NONE,	/* frames are walked for good */
	UNI_LEAP_ROUND, /* the round behind the frames that repeat */
	UNI_LEAP_TWICE, /* twice as far as before */
	UNI_LEAP_HALF,	/* between a place that was the same and one that was not */
	UNI_LEAP_LAND,	/* where the walk goes on */
};

struct uni_round {
	struct uni_bpf_scratch *s;
	u32 frames, same;
	u64 bytes;
};

/* The place of a frame in pc[]. Behind the innermost ones, the last ones stay. */
static __always_inline u32 uni_frame_place(u32 n)
{
	return n < UNI_CHAIN_INNER ? n : UNI_CHAIN_INNER + n % UNI_BPF_LAST;
}

static __always_inline u64 uni_frame_pc(const struct uni_bpf_scratch *s, u32 n)
{
	return s->pc[uni_frame_place(n) & (UNI_BPF_FRAMES - 1)];
}

static __always_inline u64 uni_frame_sp(const struct uni_bpf_scratch *s, u32 n)
{
	return s->leap.sp[n & (UNI_BPF_LAST - 1)];
}

static __always_inline void uni_walk_keep(struct uni_bpf_scratch *s, struct uni_bpf_walk *w)
{
	w->sp = s->sp;
	w->fp = s->fp;
	for (u32 i = 0; i < UNI_BPF_SAVED; i++)
		w->saved[i] = s->saved[i];
	w->fall_sp = s->fall_sp;
	w->fall_pc = s->fall_pc;
	w->falls = s->falls;
	w->has_fp = s->has_fp;
	w->has_saved = s->has_saved;
}

/* From there, `add` bytes higher: the frame at `base` is the last one. */
static __always_inline void uni_walk_from(
	struct uni_bpf_scratch *s, const struct uni_bpf_walk *w, u64 add)
{
	s->sp = w->sp + add;
	s->fp = w->fp;
	for (u32 i = 0; i < UNI_BPF_SAVED; i++)
		s->saved[i] = w->saved[i];
	s->fall_sp = w->fall_sp;
	s->fall_pc = w->fall_pc;
	s->falls = w->falls;
	s->has_sp = 1;
	s->has_fp = w->has_fp;
	s->has_saved = w->has_saved;
	s->exact = 0;
	s->nr = s->leap.base;
}

/* Is a frame the same as a round before, so many bytes higher? */
static long uni_round_frame(u32 i, struct uni_round *r)
{
	u32 at = r->s->nr - 1 - i, before = at - r->frames;

	r->same = uni_frame_pc(r->s, at) == uni_frame_pc(r->s, before) &&
		  uni_frame_sp(r->s, at) - uni_frame_sp(r->s, before) == r->bytes;
	return r->same == 0;
}

/* Do the outermost frames repeat with i + 1 frames? */
static long uni_round_try(u32 i, struct uni_round *r)
{
	u32 last = r->s->nr - 1;
	u64 before = uni_frame_sp(r->s, last - (i + 1));

	r->frames = i + 1;
	r->same = 0;
	r->bytes = uni_frame_sp(r->s, last) - before;
	if (before == 0 || r->bytes - 1 >= 0xffffffffu)
		return 0;
	bpf_loop(UNI_CHAIN_OUTER - r->frames, uni_round_frame, r, 0);
	return r->same != 0;
}

/* Walks one round from here. */
static __always_inline void uni_leap_look(struct uni_bpf_scratch *s, u32 how, u32 rounds)
{
	s->leap.how = how;
	s->leap.rounds = rounds;
	s->leap.at = 0;
	s->leap.before = s->sp;
}

/* So many rounds further out. A register that grew by a round's bytes points into the stack. */
static __always_inline void uni_leap_far(struct uni_bpf_scratch *s, u32 how, u32 rounds)
{
	struct uni_bpf_leap *l = &s->leap;
	u64 add = l->bytes * rounds;

	uni_walk_from(s, &l->end, add);
	if (l->end.fp - l->begin.fp == l->bytes)
		s->fp += add;
	else if (l->end.fp != l->begin.fp)
		s->has_fp = 0;
	for (u32 i = 0; i < UNI_BPF_SAVED; i++) {
		u64 grew = l->end.saved[i] - l->begin.saved[i];

		if (grew == l->bytes)
			s->saved[i] += add;
		else if (grew != 0)
			s->has_saved &= ~(1u << i);
	}
	uni_leap_look(s, how, rounds);
}

/* The walk goes on from the frame at which it stood, or from the last round that was looked at. */
static __always_inline void uni_leap_over(struct uni_bpf_scratch *s, bool landed)
{
	if (landed) {
		s->nr = s->leap.base;
		s->leap.since = 0;
	} else {
		uni_walk_from(s, &s->leap.begin, 0);
	}
	s->leap.how = UNI_LEAP_NONE;
	s->leap.next = s->leap.base + UNI_CHAIN_OUTER;
}

/* If the outermost frames repeat, the next round is walked. */
static __always_inline void uni_leap_begin(struct uni_bpf_scratch *s)
{
	struct uni_round r = { .s = s };
	struct uni_bpf_leap *l = &s->leap;

	l->next = s->nr + UNI_CHAIN_OUTER;
	bpf_loop(UNI_BPF_ROUND, uni_round_try, &r, 0);
	if (!r.same)
		return;
	l->base = s->nr;
	l->frames = r.frames;
	l->bytes = r.bytes;
	for (u32 i = 0; i < UNI_BPF_ROUND; i++) {
		u32 at = s->nr - r.frames + i;

		l->round_pc[i] = uni_frame_pc(s, at);
		l->round_up[i] = uni_frame_sp(s, at) - uni_frame_sp(s, at - 1);
	}
	uni_walk_keep(s, &l->begin);
	uni_leap_look(s, UNI_LEAP_ROUND, 0);
}

/* A round was the same or not: what is looked at next? The last frames are left to be walked. */
static __always_inline void uni_leap_next(struct uni_bpf_scratch *s, bool same)
{
	struct uni_bpf_leap *l = &s->leap;
	u32 rest = UNI_CHAIN_OUTER / (l->frames | (l->frames == 0)) + 1;

	if (l->how == UNI_LEAP_LAND || (l->how == UNI_LEAP_ROUND && !same)) {
		uni_leap_over(s, same);
		return;
	}
	if (l->how == UNI_LEAP_ROUND) {
		uni_walk_keep(s, &l->end);
		l->good = 0;
		l->bad = 1;
	} else if (same) {
		l->good = l->rounds;
		if (l->how == UNI_LEAP_TWICE)
			l->bad = 2 * l->rounds;
	} else {
		l->bad = l->rounds;
		l->how = UNI_LEAP_HALF;
	}
	if (l->how != UNI_LEAP_HALF && l->bad <= UNI_LEAP_MAX)
		uni_leap_far(s, UNI_LEAP_TWICE, l->bad);
	else if (l->bad - l->good > 1)
		uni_leap_far(s, UNI_LEAP_HALF, l->good + (l->bad - l->good) / 2);
	else if (l->good > rest)
		uni_leap_far(s, UNI_LEAP_LAND, l->good - rest);
	else
		uni_leap_over(s, false);
}

/* After each frame of a look, or to begin one; end: there was no frame. The chain goes on. */
__noinline int uni_leap_step(struct uni_bpf_scratch *s, u32 end)
{
	struct uni_bpf_leap *l;
	u32 i;

	if (s == NULL)
		return 0;
	l = &s->leap;
	if (l->how == UNI_LEAP_NONE) {
		uni_leap_begin(s);
		return 0;
	}
	i = l->at & (UNI_BPF_ROUND - 1);
	if (end || s->exact || !s->has_sp || s->sp - l->before != l->round_up[i] ||
		uni_frame_pc(s, s->nr - 1) != l->round_pc[i]) {
		uni_leap_next(s, false);
		return 0;
	}
	l->before = s->sp;
	l->at = i + 1;
	if (l->at >= l->frames)
		uni_leap_next(s, true);
	return 0;
}

#endif
