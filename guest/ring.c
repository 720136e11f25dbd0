/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of sub-buffers, one for each CPU.
 *
 * A writer reserves by moving wptr, writes, and subtracts its bytes from the sub-buffer's
 * open_bytes. The swap of wptr is unlocked; the time is read after wptr, so that times never
 * decrease. Interrupts may nest at any instruction. Whoever makes open_bytes 0 closes the
 * sub-buffer. That is only possible after its last byte was reserved: the writer that moves on to
 * the next sub-buffer subtracts the bytes that stay unused.
 *
 * The next sub-buffer is made ready one ahead, so that moving on is one swap as well. Events are
 * lost, and counted, only if an interrupt fills a whole sub-buffer while the interrupted code makes
 * the next one ready. A sub-buffer is skipped if a record of the round before is still unwritten in
 * it: its thread was set aside in the middle. */
#include "uniscope/trace.h"

#include "cpu.h"
#include "machine.h"
#include "ring.h"

#define MAX_CPUS 256
#define SUB_MASK ((uint64_t)UNI_TRACE_SUB_SIZE - 1)

static struct uni_trace_ring rings[MAX_CPUS];

/* In the file, not in .bss: `trace prepare --on` changes the control there. */
struct uni_trace_head uni_trace_head __attribute__((aligned(64), section(".data")));

#ifndef UNI_TRACE_GS
struct uni_trace_cpu uni_trace_cpu0 = UNI_TRACE_AREA(&uni_trace_cpu0);
#endif

/* CPUs can share it, because its fields that are read never change. */
struct uni_trace_cpu uni_trace_early = UNI_TRACE_AREA(&uni_trace_early);

static int is_ready;		       /* uni_trace_init() was called */
static struct uni_trace_cpu *boot_cpu; /* it has a ring since before that */

static struct uni_trace_sub *sub_of(uint64_t wptr)
{
	return (struct uni_trace_sub *)(wptr & ~SUB_MASK);
}

/* Returns a sub-buffer that can be written from now on, or 0: a sub-buffer with an unwritten record
 * is skipped. */
static uint64_t make_ready(struct uni_trace_cpu *c, uint64_t seq)
{
	const struct uni_trace_ring *r = &rings[c->cpu];

	if (uni_trace_head.ring_mode == UNI_TRACE_STOP && seq > r->nr_subs)
		return 0;
	for (uint64_t i = 0; i < r->nr_subs - 1; i++, seq++) {
		struct uni_trace_sub *s =
			(struct uni_trace_sub *)(r->base + seq % r->nr_subs * UNI_TRACE_SUB_SIZE);

		if (s->begin_seq && s->open_bytes)
			continue;
		s->begin_seq = 0;
		uni_machine_release();
		s->ts_begin = uni_machine_time(); /* until it is known better */
		s->ts_end = 0;
		s->content_size = UNI_TRACE_SUB_HEAD * 8;
		s->packet_seq = seq;
		s->words_before = s->extra_before = s->extra_after = 0;
		s->gaps = 0;
		s->lost = c->lost;
		s->open_bytes = -(UNI_TRACE_SUB_SIZE - UNI_TRACE_SUB_HEAD);
		uni_machine_release();
		s->begin_seq = seq;
		return (uint64_t)s;
	}
	return 0;
}

void uni_trace_close(struct uni_trace_sub *s)
{
	uni_machine_release();
	s->end_seq = s->begin_seq;
}

void uni_trace_written(uint64_t at, int32_t bytes)
{
	struct uni_trace_sub *s = sub_of(at);

	if (uni_machine_add(&s->open_bytes, bytes))
		uni_trace_close(s);
}

/* The ring is full from now on, wherever it is. Interrupts may still write until that is done. */
static void freeze(struct uni_trace_cpu *c)
{
	uint64_t wptr;

	if (c->frozen)
		return;
	do {
		wptr = *(volatile uint64_t *)&c->wptr;
		*(volatile uint64_t *)&c->frozen = wptr;
	} while (!uni_machine_swap(&c->wptr, wptr, wptr | (SUB_MASK - 7)));
}

static int thaw(struct uni_trace_cpu *c)
{
	uint64_t wptr = c->frozen, after;

	if (!wptr)
		return 0;
	after = rings[c->cpu].after_freeze;
	uni_machine_fetch_add(&c->lost, after);
	uni_machine_fetch_add(&rings[c->cpu].after_freeze, -after); /* an interrupt may count */
	*(volatile uint64_t *)&c->wptr = wptr;
	*(volatile uint64_t *)&c->frozen = 0;
	return 1;
}

/* From begin to end nothing freezes or thaws this CPU's ring: an interrupt leaves that to the code
 * that it interrupted. */
static uint32_t hold_begin(struct uni_trace_cpu *c)
{
	uint32_t was = *(volatile uint32_t *)&c->held;

	*(volatile uint32_t *)&c->held = 1;
	uni_machine_release();
	return was;
}

static void hold_end(struct uni_trace_cpu *c, uint32_t was)
{
	uni_machine_release();
	*(volatile uint32_t *)&c->held = was;
	uni_machine_release();
}

/* Stops the CPU's ring, or lets it go on, as the head says. Only this CPU calls it. */
static void settle(struct uni_trace_cpu *c)
{
	const volatile uint32_t *frozen = &uni_trace_head.frozen;
	uint32_t want;

	if (*(volatile uint32_t *)&c->held)
		return;
	do {
		hold_begin(c);
		want = *frozen;
		if (want)
			freeze(c);
		else if (thaw(c))
			*(volatile uint32_t *)&c->hi = ~0u; /* the SYNC found no room */
		hold_end(c, 0);
	} while (*frozen != want);
}

/* The session is read first. So the sub-buffer may name a session that has just ended, but never
 * one that its first record does not belong to. */
static uint64_t told_by_sub(void)
{
	uint32_t session = *(volatile uint32_t *)&uni_trace_head.control.session;

	return UNI_TRACE_SUB_GAPS(*(volatile uint32_t *)&uni_trace_head.control.gaps, session);
}

static int next_sub(struct uni_trace_cpu *c, uint64_t wptr)
{
	struct uni_trace_sub *old = sub_of(wptr);
	struct uni_trace_sub *next = (struct uni_trace_sub *)c->next;
	uint64_t now = uni_machine_time(); /* after wptr was read: no record in old is later */
	uint64_t gaps = told_by_sub();

	if (*(volatile uint64_t *)&c->wptr != wptr)
		return 1;
	if (c->frozen || !next || next->begin_seq <= old->begin_seq)
		return 0;
	if (!uni_machine_swap(&c->wptr, wptr, (uint64_t)next + UNI_TRACE_SUB_HEAD))
		return 1;
	c->next = 0;
	next->ts_begin = now;
	next->words_before = old->words_before + ((wptr & SUB_MASK) - UNI_TRACE_SUB_HEAD) / 8;
	uni_machine_fetch_add(&next->extra_before,
		old->extra_before + uni_machine_fetch_add(&old->extra_after, UNI_TRACE_EXTRA_GONE));
	next->gaps = gaps;
	old->ts_end = now;
	old->content_size = (wptr & SUB_MASK) * 8;
	old->lost = c->lost;
	uni_machine_release();
	uni_trace_written(wptr, UNI_TRACE_SUB_SIZE - (int32_t)(wptr & SUB_MASK));
	c->next = make_ready(c, next->begin_seq + 1);
	return 1;
}

/* The ring goes on behind `wptr`, whose sub-buffer has no room for the next record. Returns whether
 * it is worth another try. */
static int move_on(struct uni_trace_cpu *c, uint64_t wptr)
{
	uint32_t was;
	int again;

	if (!is_ready && uni_trace_boot && uni_trace_boot(c))
		return 1;
	was = hold_begin(c);
	again = next_sub(c, wptr);

	hold_end(c, was);
	settle(c);
	return again;
}

static void tell_time(struct uni_trace_cpu *c);

/* Counts the words where the record lies; that sub-buffer cannot be closed before the record is
 * written. If an interrupt moved the ring on since, the sub-buffer that is written now began
 * without them. */
void uni_trace_extra(struct uni_trace_cpu *c, uint64_t at, uint64_t extra)
{
	if (uni_machine_fetch_add(&sub_of(at)->extra_after, extra) & UNI_TRACE_EXTRA_GONE)
		uni_machine_fetch_add(&sub_of(*(volatile uint64_t *)&c->wptr)->extra_before, extra);
}

/* Reserves `bytes`, and reads the time; returns 0 if there is no room. */
static uint64_t reserve(struct uni_trace_cpu *c, uint64_t bytes, uint64_t *now_ret, int any_time)
{
	for (;;) {
		uint64_t wptr = *(volatile uint64_t *)&c->wptr;

		*now_ret = uni_machine_time();
		if (!any_time && *(volatile uint32_t *)&c->hi != *now_ret >> 32)
			tell_time(c);
		else if ((wptr & SUB_MASK) + bytes <= SUB_MASK - 7) {
			if (uni_machine_swap(&c->wptr, wptr, wptr + bytes))
				return wptr;
		} else if (!move_on(c, wptr)) {
			if (!any_time)
				uni_machine_count(
					c->frozen ? &rings[c->cpu].after_freeze : &c->lost);
			return 0;
		}
	}
}

static int write(
	struct uni_trace_cpu *c, uint64_t first, const uint64_t *words, unsigned nr, int any_time)
{
	uint64_t bytes = 8 + (uint64_t)nr * 8;
	uint64_t now, at = reserve(c, bytes, &now, any_time);
	uint64_t *to = (uint64_t *)at;

	if (!at)
		return -1;
	if (nr)
		uni_trace_extra(c, at, nr + (any_time != 0)); /* a SYNC is no event */
	for (unsigned i = 0; i < nr; i++)
		to[1 + i] = words[i];
	to[0] = (uint32_t)now | first << 32;
	uni_machine_release();
	uni_trace_written(at, (int32_t)bytes);
	return 0;
}

/* Texts may change meanwhile: each byte is read once. */
static uint64_t *put_piece(uint64_t *to, const struct uni_trace_piece *p)
{
	const volatile uint8_t *from = p->from;
	uint64_t word = 0;

	if ((uint64_t)p->from % 8 == 0 && p->bytes % 8 == 0) {
		for (uint32_t i = 0; i < p->bytes / 8; i++)
			*to++ = ((const volatile uint64_t *)p->from)[i];
		return to;
	}
	for (uint32_t i = 0; i < p->bytes; i++) {
		word |= (uint64_t)from[i] << i % 8 * 8;
		if (i % 8 == 7 || i + 1 == p->bytes) {
			*to++ = word;
			word = 0;
		}
	}
	return to;
}

int uni_trace_write_pieces(
	struct uni_trace_cpu *c, unsigned class, const struct uni_trace_piece *piece, unsigned nr)
{
	uint64_t words = 0, now, at, *to;

	for (unsigned i = 0; i < nr; i++)
		words += (piece[i].bytes + 7) / 8;
	at = reserve(c, 8 + words * 8, &now, 0);
	to = (uint64_t *)at + 1;
	if (!at)
		return -1;
	uni_trace_extra(c, at, words);
	for (unsigned i = 0; i < nr; i++)
		to = put_piece(to, &piece[i]);
	*(uint64_t *)at = (uint32_t)now | (UNI_TRACE_EXT | words << 4 | (uint64_t) class << 16)
						  << 32;
	uni_machine_release();
	uni_trace_written(at, (int32_t)(8 + words * 8));
	return 0;
}

/* The last word of a SYNC record. */
static uint64_t told_with_time(void)
{
	const volatile struct uni_trace_control *control = &uni_trace_head.control;
	uint32_t session = control->session, gaps = control->gaps;

	return UNI_TRACE_SYNC_WORD(gaps, session, *(volatile uint32_t *)&uni_trace_head.epoch);
}

/* The upper half of the time has changed: a SYNC with the whole time comes before any record with
 * the new half. An interrupt in between writes one, too. Or another CPU has set `hi` to get here:
 * this ring has to stop or go on, or there was a gap. */
static void tell_time(struct uni_trace_cpu *c)
{
	uint64_t now = uni_machine_time();
	uint64_t words[2] = { now, told_with_time() };
	uint64_t frozen = c->frozen;

	/* A frozen ring had no room for it. If the ring goes on since, the SYNC still has to be
	 * written. */
	if (write(c, (uint64_t)UNI_TRACE_SYNC | 2 << 4, words, 2, 1) && frozen &&
		!*(volatile uint64_t *)&c->frozen)
		return;
	*(volatile uint32_t *)&c->hi = (uint32_t)(now >> 32);
	uni_machine_full();
	/* A CPU that changed it meanwhile may have set `hi` before it was set here. */
	if (told_with_time() != words[1])
		*(volatile uint32_t *)&c->hi = ~0u;
	settle(c);
}

int uni_trace_write(struct uni_trace_cpu *c, uint64_t first, const uint64_t *words, unsigned nr)
{
	return write(c, first, words, nr, 0);
}

/* A kernel may call these functions early: before init() its area is empty. */
static struct uni_trace_cpu *ready_cpu(void)
{
	struct uni_trace_cpu *c = uni_trace_this_cpu();

	return c && c->self ? c : (void *)0;
}

int uni_trace_event(unsigned class, const uint64_t *words, unsigned nr)
{
	struct uni_trace_cpu *c = ready_cpu();

	if (!c || nr > UNI_TRACE_MAX_WORDS || class > 0xffff)
		return -1;
	return uni_trace_write(
		c, UNI_TRACE_EXT | (uint64_t)nr << 4 | (uint64_t) class << 16, words, nr);
}

void uni_trace_switch(uint64_t prev, uint64_t next, uint32_t reason)
{
	uint64_t words[3] = { prev, next, reason };

	uni_trace_event(UNI_TRACE_CLASS_SWITCH, words, 3);
}

void uni_trace_switch_over(uint64_t prev, uint64_t next, uint32_t reason)
{
	uint64_t words[3] = { prev, next, reason | (uint64_t)UNI_TRACE_OVER << 32 };

	uni_trace_event(UNI_TRACE_CLASS_SWITCH, words, 3);
}

void uni_trace_ask_all(void)
{
	for (unsigned i = 0; i < uni_trace_head.nr_cpus; i++)
		((volatile struct uni_trace_cpu *)rings[i].cpu)->hi = ~0u;
}

void uni_trace_settle_all(void)
{
	settle(uni_trace_this_cpu());
	uni_trace_ask_all();
}

void uni_trace_freeze(void)
{
	uni_trace_head.frozen = 1;
	uni_trace_settle_all();
}

void uni_trace_thaw(void)
{
	uni_trace_head.frozen = 0;
	uni_trace_settle_all();
}

void uni_trace_new_epoch(void)
{
	uni_trace_head.epoch++;
	uni_trace_ask_all();
}

uint64_t uni_trace_ring_size(uint64_t size, unsigned nr_cpus)
{
	return nr_cpus ? (size / nr_cpus) & ~SUB_MASK : 0;
}

void uni_trace_enable(int on)
{
	volatile uint32_t *enable = &uni_trace_head.control.enable;

	if (on && !*enable) {
		(*(volatile uint32_t *)&uni_trace_head.control.gaps)++;
		uni_trace_ask_all();
	}
	*enable = on != 0;
}

void uni_trace_set_mode(unsigned mode)
{
	*(volatile uint32_t *)&uni_trace_head.control.mode = mode;
}

void uni_trace_set_min_time(uint32_t cycles)
{
	*(volatile uint32_t *)&uni_trace_head.control.min_time = cycles;
}

void uni_trace_set_max_depth(uint32_t calls)
{
	volatile struct uni_trace_control *c = &uni_trace_head.control;

	c->max_depth = 0;
	c->run++;
	c->max_depth = calls;
}

uint64_t uni_trace_swap_depth(uint64_t next)
{
	struct uni_trace_cpu *c = ready_cpu();
	uint64_t prev;

	if (!c)
		return 0;
	prev = (uint64_t)c->run << 32 | c->depth;
	c->depth = (uint32_t)next;
	c->run = (uint32_t)(next >> 32);
	return prev;
}

static const uint8_t magic[16] = UNI_TRACE_MAGIC;

static void describe(enum uni_trace_ring_mode mode, uint64_t tsc_hz)
{
	struct uni_trace_head *h = &uni_trace_head;
	uint64_t mix = uni_machine_time();

	h->version = UNI_TRACE_VERSION;
	h->size = sizeof(*h);
	h->machine = UNI_TRACE_MACHINE;
	h->sub_size = UNI_TRACE_SUB_SIZE;
	h->ring_mode = mode;
	h->tsc_hz = tsc_hz;
	h->rings = (uint64_t)rings;
	h->text_window = uni_trace_text() & ~0xffffffffULL;
	uni_trace_machine_init(h);
	if (boot_cpu)
		return;
	/* Tells this boot's trace from others', no more: a linear congruential step (Knuth's MMIX).
	 */
	for (unsigned i = 0; i < sizeof(h->uuid); i++) {
		mix = mix * 6364136223846793005ULL + 1442695040888963407ULL;
		h->uuid[i] = (uint8_t)(mix >> 56);
	}
}

/* The rings are there: the host may read them. A reader of few CPUs knows by the features whether
 * there will be more. */
static void publish(unsigned nr_cpus, uint64_t features)
{
	struct uni_trace_head *h = &uni_trace_head;

	uni_machine_release();
	h->nr_cpus = nr_cpus;
	uni_machine_release();
	h->features =
		features | UNI_TRACE_COUNTS_EXTRA | UNI_TRACE_TELLS_GAPS | UNI_TRACE_TELLS_SESSIONS;
	uni_machine_release();
	for (unsigned i = 0; i < sizeof(magic); i++)
		h->magic[i] = magic[i];
}

static void init_ring(unsigned i, struct uni_trace_cpu *c, uint64_t base, uint64_t size)
{
	struct uni_trace_ring *r = &rings[i];
	uint64_t first;

	r->cpu = (uint64_t)c;
	r->base = base;
	r->nr_subs = size / UNI_TRACE_SUB_SIZE;
	r->after_freeze = 0;
	for (uint64_t n = 0; n < r->nr_subs; n++) {
		struct uni_trace_sub *s = (struct uni_trace_sub *)(base + n * UNI_TRACE_SUB_SIZE);

		*s = (struct uni_trace_sub){ .ctf_magic = UNI_TRACE_CTF_MAGIC,
			.packet_size = UNI_TRACE_SUB_SIZE * 8ULL,
			.cpu = i };
		for (unsigned b = 0; b < sizeof(s->uuid); b++)
			s->uuid[b] = uni_trace_head.uuid[b];
	}
	c->cpu = i;
	c->frozen = 0;
	c->hi = (uint32_t)(uni_machine_time() >> 32);
	/* An interrupt may call hooks meanwhile, if calls are recorded since the boot. */
	first = make_ready(c, 1);
	((struct uni_trace_sub *)first)->gaps = told_by_sub();
	((struct uni_trace_sub *)first)->ts_begin = uni_machine_time();
	*(volatile uint64_t *)&c->wptr = first + UNI_TRACE_SUB_HEAD;
	*(volatile uint64_t *)&c->next = make_ready(c, 2);
	c->self = (uint64_t)c;
}

/* Without %gs there is one area, which need not be named. */
#ifdef UNI_TRACE_GS
#define OWN_CPUS ((struct uni_trace_cpu *const *)0)
#else
static struct uni_trace_cpu *const own_cpus[1] = { &uni_trace_cpu0 };
#define OWN_CPUS own_cpus
#endif

int uni_trace_init(void *mem, uint64_t size, unsigned nr_cpus, struct uni_trace_cpu *const *cpus,
	enum uni_trace_ring_mode mode, uint64_t tsc_hz)
{
	uint64_t base = ((uint64_t)mem + SUB_MASK) & ~SUB_MASK;
	uint64_t skipped = base - (uint64_t)mem, each;

	if (!cpus && nr_cpus == 1)
		cpus = OWN_CPUS;
	if (!cpus || !nr_cpus || nr_cpus > MAX_CPUS || size < skipped)
		return -1;
	each = uni_trace_ring_size(size - skipped, nr_cpus);
	if (each < UNI_TRACE_SUB_MIN * (uint64_t)UNI_TRACE_SUB_SIZE ||
		(boot_cpu && boot_cpu != cpus[0]))
		return -1;
	is_ready = 1;
	describe(mode, tsc_hz);
	for (unsigned i = boot_cpu != (void *)0; i < nr_cpus; i++) {
		cpus[i]->lost = 0;
		init_ring(i, cpus[i], base + i * each, each);
	}
	uni_machine_release();
	/* Code that needs no patching may run on other CPUs meanwhile. */
	*(volatile uint32_t *)&uni_trace_head.control.enable = 1;
	publish(nr_cpus, 0);
	return 0;
}

/* Without UNI_TRACE_GS there is no further CPU to wait for. */
#ifdef UNI_TRACE_GS
#define BOOTS UNI_TRACE_BOOTS
#else
#define BOOTS 0
#endif

void uni_trace_begin(struct uni_trace_cpu *c, void *mem, uint64_t size)
{
	uint64_t base = ((uint64_t)mem + SUB_MASK) & ~SUB_MASK;

	describe(UNI_TRACE_OVERWRITE, 0);
	init_ring(0, c, base, (size - (base - (uint64_t)mem)) & ~SUB_MASK);
	boot_cpu = c;
	publish(1, BOOTS);
}
