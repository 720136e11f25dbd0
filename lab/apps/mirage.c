/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace ring as MirageOS' guests have one on Xen (mirage-profile): four packets of a page each.
 * New packets overwrite the oldest. The ring is granted to dom0 and named in xenstore. Known
 * answer: each round is one light thread, `job-N`, made by thread 1 and resolved by itself;
 * `rounds` counts them. So few as 20 rounds (the default) all fit. hold=1: stays to be looked at.
 */
#include "lab.h"
#include "lab_grant.h"

#define PACKETS	    4
#define PACKET_SIZE 4096u
#define HEAD	    30u /* of a packet */
#define EVENT_MAX   64u

enum { CREATE = 0, RESOLVE = 2, LABEL = 5, SWITCH = 7, COUNTER = 11 };
enum { TASK = 1 };

const char lab_app_name[] = "mirage";

static struct {
	uint8_t packet[PACKETS][PACKET_SIZE];
} ring __attribute__((aligned(4096)));

static unsigned packet_at, used; /* where the next event goes */
static uint16_t nr_packets;

static uint8_t *put(uint8_t *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
	return to + bytes;
}

static void set_used(unsigned bytes)
{
	used = bytes;
	put(&ring.packet[packet_at][26], bytes * 8ULL, 4);
}

static void begin_packet(unsigned at)
{
	static const uint8_t uuid[16] = { 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3,
		0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c };
	uint8_t *to = put(ring.packet[at], 0xc1fc1fc1, 4);

	for (unsigned i = 0; i < sizeof(uuid); i++)
		*to++ = uuid[i];
	to = put(to, PACKET_SIZE * 8, 4);
	put(to, nr_packets++, 2);
	packet_at = at;
	set_used(HEAD);
}

static uint64_t now_ns(void)
{
	return lab_tsc() / (lab_truth.tsc_hz / 1000000) * 1000;
}

/* The time and the kind; what follows is the caller's, up to EVENT_MAX in all. */
static uint8_t *begin_event(uint8_t kind, uint64_t thread)
{
	uint8_t *to;

	if (used + EVENT_MAX > PACKET_SIZE)
		begin_packet((packet_at + 1) % PACKETS);
	to = put(&ring.packet[packet_at][used], now_ns(), 8);
	*to++ = kind;
	return put(to, thread, 8);
}

static void end_event(const uint8_t *to)
{
	LAB_BARRIER();
	set_used((unsigned)(to - ring.packet[packet_at]));
}

static uint8_t *put_text(uint8_t *to, const char *text)
{
	do
		*to++ = (uint8_t)*text;
	while (*text++);
	return to;
}

static void label(uint64_t thread, uint64_t number)
{
	char name[] = "job-000";

	for (unsigned i = 6; i > 3; i--, number /= 10)
		name[i] = (char)('0' + number % 10);
	end_event(put_text(begin_event(LABEL, thread), name));
}

LAB_FUNC static void job(uint64_t number)
{
	uint64_t thread = 100 + number;
	uint8_t *to = put(begin_event(CREATE, 1), thread, 8);

	*to++ = TASK;
	end_event(to);
	label(thread, number);
	end_event(begin_event(SWITCH, thread));
	lab_burn(20000);
	end_event(put_text(put(begin_event(COUNTER, thread), number, 8), "rounds"));
	end_event(put(begin_event(RESOLVE, thread), thread, 8));
	end_event(begin_event(SWITCH, 1));
}

LAB_FUNC void app_main(void)
{
	uint64_t nr = lab_rounds(20);

	if (nr_packets == 0) {
		for (unsigned i = PACKETS; i-- != 0;)
			begin_packet(i);
		nr_packets = 1;
		lab_grant("data/mprof/ring-ref", &ring, sizeof(ring) / 4096);
	}
	for (uint64_t i = 1; i <= nr && !lab_stop(); i++) {
		job(i);
		lab_heartbeat();
	}
}

void app_finish(void)
{
	lab_printf("mirage: all jobs are done\n");
	lab_hold();
}
