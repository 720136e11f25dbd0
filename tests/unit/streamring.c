/* SPDX-License-Identifier: BSD-2-Clause */
/* The page that a guest of Xen and its profiler share: bytes in order, whatever the guest does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "backend/stream/ring.h"

#define SOON (uni_now_ns() + UNI_NSEC_PER_MSEC)

static struct uni_ring_page *page;
static struct uni_line line;
static int pipe_fd[2];

/* Indexes about to run over: the guest is as far as it may be. */
static int begin(void **state)
{
	struct uni_grant_page p = { .domid = 5, .ref = 8 };

	p.at = mmap(
		NULL, UNI_GRANT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p.at == MAP_FAILED || pipe(pipe_fd) != 0)
		return -1;
	page = p.at;
	page->in_cons = page->in_prod = UINT32_MAX - 10;
	page->out_cons = UINT32_MAX - 100;
	page->out_prod = UINT32_MAX - 20; /* 80 bytes for somebody before us */
	p.fd[0] = pipe_fd[1];
	p.fd[1] = -1;
	return uni_line_open_ring(&p, &line, NULL);
}

static int end(void **state)
{
	char c;

	line.ops->close(line.ctx);
	/* The file that held the page is closed with it. */
	if (read(pipe_fd[0], &c, 1) != 0)
		return -1;
	return close(pipe_fd[0]);
}

/* The guest writes nr bytes, numbered. */
static uint8_t number;
static void guest_says(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		page->out[page->out_prod++ % sizeof(page->out)] = number++;
}

static void receives(void **state)
{
	uint8_t buf[4096], expected = 0;

	assert_string_equal(line.text, "domain 5's grant 8");
	assert_int_equal(page->out_cons, UINT32_MAX - 20);
	assert_int_equal(line.ops->receive(line.ctx, buf, sizeof(buf), SOON), -UNI_ETIMEDOUT);
	number = 0;
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t left = round % 2 != 0 ? sizeof(page->out) : round;

		guest_says(left);
		while (left != 0) {
			int n = line.ops->receive(line.ctx, buf, 1 + round * 7, SOON);

			assert_in_range(n, 1, left);
			for (int i = 0; i < n; i++)
				assert_int_equal(buf[i], expected++);
			left -= (uint32_t)n;
		}
		assert_int_equal(page->out_cons, page->out_prod);
	}
}

static void sends(void **state)
{
	uint8_t data[sizeof(page->in) + 1];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 3);
	assert_int_equal(line.ops->send(line.ctx, data, sizeof(page->in), SOON), 0);
	assert_int_equal(page->in_prod - page->in_cons, sizeof(page->in));
	for (size_t i = 0; i < sizeof(page->in); i++)
		assert_int_equal(page->in[page->in_cons++ % sizeof(page->in)], data[i]);
	/* One too many for a guest that does not read. */
	assert_int_equal(line.ops->send(line.ctx, data, sizeof(data), SOON), -UNI_ETIMEDOUT);
	assert_int_equal(page->in_prod - page->in_cons, sizeof(page->in));
}

/* More than there can be is no answer; ours are not the guest's to change. */
static void distrusts(void **state)
{
	uint8_t buf[4096] = { 0 };

	page->out_prod = page->out_cons + sizeof(page->out) + 1;
	assert_int_equal(line.ops->receive(line.ctx, buf, sizeof(buf), SOON), -UNI_EGONE);
	page->out_prod = page->out_cons - 1;
	assert_int_equal(line.ops->receive(line.ctx, buf, sizeof(buf), SOON), -UNI_EGONE);
	page->out_prod = page->out_cons + sizeof(page->out);
	page->out_cons += 3;
	assert_in_range(line.ops->receive(line.ctx, buf, sizeof(buf), SOON), 1, sizeof(page->out));

	page->in_prod += 7;
	assert_int_equal(line.ops->send(line.ctx, buf, 1, SOON), 0);
	assert_int_equal(page->in_prod, page->in_cons + 1);
	page->in_cons += 2;
	assert_int_equal(line.ops->send(line.ctx, buf, 1, SOON), -UNI_EGONE);
	page->in_cons -= 2 + sizeof(page->in);
	assert_int_equal(line.ops->send(line.ctx, buf, 1, SOON), -UNI_EGONE);
}

/* A page in which all is nonsense begins anew. */
static void begins_anew(void **state)
{
	struct uni_grant_page p = { .fd = { -1, -1 } };
	struct uni_ring_page *spoilt;
	struct uni_line l;

	p.at = mmap(
		NULL, UNI_GRANT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p.at, MAP_FAILED);
	memset(p.at, 0x5a, UNI_GRANT_PAGE);
	spoilt = p.at;
	spoilt->in_prod = 7;
	assert_int_equal(uni_line_open_ring(&p, &l, NULL), 0);
	assert_int_equal(l.ops->send(l.ctx, "x", 1, SOON), 0);
	assert_int_equal(spoilt->in_prod, spoilt->in_cons + 1);
	assert_int_equal(spoilt->out_cons, spoilt->out_prod);
	l.ops->close(l.ctx);
}

static void parses(void **state)
{
	static const char *const bad[] = { "", ":", "5:", ":8", "x", "5:x", "-1", "32752", "5 :8",
		"5:8:1", "5:4294967296", "12345678", "5,8" };
	struct uni_grant g = { 0 };

	assert_true(uni_grant_parse("5", &g));
	assert_true(g.domid == 5 && !g.has_ref);
	assert_true(uni_grant_parse("32751:4294967295", &g));
	assert_true(g.domid == 32751 && g.has_ref && g.ref == UINT32_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(uni_grant_parse(bad[i], &g));
		assert_int_equal(g.domid, 32751);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(receives, begin, end),
		cmocka_unit_test_setup_teardown(sends, begin, end),
		cmocka_unit_test_setup_teardown(distrusts, begin, end),
		cmocka_unit_test(begins_anew),
		cmocka_unit_test(parses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
