/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page that a guest of Xen shares with us. The input begins with the guest's indexes; then each
 * byte says what we do, and what the guest moves before. Whatever the guest writes into the page,
 * we stay within it and keep our own indexes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/stream/ring.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void send_some(struct uni_line *l, struct uni_ring_page *p, size_t n)
{
	static const uint8_t bytes[256];
	uint32_t used = p->in_prod - p->in_cons, before = p->in_prod;
	int rc = l->ops->send(l->ctx, bytes, n, 0);

	/* The deadline is over: what has no room is not sent. */
	require(rc == 0 || rc == -UNI_ETIMEDOUT || rc == -UNI_EGONE);
	told_u64((uint64_t)rc);
	require((rc == -UNI_EGONE) == (used > sizeof(p->in) && n != 0));
	require(p->in_prod - before <= n && (rc != 0 || p->in_prod - before == n));
}

static void receive_some(struct uni_line *l, struct uni_ring_page *p, size_t n)
{
	uint32_t have = p->out_prod - p->out_cons, before = p->out_cons;
	uint8_t *buf = malloc(n);
	int rc;

	require(buf != NULL);
	rc = l->ops->receive(l->ctx, buf, n, 0);
	require(have <= sizeof(p->out) ? rc == -UNI_ETIMEDOUT || rc > 0 : rc == -UNI_EGONE);
	require(rc <= (int)n && p->out_cons - before == (uint32_t)(rc > 0 ? rc : 0));
	told(buf, rc > 0 ? (size_t)rc : 0);
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_grant_page page = { .fd = { -1, -1 }, .domid = 7, .ref = 8 };
	struct uni_ring_page *p;
	struct uni_err err = { 0 };
	struct uni_line l;

	if (size < 16)
		return 0;
	page.at = mmap(
		NULL, UNI_GRANT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(page.at != MAP_FAILED);
	p = page.at;
	memcpy(&p->in_cons, data, 16);
	require(uni_line_open_ring(&page, &l, &err) == 0);
	if (p->in_prod - p->in_cons > sizeof(p->in)) /* then it starts anew */
		p->in_prod = p->in_cons;
	for (size_t i = 16; i + 1 < size; i += 2) {
		uint32_t in_prod = p->in_prod, out_cons = p->out_cons;

		if ((data[i] & 2) != 0) /* an honest guest */
			p->out_prod += data[i + 1], p->in_cons = p->in_prod;
		if ((data[i] & 4) != 0)
			p->out_prod = (uint32_t)data[i + 1] << (data[i] >> 3);
		if ((data[i] & 0x80) != 0)
			p->in_cons ^= (uint32_t)data[i + 1] << 4;
		if ((data[i] & 1) != 0)
			send_some(&l, p, data[i + 1]);
		else
			receive_some(&l, p, data[i + 1] + 1u);
		require(p->in_prod - in_prod <= 256 && p->out_cons - out_cons <= 256);
	}
	l.ops->close(l.ctx);
	return 0;
}
