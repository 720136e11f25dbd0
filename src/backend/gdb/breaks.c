/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/gdb/breaks.h"

#include <inttypes.h>

#include "base/clock.h"
#include "backend/gdb/stub.h"

#define ANSWER_NS UNI_NSEC_PER_SEC
#define INTERRUPT 0x03

bool uni_gdb_breaks_any(const struct uni_gdb_breaks *b)
{
	for (size_t i = 0; b != NULL && i < UNI_BREAKS_MAX; i++) {
		if (atomic_load(&b->addr[i]) != 0)
			return true;
	}
	return false;
}

int uni_gdb_breaks_at(const struct uni_gdb_breaks *b, uint64_t addr)
{
	for (int i = 0; b != NULL && i < UNI_BREAKS_MAX; i++) {
		if (addr != 0 && atomic_load(&b->addr[i]) == addr)
			return i;
	}
	return -1;
}

/* A guest that somebody else had paused may run again by now: then this stops it. */
static int ask_about(struct uni_gdb_stub *s, char what, uint64_t addr)
{
	if (s->state != UNI_GDB_HELD)
		uni_gdb_link_byte(&s->link, INTERRUPT);
	uni_gdb_link_packet(&s->link, "%c1,%" PRIx64 ",%x", what, addr,
		(unsigned)atomic_load(&s->breaks->kind));
	return uni_gdb_link_ask(&s->link, uni_now_ns() + ANSWER_NS);
}

int uni_gdb_breaks_insert(struct uni_gdb_stub *s, size_t i, uint64_t addr)
{
	int rc;

	atomic_store(&s->breaks->kind, s->arch->insn);
	atomic_store(&s->breaks->addr[i], addr);
	rc = ask_about(s, 'Z', addr);
	if (rc != 0 || uni_gdb_reply_is(&s->link, "OK"))
		return rc; /* after a failure it may be there: it stays in the list */
	atomic_store(&s->breaks->addr[i], 0);
	return -UNI_ENOTSUP;
}

int uni_gdb_breaks_remove(struct uni_gdb_stub *s, size_t i)
{
	uint64_t addr = atomic_load(&s->breaks->addr[i]);
	int rc = addr != 0 ? ask_about(s, 'z', addr) : 0;

	if (rc == 0)
		atomic_store(&s->breaks->addr[i], 0);
	return rc;
}

int uni_gdb_breaks_remove_all(struct uni_gdb_stub *s)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && s->breaks != NULL && i < UNI_BREAKS_MAX; i++)
		rc = uni_gdb_breaks_remove(s, i);
	return rc;
}
