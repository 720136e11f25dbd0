/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bug for which MirageOS had its tracer. A TCP connection needs the peer's hardware address. It
 * sends an ARP request, waits until the network interface has acknowledged the transmission, and
 * only then waits for the reply. A reply that comes before the acknowledgement wakes nobody, and
 * the connection hangs. bad=1: it does come before; otherwise after.
 *
 * The network is a loopback of its own: `netif` takes frames from the transmit queue and hands them
 * to the peer. It hands the peer's answers to the stack. `clock`, `httpd` and `logger` are there so
 * that the guest does something else as well.
 */
#include "lab.h"
#include "lab_promise.h"

const char lab_app_name[] = "arp";

enum { ARP_REQUEST = 1, ARP_REPLY, TCP_SYN, TCP_SYN_ACK };

struct frame {
	int what;
	struct lab_promise *sent; /* resolved once it is out */
};

static struct {
	struct frame queue[8];
	unsigned head, tail;
	struct lab_semaphore frames;
} tx;

static struct lab_condition arp_reply;
static struct lab_promise connected, established, ticks[64];
static bool peer_known;
static struct lab_mvar logged;
static uint64_t requests, lines;

static void net_write(int what, struct lab_promise *sent, const char *name)
{
	lab_promise_make(sent, UNI_PROMISE_TASK, name);
	tx.queue[tx.head++ % 8] = (struct frame){ what, sent };
	lab_told_sem_post(&tx.frames);
}

static void receive(int what)
{
	if (what == ARP_REPLY) {
		peer_known = true;
		lab_condition_broadcast(&arp_reply);
	} else {
		lab_promise_resolve(&established);
	}
}

/* The peer answers a frame at once. The interface decides whether the stack first hears of the
 * answer or of the acknowledgement. */
static void transmit(struct frame f)
{
	int answer = f.what == ARP_REQUEST ? ARP_REPLY : TCP_SYN_ACK;

	if (lab_arg("bad", 0)) {
		receive(answer);
		lab_thread_yield();
		lab_promise_resolve(f.sent);
		return;
	}
	lab_promise_resolve(f.sent);
	lab_thread_yield();
	receive(answer);
}

static void netif_main(void *arg)
{
	for (;;) {
		lab_told_sem_wait(&tx.frames);
		transmit(tx.queue[tx.tail++ % 8]);
	}
}

/* The bug: the reply may be here before anybody waits for it. */
static void arp_query(void)
{
	struct lab_promise sent;

	net_write(ARP_REQUEST, &sent, "arp request sent");
	lab_promise_await(&sent);
	lab_condition_wait(&arp_reply);
}

static void tcp_main(void *arg)
{
	struct lab_promise sent;

	arp_query();
	lab_promise_make(&established, UNI_PROMISE_WAIT, "syn ack");
	net_write(TCP_SYN, &sent, "syn sent");
	lab_promise_await(&sent);
	lab_promise_await(&established);
	lab_promise_resolve(&connected);
	lab_thread_exit();
}

static void clock_main(void *arg)
{
	for (unsigned i = 0; i < 64; i++) {
		lab_thread_sleep(lab_truth.tsc_hz / 1000);
		lab_promise_resolve(&ticks[i]);
	}
	lab_thread_exit();
}

static void httpd_main(void *arg)
{
	for (unsigned i = 0; i < 64; i++) {
		lab_promise_await(&ticks[i]);
		lab_burn(2000);
		requests++;
		uni_promise_counter(lab_self(), "requests", (int64_t)requests);
		if (requests % 8 == 0)
			lab_mvar_put(&logged, requests);
	}
	lab_thread_exit();
}

static void logger_main(void *arg)
{
	for (;;) {
		lab_mvar_take(&logged);
		lines++;
	}
}

/* With loop=1 that is once more; not by who still hangs from the last time. */
static void connect(void)
{
	static struct lab_thread *tcp;

	if (tcp && tcp->state != LAB_THREAD_EXITED)
		return;
	lab_promise_make(&connected, UNI_PROMISE_TASK, "tcp connection");
	uni_promise_should_resolve((uint64_t)&connected);
	tcp = lab_thread_create("tcp", tcp_main, NULL);
}

LAB_FUNC void app_main(void)
{
	uint64_t requests_end = requests + 64, lines_end = lines + 8;
	bool first = !lab_current;

	if (first) {
		lab_thread_init();
		lab_told_sem_make(&tx.frames, "frames");
		lab_mvar_make(&logged, "log");
		lab_condition_make(&arp_reply, "arp reply");
		lab_thread_create("netif", netif_main, NULL);
	}
	for (unsigned i = 0; i < 64; i++)
		lab_promise_make(&ticks[i], UNI_PROMISE_WAIT, "tick");
	connect();
	lab_thread_create("clock", clock_main, NULL);
	lab_thread_create("httpd", httpd_main, NULL);
	if (first)
		lab_thread_create("logger", logger_main, NULL);
	while (requests < requests_end || lines < lines_end)
		lab_thread_yield();
}

void app_finish(void)
{
	lab_printf("arp: connection %s\n", connected.resolved ? "up" : "hangs");
	lab_hold();
}
