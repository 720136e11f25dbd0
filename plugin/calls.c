/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of calls and returns, in the rings of a shared file (uniscope/exact.h). Only the vCPU's
 * own thread writes its ring. Nothing that a reader can write there is trusted: a wrong `taken`
 * only spoils the trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "plugin/plugin.h"

#define RING_BYTES ((uint64_t)UNI_EXACT_CALLS_SUBS * UNI_TRACE_SUB_SIZE)
#define HEAD_BYTES UNI_EXACT_CALLS_BEGIN
#define RESERVE	   (UNI_EXACT_CALLS_SUBS / 4) /* sub-buffers that are left when the guest waits */
#define WAIT_NS	   UINT64_C(200000000)	      /* then QEMU may do what it was asked for */
#define NAP_NS	   100000
#define LOOK_EVERY 100 /* naps between two looks for a reader */
#define SYNC_WORDS 3u
#define HOST_WORDS 3u
#define SUB_WORDS                                                                      \
	((UNI_TRACE_SUB_SIZE - UNI_TRACE_SUB_HEAD) / 8 - 1) /* the last one stays free \
							     */
#define FIRST_WORD(id, nr, cls) \
	((uint64_t)((uint32_t)(id) | (uint32_t)(nr) << 4 | (uint32_t)(cls) << 16) << 32)

static struct {
	uint8_t *base;
	int fd;
	bool host_times;
} file = { .fd = -1 };

static uint64_t host_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Each byte of the file may be locked by one side. */
static struct flock lock_of(off_t byte)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
	};
}

static bool has_reader(void)
{
	struct flock l = lock_of(UNI_EXACT_LOCK_OF_READER);

	return fcntl(file.fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static void fill_head(struct uni_trace_head *h, uint32_t machine, uint32_t nr_vcpus)
{
	static const uint8_t magic[16] = UNI_TRACE_MAGIC;

	h->version = UNI_TRACE_VERSION;
	h->size = sizeof(*h);
	h->machine = machine;
	h->nr_cpus = nr_vcpus;
	h->sub_size = UNI_TRACE_SUB_SIZE;
	h->ring_mode = UNI_TRACE_OVERWRITE;
	h->text_window = plugin.functions.known[1].start & ~UINT64_C(0xffffffff);
	h->tsc_hz = UNI_EXACT_CALLS_HZ;
	h->rings = UNI_EXACT_CALLS_RINGS;
	h->features = UNI_TRACE_COUNTS_EXTRA | UNI_TRACE_TELLS_GAPS;
	h->kinds[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY;
	h->kinds[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT;
	h->kinds[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC;
	h->kinds[UNI_TRACE_EXT] = UNI_TRACE_KIND_EXT;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(h->magic, magic, sizeof(magic)); /* the rest is there */
}

/* The record that begins a call, but for its time; 0: it takes several words. */
static uint64_t entry_of(uint64_t start, uint64_t window)
{
	if ((start & 15) != 0 || (start & ~UINT64_C(0xffffffff)) != window)
		return 0;
	return (start >> 4 & 0xfffffff) << 36 | (uint64_t)UNI_TRACE_ENTRY << 32;
}

static bool fill_entries(void)
{
	const struct functions *f = &plugin.functions;
	uint64_t window = f->known[1].start & ~UINT64_C(0xffffffff);

	plugin.entry = calloc(f->nr_known + 1ull, sizeof(*plugin.entry));
	for (uint32_t i = 1; plugin.entry != NULL && i <= f->nr_known; i++)
		plugin.entry[i] = entry_of(f->known[i].start, window);
	return plugin.entry != NULL;
}

static int map_file(const char *path, uint32_t nr_vcpus, const char **why_ret)
{
	uint64_t size = HEAD_BYTES + nr_vcpus * RING_BYTES;
	struct flock l = lock_of(UNI_EXACT_LOCK_OF_QEMU);
	void *base;

	file.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file.fd < 0 || fcntl(file.fd, F_OFD_SETLK, &l) != 0) {
		*why_ret = strerror(errno);
		return -1;
	}
	if (posix_fallocate(file.fd, 0, HEAD_BYTES) != 0 || ftruncate(file.fd, (off_t)size) != 0) {
		*why_ret = "no room on the disk";
		return -1;
	}
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
	if (base == MAP_FAILED) {
		*why_ret = strerror(errno);
		return -1;
	}
	file.base = base;
	return 0;
}

int calls_open(const char *path, uint32_t machine, uint32_t nr_vcpus, bool host_times,
	const char **why_ret)
{
	if (nr_vcpus > UNI_EXACT_CALLS_CPUS) {
		*why_ret = "too many vCPUs";
		return -1;
	}
	if (map_file(path, nr_vcpus, why_ret) != 0)
		return -1;
	*why_ret = "out of memory";
	if (!fill_entries())
		return -1;
	file.host_times = host_times;
	for (uint32_t i = 0; i < nr_vcpus; i++) {
		struct uni_trace_ring *ring =
			(void *)(file.base + UNI_EXACT_CALLS_RINGS + i * sizeof(*ring));
		struct ring *r = &plugin.vcpu[i].ring;

		r->cpu = (void *)(file.base + UNI_EXACT_CALLS_CPU + i * sizeof(*r->cpu));
		r->taken = (void *)(file.base + UNI_EXACT_CALLS_TAKEN + i * sizeof(uint64_t));
		ring->cpu = UNI_EXACT_CALLS_CPU + i * sizeof(*r->cpu);
		ring->base = HEAD_BYTES + i * RING_BYTES;
		ring->nr_subs = UNI_EXACT_CALLS_SUBS;
		r->cpu->cpu = i;
		r->cpu->wptr = ring->base;
		r->base = file.base + ring->base;
		r->file = file.base;
	}
	fill_head((void *)file.base, machine, nr_vcpus);
	return 0;
}

static uint64_t offset_of(const void *at)
{
	return (uint64_t)((const uint8_t *)at - file.base);
}

static void sub_close(const struct ring *r)
{
	struct uni_trace_sub *s = r->sub;

	s->ts_end = r->last;
	s->content_size = (uint64_t)((uint8_t *)r->at - (uint8_t *)s) * 8;
	s->lost = r->cpu->lost;
	s->open_bytes = 0;
	__atomic_store_n(&s->end_seq, s->begin_seq, __ATOMIC_RELEASE);
}

static void sub_open(struct ring *r, struct uni_trace_sub *s, uint64_t seq, uint64_t now)
{
	const struct uni_trace_sub *old = r->sub;

	__atomic_store_n(&s->begin_seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	s->ts_begin = now;
	s->ts_end = s->extra_after = s->words_before = s->extra_before = 0;
	s->content_size = UNI_TRACE_SUB_HEAD * 8;
	s->packet_seq = seq;
	s->cpu = r->cpu->cpu;
	s->lost = r->cpu->lost;
	s->gaps = UNI_TRACE_SUB_GAPS(0, 0);
	s->open_bytes = UNI_TRACE_SUB_HEAD - UNI_TRACE_SUB_SIZE;
	if (old != NULL) {
		s->words_before =
			old->words_before + (uint64_t)(r->at - (const uint64_t *)(old + 1));
		s->extra_before = old->extra_before + old->extra_after;
	}
	__atomic_store_n(&s->begin_seq, seq, __ATOMIC_RELEASE);
}

/* How far the reader is; without one, all that is older may be overwritten. */
static uint64_t taken_of(struct ring *r, uint64_t seq)
{
	uint64_t taken = __atomic_load_n(r->taken, __ATOMIC_ACQUIRE);

	if (taken > seq || taken < r->floor)
		taken = r->floor;
	return taken;
}

/* The ring's next sub-buffer. False: there is no room, and a reader will make some. */
static bool ring_move(struct ring *r, uint64_t now)
{
	uint64_t seq = r->sub != NULL ? r->sub->begin_seq + 1 : 1;
	struct uni_trace_sub *next =
		(void *)(r->base + seq % UNI_EXACT_CALLS_SUBS * UNI_TRACE_SUB_SIZE);

	if (r->sub == NULL && (r->full || posix_fallocate(file.fd, (off_t)offset_of(r->base),
						  (off_t)RING_BYTES) != 0)) {
		r->full = true;
		return false;
	}
	if (!has_reader())
		r->floor = seq;
	if (seq - taken_of(r, seq) >= UNI_EXACT_CALLS_SUBS)
		return false;
	r->behind = seq - taken_of(r, seq) >= UNI_EXACT_CALLS_SUBS - RESERVE;
	sub_open(r, next, seq, now);
	if (r->sub != NULL)
		sub_close(r);
	r->sub = next;
	r->at = (uint64_t *)(next + 1);
	r->end = r->at + SUB_WORDS;
	r->hi = (uint32_t)(now >> 32);
	ring_publish(r);
	if (file.host_times) {
		r->at[0] = FIRST_WORD(UNI_TRACE_EXT, HOST_WORDS - 1, UNI_TRACE_CLASS_HOST_TIME) |
			   (uint32_t)now;
		r->at[1] = host_ns();
		r->at[2] = 0;
		r->at += HOST_WORDS;
		r->sub->extra_after += HOST_WORDS;
		ring_publish(r);
	}
	return true;
}

/* Room for a record of that many words, behind one of the whole time if it has to be told. */
static bool ring_room(struct ring *r, unsigned words, uint64_t now)
{
	unsigned need = words + (r->hi != now >> 32 ? SYNC_WORDS : 0);

	if (r->end - r->at < (ptrdiff_t)need && !ring_move(r, now)) {
		r->cpu->lost++;
		return false;
	}
	if (r->hi != now >> 32) {
		r->at[0] = (uint64_t)(UNI_TRACE_SYNC | (SYNC_WORDS - 1) << 4) << 32 | (uint32_t)now;
		r->at[1] = now;
		r->at[2] = UNI_TRACE_SYNC_WORD(0, 0, 0);
		r->at += SYNC_WORDS;
		r->sub->extra_after += SYNC_WORDS;
		r->hi = (uint32_t)(now >> 32);
	}
	return true;
}

void ring_put_slowly(struct ring *r, uint64_t word, uint64_t now)
{
	if (!ring_room(r, 1, now))
		return;
	*r->at++ = word | (uint32_t)now;
	r->last = now;
	ring_publish(r);
}

static void ring_extended(struct vcpu *v, unsigned cls, const uint64_t *words, unsigned nr)
{
	struct ring *r = &v->ring;
	uint64_t now = ring_now(v);

	if (!ring_room(r, 1 + nr, now))
		return;
	*r->at++ = FIRST_WORD(UNI_TRACE_EXT, nr, cls) | (uint32_t)now;
	for (unsigned i = 0; i < nr; i++)
		*r->at++ = words[i];
	r->sub->extra_after += nr + (cls == UNI_TRACE_CLASS_HOST_TIME);
	r->last = now;
	ring_publish(r);
}

/* A function that has no short record: not aligned, or not in the image. */
void ring_entry_slowly(struct vcpu *v, uint64_t start)
{
	const struct uni_trace_head *h = (const void *)file.base;
	const uint64_t words[] = { (uint32_t)start | (uint64_t)UNI_TRACE_ODD_ENTRY << 32, start };
	bool inside = (start & ~UINT64_C(0xffffffff)) == h->text_window;
	uint64_t word = inside ? entry_of(start, h->text_window) : 0;

	if (word != 0)
		ring_put(v, word);
	else
		ring_extended(v, UNI_TRACE_CLASS_ENTRY, words, inside ? 1 : 2);
}

void calls_switch(struct vcpu *v, const struct stack *from, const struct stack *to)
{
	const uint64_t words[] = { from->id, to->id, 0 };

	if (from->id != to->id)
		ring_extended(v, UNI_TRACE_CLASS_SWITCH, words, 3);
}

/* The calls that are open then last until there. */
void calls_end(void)
{
	const uint64_t words[] = { file.host_times ? host_ns() : 0, 0 };

	for (uint32_t i = 0; i < VCPU_MAX; i++) {
		if (plugin.vcpu[i].ring.sub != NULL)
			ring_extended(
				&plugin.vcpu[i], UNI_TRACE_CLASS_HOST_TIME, words, HOST_WORDS - 1);
	}
}

/*
 * The reader is far behind: the guest waits. But not for long at a time, for QEMU looks between
 * blocks for what it was asked to do. So it answers while the guest hardly moves.
 */
void calls_wait(struct ring *r)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t until = host_ns() + WAIT_NS;

	for (unsigned i = 0; host_ns() < until; i++) {
		uint64_t seq = r->sub->begin_seq;

		if (i % LOOK_EVERY == 0 && !has_reader())
			r->floor = seq;
		r->behind = seq - taken_of(r, seq) >= UNI_EXACT_CALLS_SUBS - RESERVE;
		if (!r->behind)
			return;
		(void)nanosleep(&nap, NULL);
	}
}
