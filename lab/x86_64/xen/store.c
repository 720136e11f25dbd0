/* SPDX-License-Identifier: BSD-2-Clause */
/* Grants, and as much of a xenstore client as it takes to tell others of them. */
#include "lab.h"
#include "lab_grant.h"
#include "../cpu.h"
#include "xen.h"

#define TEXT_MAX 512

static struct xen_store *ring;
static uint32_t ring_event;
static struct xen_grant grants[LAB_PAGE_SIZE / sizeof(struct xen_grant)]
	__attribute__((aligned(4096)));

void lab_xen_store_init(struct xen_store *the_ring, uint32_t event)
{
	ring = the_ring;
	ring_event = event;
}

static void map_grants(void)
{
	uint64_t frame = 0, leaf = PTE_PRESENT | PTE_WRITE | PTE_NX;
	struct xen_grant_setup setup = {
		.domid = XEN_DOMID_SELF, .nr_frames = 1, .frames = (uint64_t)&frame
	};
	struct xen_add_to_physmap map = { .domid = XEN_DOMID_SELF,
		.space = XEN_MAPSPACE_GRANT_TABLE,
		.gpfn = ((uint64_t)grants - LAB_IMAGE_OFFSET) / LAB_PAGE_SIZE };

	if (!lab_xen_pv) {
		if (lab_hypercall(XEN_MEMORY_OP, XEN_MEMORY_ADD_TO_PHYSMAP, (uint64_t)&map, 0, 0) !=
			0)
			lab_fail("the grant table cannot be had");
		return;
	}
	if (lab_hypercall(XEN_GRANT_TABLE_OP, XEN_GRANT_SETUP_TABLE, (uint64_t)&setup, 1, 0) != 0 ||
		setup.status != 0 ||
		lab_hypercall(XEN_UPDATE_VA_MAPPING, (uint64_t)grants, frame * LAB_PAGE_SIZE | leaf,
			XEN_UVMF_INVLPG, 0) != 0)
		lab_fail("the grant table cannot be mapped");
}

/* The other side counts on: without an interrupt we look again and again. */
static void wait_a_little(void)
{
	uint32_t port = ring_event;

	lab_hypercall(XEN_EVENT_CHANNEL_OP, XEN_EVENT_SEND, (uint64_t)&port, 0, 0);
	lab_hypercall(XEN_SCHED_OP, XEN_SCHED_YIELD, 0, 0, 0);
}

static void send(const void *data, unsigned size)
{
	const char *byte = data;

	for (unsigned i = 0; i < size; i++) {
		uint32_t at = ring->request_prod;

		while (at - *(volatile uint32_t *)&ring->request_cons == sizeof(ring->request))
			wait_a_little();
		ring->request[at % sizeof(ring->request)] = byte[i];
		LAB_BARRIER();
		ring->request_prod = at + 1;
	}
}

static void receive(void *data, unsigned size)
{
	char *byte = data;

	for (unsigned i = 0; i < size; i++) {
		uint32_t at = ring->reply_cons;

		while (*(volatile uint32_t *)&ring->reply_prod == at)
			wait_a_little();
		LAB_BARRIER();
		byte[i] = ring->reply[at % sizeof(ring->reply)];
		LAB_BARRIER();
		ring->reply_cons = at + 1;
	}
}

/* An answer of at most TEXT_MAX bytes; its size. */
static unsigned store_ask(
	unsigned type, const char *path, const void *value, unsigned size, char *answer)
{
	unsigned path_size = (unsigned)lab_strlen(path) + 1;
	struct xen_store_head head = { .type = type, .length = path_size + size };

	send(&head, sizeof(head));
	send(path, path_size);
	send(value, size);
	receive(&head, sizeof(head));
	if (head.type != type || head.length > TEXT_MAX)
		lab_fail("xenstore does not take it");
	receive(answer, head.length);
	return head.length;
}

static void store_write(const char *path, const char *value)
{
	char answer[TEXT_MAX];

	store_ask(XEN_STORE_WRITE, path, value, (unsigned)lab_strlen(value), answer);
}

static char *put_number(char *to, unsigned number)
{
	if (number >= 10)
		to = put_number(to, number / 10);
	*to++ = (char)('0' + number % 10);
	return to;
}

/* The path stays ours, and nobody else's but this domain's, to be read. */
static void store_let_read(const char *path, unsigned domid)
{
	char answer[TEXT_MAX], who[TEXT_MAX + 16], *to = who;
	unsigned size = store_ask(XEN_STORE_READ, "domid", NULL, 0, who + 1);

	*to++ = 'n';
	to += size;
	*to++ = '\0';
	*to++ = 'r';
	to = put_number(to, domid);
	*to++ = '\0';
	store_ask(XEN_STORE_SET_PERMS, path, who, (unsigned)(to - who), answer);
}

static void set_grant(unsigned ref, unsigned domid, uint64_t pa, unsigned flags)
{
	grants[ref].domid = (uint16_t)domid;
	grants[ref].frame = (uint32_t)(lab_xen_machine(pa) / LAB_PAGE_SIZE);
	LAB_BARRIER();
	grants[ref].flags = (uint16_t)(XEN_GRANT_ACCESS | flags);
}

void lab_grant(const char *path, const void *pages, unsigned nr)
{
	uint64_t pa = (uint64_t)pages - LAB_IMAGE_OFFSET;
	char text[TEXT_MAX], *to = text;

	if (nr > TEXT_MAX / 5)
		lab_fail("too many pages to grant");
	map_grants();
	for (unsigned i = 0; i < nr; i++) {
		unsigned ref = XEN_GRANT_FIRST_FREE + i;

		set_grant(ref, 0, pa + i * LAB_PAGE_SIZE, XEN_GRANT_READ_ONLY);
		if (i != 0)
			*to++ = ',';
		to = put_number(to, ref);
	}
	*to = '\0';
	store_write(path, text);
}

void lab_grant_to(unsigned domid, const char *path, const void *page)
{
	char text[16];

	map_grants();
	set_grant(XEN_GRANT_FIRST_FREE, domid, (uint64_t)page - LAB_IMAGE_OFFSET, 0);
	*put_number(text, XEN_GRANT_FIRST_FREE) = '\0';
	store_write(path, text);
	store_let_read(path, domid);
}
