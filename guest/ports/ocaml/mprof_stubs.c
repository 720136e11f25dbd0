/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes MProf's events into a buffer as mirage-profile's ring. With -DUNI_MPROF_RING it writes
 * them into the rings of uniscope's tracer, which is linked as well then.
 *
 * The buffer has four packets, each with a header of 30 bytes; an event lies in one of them. When
 * the last one is full the first is begun anew. A packet's content size grows behind the event that
 * it counts, so that a reader sees whole events only.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

#define PACKETS	    4
#define HEADER	    30
#define EVENT	    9 /* time and id */
#define BUFFER_MIN  4096
#define PACKET_SIZE 20 /* offsets of header fields */
#define COUNT	    24
#define CONTENT	    26
#define NO_ROOM	    (-1)

enum event_id { CREATES, READ, FULFILLS, FAILS, BECOMES, LABEL, INCREASE, SWITCH, GC, SIGNAL };
enum { COUNTER = 11 };

struct log {
	uint8_t *buffer; /* the Bigarray's, which whoever has the log keeps */
	uint64_t size;
	uint64_t begin, end, next; /* of the packet; where the next event goes */
	uint64_t lost;		   /* events larger than a packet */
	uint16_t count;
};

static const uint8_t start_of_header[PACKET_SIZE] = { 0xc1, 0x1f, 0xfc, 0xc1, 0x05, 0x88, 0x3b,
	0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3, 0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c };

static struct custom_operations log_ops = {
	.identifier = "uniscope.mprof.log",
	.finalize = custom_finalize_default,
	.compare = custom_compare_default,
	.hash = custom_hash_default,
	.serialize = custom_serialize_default,
	.deserialize = custom_deserialize_default,
	.compare_ext = custom_compare_ext_default,
};

static struct log *log_of(value v)
{
	return Data_custom_val(v);
}

static uint8_t *put(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
	return p + bytes;
}

/* Two halves, of which only the lower one changes as long as a packet is below 8 KiB. */
static void publish(struct log *log)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	(void)put(log->buffer + log->begin + CONTENT, (log->next - log->begin) * 8, 4);
}

static void begin_packet(struct log *log, unsigned nr, uint16_t count)
{
	uint64_t each = log->size / PACKETS;

	log->begin = nr * each;
	log->end = nr == PACKETS - 1 ? log->size : log->begin + each;
	log->next = log->begin + HEADER;
	publish(log); /* empty, before anything else of it changes */
	memcpy(log->buffer + log->begin, start_of_header, sizeof(start_of_header));
	(void)put(log->buffer + log->begin + PACKET_SIZE, (log->end - log->begin) * 8, 4);
	(void)put(log->buffer + log->begin + COUNT, count, 2);
}

value uni_mprof_open(value buffer)
{
	CAMLparam1(buffer);
	CAMLlocal1(ret);
	struct log *log;

	if (caml_ba_byte_size(Caml_ba_array_val(buffer)) < BUFFER_MIN)
		caml_invalid_argument("MProf: a buffer needs 4096 bytes");
	ret = caml_alloc_custom(&log_ops, sizeof(struct log), 0, 1);
	log = log_of(ret);
	*log = (struct log){ .buffer = Caml_ba_data_val(buffer),
		.size = caml_ba_byte_size(Caml_ba_array_val(buffer)),
		.count = 1 };
	if (log->size > UINT32_MAX / 8)
		log->size = UINT32_MAX / 8;
	for (unsigned i = PACKETS; i-- > 0;)
		begin_packet(log, i, (uint16_t)i);
	CAMLreturn(ret);
}

value uni_mprof_lost(value log)
{
	return Val_long((intnat)log_of(log)->lost);
}

/* The place for an event of so many bytes behind its id; NO_ROOM: no packet can hold it. */
value uni_mprof_reserve(value v, value payload)
{
	struct log *log = log_of(v);
	uint64_t need = EVENT + (uint64_t)Long_val(payload);
	unsigned nr = (unsigned)(log->begin / (log->size / PACKETS));

	if (need > log->size / PACKETS - HEADER) {
		log->lost++;
		return Val_long(NO_ROOM);
	}
	if (need > log->end - log->next)
		begin_packet(log, (nr + 1) % PACKETS, log->count++);
	return Val_long((intnat)log->next);
}

static uint8_t *put_text(uint8_t *p, value text)
{
	size_t len = strlen(String_val(text));

	memcpy(p, String_val(text), len + 1);
	return p + len + 1;
}

/* Writes the bytes behind the id. */
static uint8_t *put_payload(uint8_t *p, long id, value a, value b, value number, value text)
{
	if (id == GC)
		return put(p, (uint64_t)Long_val(number), 8);
	p = put(p, (uint64_t)Long_val(a), 8);
	switch (id) {
	case SWITCH:
		return p;
	case LABEL:
		return put_text(p, text);
	case INCREASE:
	case COUNTER:
		return put_text(put(p, (uint64_t)Long_val(number), 8), text);
	case FAILS:
		return put_text(put(p, (uint64_t)Long_val(b), 8), text);
	case CREATES:
		p = put(p, (uint64_t)Long_val(b), 8);
		return put(p, (uint64_t)Long_val(number), 1);
	default:
		return put(p, (uint64_t)Long_val(b), 8);
	}
}

/*
 * The event whose time stands at `at` already. False: another one has come in between, of a
 * collection that the time stamp caused; then it has to be reserved again.
 */
value uni_mprof_commit(value v, value at, value id, value a, value b, value number, value text)
{
	struct log *log = log_of(v);
	uint8_t *p;

	if (log->next != (uint64_t)Long_val(at))
		return Val_false;
	p = put(log->buffer + log->next + 8, (uint64_t)Long_val(id), 1);
	p = put_payload(p, Long_val(id), a, b, number, text);
	log->next = (uint64_t)(p - log->buffer);
	publish(log);
	return Val_true;
}

value uni_mprof_commit_bytecode(value *argv, int argc)
{
	(void)argc;
	return uni_mprof_commit(argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], argv[6]);
}

/* The place where the event lies now. */
value uni_mprof_place(value v)
{
	return Val_long((intnat)((uintnat)v / sizeof(value)));
}

/* A block of the minor heap that knows where it was made. */
value uni_mprof_stone(value unit)
{
	value ret = caml_alloc_small(1, 0);

	(void)unit;
	Field(ret, 0) = uni_mprof_place(ret);
	return ret;
}

value uni_mprof_has_moved(value stone)
{
	return Val_bool(Field(stone, 0) != uni_mprof_place(stone));
}

#ifdef UNI_MPROF_RING
#include "uniscope/promise.h"

value uni_mprof_has_ring(value unit)
{
	(void)unit;
	return Val_true;
}

/* Keeps what is there, if the program has called uni_trace_init() itself. */
value uni_mprof_ring_memory(value size)
{
	uint64_t bytes = (uint64_t)Long_val(size);
	void *memory;

	if (uni_trace_head.nr_cpus != 0)
		return Val_true;
	memory = malloc(bytes);
	if (memory == NULL)
		return Val_false;
	memset(memory, 0, bytes); /* the reader can reach all of it */
	if (uni_trace_init(memory, bytes, 1, NULL, UNI_TRACE_OVERWRITE, 0) == 0)
		return Val_true;
	free(memory);
	return Val_false;
}

/* A program has one of them; Solo5's libc lacks the second, and its type. */
uint64_t solo5_clock_monotonic(void) __attribute__((weak));
int clock_gettime(int clock, void *seconds_and_ns) __attribute__((weak));

#define MONOTONIC   1
#define TABLE_BYTES (sizeof(struct uni_trace_promises) + 1024 * sizeof(struct uni_trace_promise))

static bool clock_ns(uint64_t *ret)
{
	int64_t t[2];

	if (solo5_clock_monotonic)
		*ret = solo5_clock_monotonic();
	else if (clock_gettime && clock_gettime(MONOTONIC, t) == 0)
		*ret = (uint64_t)t[0] * 1000000000 + (uint64_t)t[1];
	else
		return false;
	return true;
}

static uint64_t ticks(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/*
 * A host may not know the frequency of this program's counter: Xen's does not, and a core has none.
 * So it is measured from the first call on, each time that twice as much has passed.
 */
static void measure_rate(void)
{
	static uint64_t from_ns, from, wait_ns = 10000000;
	uint64_t ns, now;

	if (!clock_ns(&ns))
		return;
	now = ticks();
	if (from == 0) {
		from_ns = ns;
		from = now;
	} else if (ns - from_ns >= wait_ns) {
		wait_ns = 2 * (ns - from_ns);
		uni_trace_head.tsc_hz =
			(uint64_t)((double)(now - from) * 1e9 / (double)(ns - from_ns));
	}
}

/*
 * Keeps a table of the threads and promises that are open, for whoever looks at the program while
 * it waits. A recording begins with what the ring holds, as that tells more than the table. So the
 * host is not told of the table as one to begin with.
 */
static void keep_table(void)
{
	static char *table;

	if (table == NULL)
		table = malloc(TABLE_BYTES + 63);
	if (table == NULL || uni_promise_keep((void *)(((uintptr_t)table + 63) & ~(uintptr_t)63),
				     TABLE_BYTES) != 0)
		return;
	uni_trace_head.features &= ~(uint64_t)UNI_TRACE_KEEPS_PROMISES;
}

value uni_mprof_ring_on(value on)
{
	measure_rate();
	uni_trace_head.control.promises = 0;
	uni_trace_head.promises = 0;
	if (Bool_val(on)) {
		keep_table();
		uni_trace_head.control.promises |= UNI_TRACE_PROMISES_TELL;
	}
	return Val_unit;
}

value uni_mprof_ring(value id, value a, value b, value number, value text)
{
	uint64_t x = (uint64_t)Long_val(a), y = (uint64_t)Long_val(b);
	unsigned kind = (unsigned)Long_val(id);
	static unsigned events;

	if (!uni_promise_on())
		return Val_unit;
	/* A main loop without hooks has no hiatus. */
	if (events++ % 256 == 0 || kind == UNI_PROMISE_HIATUS)
		measure_rate();
	switch (kind) {
	case GC:
		/* Its length is ns here and cycles there: only that it was is told. */
		uni_promise_word(kind, 0);
		break;
	case UNI_PROMISE_HIATUS:
	case UNI_PROMISE_RESUME:
		uni_promise_word(kind, (uint64_t)Long_val(number));
		break;
	case SWITCH:
	case UNI_PROMISE_SHOULD_RESOLVE:
		uni_promise_word(kind, x);
		break;
	case LABEL:
		uni_promise_text1(kind, x, String_val(text));
		break;
	case INCREASE:
	case COUNTER:
		uni_promise_text2(kind, x, (uint64_t)Long_val(number), String_val(text));
		break;
	case FAILS:
		uni_promise_text2(kind, x, y, String_val(text));
		break;
	case CREATES:
		uni_promise_three(kind, x, y, (uint32_t)Long_val(number));
		break;
	default:
		uni_promise_two(kind, x, y);
	}
	return Val_unit;
}
#else
value uni_mprof_has_ring(value unit)
{
	(void)unit;
	return Val_false;
}

value uni_mprof_ring_memory(value size)
{
	(void)size;
	return Val_true; /* start_ring() tells that there is none */
}

value uni_mprof_ring_on(value on)
{
	(void)on;
	return Val_unit;
}

value uni_mprof_ring(value id, value a, value b, value number, value text)
{
	(void)id;
	(void)a;
	(void)b;
	(void)number;
	(void)text;
	return Val_unit;
}
#endif
