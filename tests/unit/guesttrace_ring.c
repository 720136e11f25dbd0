/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guesttrace.h"

#define ARCH_SET_GS 0x1001
#define BACK_MAX    100000000u /* cycles: 40 ms and less */

struct uni_trace_cpu cpus[CPUS_MAX] __attribute__((aligned(64)));
void (*entry_hook)(void) = work_skip_entry, (*exit_hook)(void) = work_skip_exit;

__asm__(".globl work_entry, work_exit\n"
	"work_entry: jmp *entry_hook(%rip)\n"
	"work_exit: jmp *exit_hook(%rip)\n"
	".globl work_skip_entry, work_skip_exit\n"
	"work_skip_entry: ret\n"
	"work_skip_exit: ret\n");

static int read_self(void *ctx, uint64_t va, void *buf, size_t len)
{
	memcpy(buf, (const void *)va, len);
	return 0;
}

const struct uni_ring_source self_source = { read_self, NULL };

void be_cpu(unsigned nr)
{
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &cpus[nr]), 0);
}

void be_cpu_early(void)
{
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &uni_trace_early), 0);
}

struct ring_memory trace_start_cpus(
	unsigned nr, unsigned subs, enum uni_trace_ring_mode mode, void (*exit)(void))
{
	struct uni_trace_cpu *const areas[] = { &cpus[0], &cpus[1], &cpus[2], &cpus[3] };
	struct ring_memory m = { .size = ((size_t)subs * nr + 1) * UNI_TRACE_SUB_SIZE + 8192 };

	/* Not aligned: init() has to skip to the first whole sub-buffer. */
	m.mem = mmap(NULL, m.size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(m.mem, MAP_FAILED);
	memset(cpus, 0, sizeof(cpus));
	memset(&uni_trace_head, 0, sizeof(uni_trace_head));
	be_cpu(0);
	m.start = (char *)m.mem + 4096;
	if (((uint64_t)m.start & (UNI_TRACE_SUB_SIZE - 1)) == 0)
		m.start += 4096;
	assert_int_equal(uni_trace_init(m.start, m.size - 8192, nr, areas, mode, 0), 0);
	entry_hook = uni_trace_entry;
	exit_hook = exit;
	work_calls = 0;
	return m;
}

struct ring_memory trace_start(unsigned subs, enum uni_trace_ring_mode mode, void (*exit)(void))
{
	return trace_start_cpus(1, subs, mode, exit);
}

void trace_end(struct ring_memory *m)
{
	entry_hook = work_skip_entry;
	exit_hook = work_skip_exit;
	munmap(m->mem, m->size);
}

const struct uni_ring_info *info;

/* Entries and exits are also extended records. */
static void count_ext(struct seen *seen, const struct uni_trace_record *rec)
{
	seen->ext_words += rec->nr;
	seen->entries +=
		rec->cls == UNI_TRACE_CLASS_ENTRY || rec->cls == UNI_TRACE_CLASS_ENTRY_ARGS;
	seen->exits += rec->cls == UNI_TRACE_CLASS_EXIT_VALUE;
	seen->calls += rec->cls == UNI_TRACE_CLASS_CALL || rec->cls == UNI_TRACE_CLASS_CALL_ARGS;
}

/* Back by a little reads as forward by almost a wrap of the low half. A thread that waits for its
 * turn may be late by half a wrap of the clock, or several. If it is late by almost one, a record
 * of the whole time says so.
 */
static bool goes_back(uint64_t from, const struct uni_trace_record *rec)
{
	uint64_t to = rec->time;

	if (rec->kind == UNI_TRACE_KIND_SYNC && rec->words[0] >= from)
		return false;
	return to < from || (to - from > UINT32_MAX - BACK_MAX && to - from <= UINT32_MAX);
}

int count(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	struct seen *seen = arg;

	assert_int_equal(s->ctf_magic, UNI_TRACE_CTF_MAGIC);
	while (uni_trace_next(&c, &rec)) {
		seen->records++;
		if (seen->last != 0 && goes_back(seen->last, &rec)) {
			seen->backwards++;
			print_message("CPU %u, packet %llu, byte %zu, kind %u: from %llx to %llx\n",
				nr, (unsigned long long)s->begin_seq,
				(size_t)((const char *)rec.words - 8 - (const char *)s), rec.kind,
				(unsigned long long)seen->last, (unsigned long long)rec.time);
		}
		seen->last = rec.time;
		seen->entries += rec.kind == UNI_TRACE_KIND_ENTRY;
		seen->exits += rec.kind == UNI_TRACE_KIND_EXIT;
		seen->leaves += rec.kind == UNI_TRACE_KIND_LEAF;
		seen->calls += rec.kind == UNI_TRACE_KIND_CALL;
		seen->syncs += rec.kind == UNI_TRACE_KIND_SYNC;
		if (rec.kind == UNI_TRACE_KIND_EXT)
			count_ext(seen, &rec);
		seen->depth = (int64_t)seen->entries - (int64_t)seen->exits;
		if (seen->depth < seen->lowest)
			seen->lowest = seen->depth;
		if (seen->depth > seen->deepest)
			seen->deepest = seen->depth;
	}
	assert_ptr_equal(c.at, c.end);
	return 0;
}

struct uni_ring *open_ring(void)
{
	struct uni_err err = { 0 };
	struct uni_ring *r = NULL;

	if (uni_ring_open(&self_source, (uint64_t)&uni_trace_head, &r, &err) != 0)
		fail_msg("%s", err.msg);
	info = uni_ring_info(r);
	return r;
}

struct seen read_cpu(unsigned nr, struct uni_ring_stats *stats)
{
	const struct uni_ring_info *others = info; /* another reader may be at work */
	struct seen seen = { 0 };
	struct uni_ring *r = open_ring();

	assert_int_equal(uni_ring_drain(r, nr, count, &seen), 0);
	*stats = *uni_ring_stats(r, nr);
	uni_ring_close(r);
	info = others;
	return seen;
}

struct seen read_all(struct uni_ring_stats *stats)
{
	return read_cpu(0, stats);
}
