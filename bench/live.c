/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live SECONDS RATE RING_MIB: a process writes events of threads into its ring, RATE a second (0:
 * as fast as it can). This process reads the ring from outside. Each event has a serial number, so
 * that missing events are known. They must be those that the reader counts as lost. bench/run live
 * runs it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "promise/record.h"
#include "trace/ring.h"
#include "uniscope/promise.h"

#define ARCH_SET_GS 0x1001
#define NAP_NS	    (200 * UNI_NSEC_PER_USEC) /* of a reader with nothing to do */
#define WORDS	    4			      /* of one event */

static struct uni_trace_cpu cpu __attribute__((aligned(64)));

struct reader {
	pid_t writer;
	const struct uni_ring_info *info;
	uint64_t accepted, missing, next; /* events; the serial that comes next */
	uint64_t other_words, backwards;  /* words of records that are no events */
};

static void fail(const char *what)
{
	(void)fprintf(stderr, "live: %s\n", what);
	exit(1);
}

static int read_writer(void *ctx, uint64_t va, void *buf, size_t len)
{
	const struct reader *r = ctx;
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)va, len };

	return process_vm_readv(r->writer, &to, 1, &from, 1, 0) == (ssize_t)len ? 0 : -UNI_EFAULT;
}

static uint64_t write_for(uint64_t ns, uint64_t rate)
{
	uint64_t begin = uni_now_ns(), now = begin, n = 0;

	while (now - begin < ns) {
		uint64_t due = rate != 0 ? (uint64_t)((double)(now - begin) * (double)rate / 1e9)
					 : n + 1000;

		for (; n < due; n++)
			uni_promise_resolve(7, n);
		now = uni_now_ns();
	}
	return n;
}

/* Says how many it wrote, and stays to be read. */
static _Noreturn void writer(size_t size, uint64_t ns, uint64_t rate, int go, int done)
{
	struct uni_trace_cpu *const cpus[] = { &cpu };
	void *ring = mmap(NULL, size + UNI_TRACE_SUB_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t n = 0;

	if (ring == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu) != 0 ||
		uni_trace_init(ring, size + UNI_TRACE_SUB_SIZE, 1, cpus, UNI_TRACE_OVERWRITE, 0) !=
			0)
		_exit(1);
	uni_trace_head.control.promises = 1;
	if (write(done, &n, sizeof(n)) != sizeof(n) || read(go, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	n = write_for(ns, rate);
	if (write(done, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	(void)!read(go, &n, sizeof(n)); /* until the reader is done */
	_exit(0);
}

static int take(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct reader *r = arg;
	struct uni_trace_cursor c = uni_trace_records(r->info, s, content);
	struct uni_trace_record rec;
	uint64_t events = 0;

	while (uni_trace_next(&c, &rec)) {
		struct uni_promise_event e;

		if (rec.kind != UNI_TRACE_KIND_EXT ||
			!uni_promise_of_record(rec.cls, rec.words, rec.nr, nr, rec.time, 1.0, &e))
			continue;
		r->backwards += e.other < r->next;
		r->missing += e.other - r->next;
		r->next = e.other + 1;
		events++;
	}
	r->accepted += events;
	r->other_words += (content - UNI_TRACE_SUB_HEAD) / 8 - events * WORDS;
	return 0;
}

/* Until the writer has said how many it wrote; and what is left then. */
static uint64_t read_all(struct uni_ring *ring, struct reader *r, int done)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	uint64_t written = 0, packets = 0;

	while (read(done, &written, sizeof(written)) != sizeof(written)) {
		if (uni_ring_poll(ring, 0, take, r) != 0)
			fail("the ring cannot be read");
		if (uni_ring_stats(ring, 0)->packets == packets)
			(void)nanosleep(&nap, NULL);
		packets = uni_ring_stats(ring, 0)->packets;
	}
	if (uni_ring_poll(ring, 0, take, r) != 0 || uni_ring_drain(ring, 0, take, r) != 0)
		fail("the ring cannot be read");
	r->missing += written - r->next;
	return written;
}

static int report(struct uni_ring *ring, const struct reader *r, uint64_t written, double seconds)
{
	const struct uni_ring_stats *st = uni_ring_stats(ring, 0);
	struct uni_ring_now now;
	bool same;

	if (uni_ring_now(ring, 0, &now) != 0)
		fail("the ring cannot be read");
	/* A record of the clock that was overwritten has words, but is no event. */
	same = r->backwards == 0 && r->accepted + r->missing == written &&
	       st->words + st->lapped_words == now.words &&
	       st->lapped_words >= r->missing * WORDS &&
	       now.words - r->other_words - written * WORDS ==
		       st->lapped_words - r->missing * WORDS;
	printf("%" PRIu64 " written, %" PRIu64 " accepted, %" PRIu64 " lost in %.1f s: %.2f M/s; "
	       "%" PRIu64 " sub-buffers overwritten, of these %" PRIu64 " while they were copied\n",
		written, r->accepted, r->missing, seconds, (double)written / seconds / 1e6,
		st->lapped, st->torn);
	printf("accepted + lost == written, by serial numbers and by the reader's books: %s\n",
		same ? "yes" : "NO");
	return same ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct reader r = { 0 };
	const struct uni_ring_source source = { read_writer, &r };
	int go[2], done[2], rc;
	struct uni_ring *ring;
	struct uni_err err = { 0 };
	uint64_t ns, rate, size, written = 0, begin;

	if (argc != 4)
		fail("live SECONDS RATE RING_MIB");
	ns = strtoul(argv[1], NULL, 10) * UNI_NSEC_PER_SEC;
	rate = strtoul(argv[2], NULL, 10);
	size = strtoul(argv[3], NULL, 10) << 20;
	if (ns == 0 || size == 0 || pipe(go) != 0 || pipe2(done, 0) != 0)
		fail("live SECONDS RATE RING_MIB");
	r.writer = fork();
	if (r.writer == 0)
		writer(size, ns, rate, go[0], done[1]);
	if (r.writer < 0 || read(done[0], &written, sizeof(written)) != sizeof(written))
		fail("no writer");
	if (uni_ring_open(&source, (uint64_t)(uintptr_t)&uni_trace_head, &ring, &err) != 0)
		fail(err.msg);
	r.info = uni_ring_info(ring);
	begin = uni_now_ns();
	if (write(go[1], &ns, sizeof(ns)) != sizeof(ns) || fcntl(done[0], F_SETFL, O_NONBLOCK) != 0)
		fail("no writer");
	written = read_all(ring, &r, done[0]);
	rc = report(ring, &r, written, (double)(uni_now_ns() - begin) / 1e9);
	uni_ring_close(ring);
	(void)!write(go[1], &ns, sizeof(ns));
	(void)waitpid(r.writer, NULL, 0);
	return rc;
}
