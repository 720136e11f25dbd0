/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes from a gdb stub: framing, escapes, threads, registers; then a whole conversation. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/gdb/regs.h"
#include "backend/gdb/stub.h"
#include "told_regs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void look_at(const uint8_t *text, size_t size)
{
	struct uni_gdb_thread thread[4];
	struct uni_regs regs = { 0 };
	uint32_t number;
	uint64_t value;
	uint8_t frame[600];
	char name[32], *copy;
	size_t nr = 0, pos = 0;

	(void)uni_gdb_threads(text, size, thread, 4, &nr);
	require(nr <= 4);
	for (size_t i = 0; i < nr; i++) {
		require(strpbrk(thread[i].text, "#$") == NULL);
		told_text(thread[i].text);
	}
	if (uni_gdb_regs(&uni_arch_x86_64, text, size, true, &regs) == 0)
		tell_regs(&regs);
	regs = (struct uni_regs){ 0 };
	if (uni_gdb_regs(&uni_arch_aarch64, text, size, true, &regs) == 0)
		tell_regs(&regs);
	if (uni_gdb_reg_value(text, size, &value))
		told_u64(value);
	copy = malloc(size + 1);
	require(copy != NULL);
	memcpy(copy, text, size);
	copy[size] = '\0';
	(void)uni_gdb_xml_arch(copy, name, sizeof(name));
	(void)uni_gdb_xml_reg(copy, "SCTLR", &number);
	/* A packet of ours must come back unchanged. */
	if (strpbrk(copy, "#$}*") == NULL && uni_gdb_frame(frame, sizeof(frame), &pos, copy)) {
		struct uni_gdb_item item;

		require(uni_gdb_next(frame, pos, &item) == pos && item.kind == UNI_GDB_PACKET);
		require(item.raw_size == strlen(copy));
	}
	free(copy);
}

static void parse(const uint8_t *data, size_t size)
{
	uint8_t out[2048];
	size_t at = 0, n;

	while (at < size) {
		struct uni_gdb_item item;
		size_t used = uni_gdb_next(data + at, size - at, &item);

		require(used <= size - at && (used == 0) == (item.kind == UNI_GDB_MORE));
		if (used == 0)
			break;
		at += used;
		if (item.raw != NULL &&
			uni_gdb_unescape(item.raw, item.raw_size, out, sizeof(out), &n) == 0) {
			require(n <= sizeof(out));
			look_at(out, n);
		}
	}
}

/* The input is all that the stub will ever say. */
static void converse(const uint8_t *data, size_t size)
{
	struct uni_gdb_stub *s = calloc(1, sizeof(*s));
	struct uni_regs regs[UNI_VCPU_MAX];
	const struct uni_vcpuset all = uni_vcpuset_first(UNI_VCPU_MAX);
	int pair[2], big = 1 << 20;
	uint8_t buf[4096];

	require(s != NULL);
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	if (send(pair[1], data, size, MSG_NOSIGNAL) != (ssize_t)size)
		size = 0;
	(void)shutdown(pair[1], SHUT_WR);
	if (uni_gdb_stub_open(s, pair[0], &uni_arch_x86_64, true, regs, NULL) == 0) {
		require(s->nr_threads >= 1 && s->nr_threads <= UNI_VCPU_MAX);
		(void)uni_gdb_stub_snap(s, &all, regs);
		(void)uni_gdb_stub_read(s, 0x1000, buf, sizeof(buf));
		(void)uni_gdb_stub_resume(s);
		(void)uni_gdb_stub_idle(s);
		uni_gdb_stub_leave(s);
	}
	require(s->state == UNI_GDB_LOST);
	(void)close(pair[1]);
	free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse(data, size);
	if (size <= 65536)
		converse(data, size);
	return 0;
}
