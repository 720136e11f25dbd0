/* SPDX-License-Identifier: BSD-2-Clause */
/* The packet layer: framing, escapes, run lengths, hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "arch/arch.h"
#include "base/checked.h"
#include "base/err.h"
#include "backend/gdb/packet.h"
#include "backend/gdb/regs.h"

static size_t next(const char *text, struct uni_gdb_item *item)
{
	return uni_gdb_next((const uint8_t *)text, strlen(text), item);
}

static void frames(void **state)
{
	uint8_t buf[64];
	size_t pos = 0;
	struct uni_gdb_item item;

	assert_true(uni_gdb_frame(buf, sizeof(buf), &pos, "qC"));
	assert_int_equal(pos, 6);
	assert_memory_equal(buf, "$qC#b4", 6);
	assert_int_equal(uni_gdb_next(buf, pos, &item), 6);
	assert_int_equal(item.kind, UNI_GDB_PACKET);
	assert_int_equal(item.raw_size, 2);
	assert_true(uni_gdb_frame(buf, sizeof(buf), &pos, ""));
	assert_memory_equal(buf + 6, "$#00", 4);
	/* Exactly full, and one too many. */
	pos = sizeof(buf) - 6;
	assert_true(uni_gdb_frame(buf, sizeof(buf), &pos, "qC"));
	assert_int_equal(pos, sizeof(buf));
	pos = sizeof(buf) - 5;
	assert_false(uni_gdb_frame(buf, sizeof(buf), &pos, "qC"));
	assert_int_equal(pos, sizeof(buf) - 5);
	assert_false(uni_gdb_frame(buf, sizeof(buf), &(size_t){ sizeof(buf) }, ""));
}

static void items(void **state)
{
	struct uni_gdb_item item;

	assert_int_equal(next("", &item), 0);
	assert_int_equal(item.kind, UNI_GDB_MORE);
	assert_int_equal(next("+$OK#9a", &item), 1);
	assert_int_equal(item.kind, UNI_GDB_ACK);
	assert_int_equal(next("-", &item), 1);
	assert_int_equal(item.kind, UNI_GDB_NACK);
	assert_int_equal(next("junk\x03$OK#9a", &item), 5);
	assert_int_equal(item.kind, UNI_GDB_JUNK);
	assert_int_equal(next("$OK#9a+", &item), 6);
	assert_int_equal(item.kind, UNI_GDB_PACKET);
	assert_int_equal(next("$OK#9A", &item), 6);
	assert_int_equal(item.kind, UNI_GDB_PACKET);
	assert_int_equal(next("%Stop:T05#99", &item), 12);
	assert_int_equal(item.kind, UNI_GDB_NOTIFY);
	assert_int_equal(next("$OK#9b", &item), 6);
	assert_int_equal(item.kind, UNI_GDB_BAD);
	assert_int_equal(next("$OK#zz", &item), 6);
	assert_int_equal(item.kind, UNI_GDB_BAD);
}

/* A packet cut anywhere asks for more, and nothing else. */
static void cut_packets(void **state)
{
	const char whole[] = "$T05thread:01;#07";
	struct uni_gdb_item item;

	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		assert_int_equal(uni_gdb_next((const uint8_t *)whole, n, &item), 0);
		assert_int_equal(item.kind, UNI_GDB_MORE);
	}
}

static int unescape(const char *raw, char *out, size_t cap, size_t *size)
{
	return uni_gdb_unescape((const uint8_t *)raw, strlen(raw), (uint8_t *)out, cap, size);
}

static void escapes(void **state)
{
	char out[128];
	size_t n;

	assert_int_equal(unescape("a}\x03z", out, sizeof(out), &n), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(out, "a#z", 3);
	/* ' ' is 32: 3 more. */
	assert_int_equal(unescape("0* 1", out, sizeof(out), &n), 0);
	assert_int_equal(n, 5);
	assert_memory_equal(out, "00001", 5);
	/* '~' is 126: 97 more. */
	assert_int_equal(unescape("f*~", out, sizeof(out), &n), 0);
	assert_int_equal(n, 98);
	assert_int_equal(unescape("f*~", out, 98, &n), 0);
	assert_int_equal(unescape("f*~", out, 97, &n), -UNI_ERANGE);
	assert_int_equal(unescape("abc", out, 2, &n), -UNI_ERANGE);
	assert_int_equal(unescape("*~", out, sizeof(out), &n), -UNI_EPROTO);
	assert_int_equal(unescape("a*", out, sizeof(out), &n), -UNI_EPROTO);
	assert_int_equal(unescape("a*\x1f", out, sizeof(out), &n), -UNI_EPROTO);
	assert_int_equal(unescape("a*\x7f", out, sizeof(out), &n), -UNI_EPROTO);
	assert_int_equal(unescape("a}", out, sizeof(out), &n), -UNI_EPROTO);
}

static void numbers(void **state)
{
	uint8_t out[4];
	uint64_t v;
	size_t pos = 0;

	assert_true(uni_gdb_unhex((const uint8_t *)"00fFa1", 6, out, 3));
	assert_memory_equal(out, "\x00\xff\xa1", 3);
	assert_false(uni_gdb_unhex((const uint8_t *)"00xx", 4, out, 2));
	assert_false(uni_gdb_unhex((const uint8_t *)"001", 3, out, 2));
	assert_true(uni_gdb_hex_u64((const uint8_t *)"ffffffffffffffff;", 17, &pos, &v));
	assert_int_equal(pos, 16);
	assert_true(v == UINT64_MAX);
	pos = 0;
	assert_false(uni_gdb_hex_u64((const uint8_t *)"10000000000000000", 17, &pos, &v));
	assert_false(uni_gdb_hex_u64((const uint8_t *)";", 1, &pos, &v));
	assert_false(uni_gdb_hex_u64((const uint8_t *)"", 0, &pos, &v));
}

static int threads(const char *reply, struct uni_gdb_thread *ret, size_t cap, size_t *nr)
{
	return uni_gdb_threads((const uint8_t *)reply, strlen(reply), ret, cap, nr);
}

static void thread_lists(void **state)
{
	static const char *const bad[] = { "", "m", "l1", "mp1", "mp1.", "m1,,2", "m1,", "m-1",
		"m1;2", "m1#", "E01", "OK", "m11111111111111111", "mp1.2.3" };
	struct uni_gdb_thread t[3];
	size_t nr = 0;

	assert_int_equal(threads("m1,p1.2", t, 3, &nr), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(t[0].text, "1");
	assert_string_equal(t[1].text, "p1.2");
	assert_int_equal(threads("m3", t, 3, &nr), 0);
	assert_int_equal(threads("m4,5", t, 3, &nr), 0); /* counted only */
	assert_int_equal(nr, 5);
	assert_int_equal(threads("l", t, 3, &nr), 1);
	for (size_t i = 0; i < uni_array_len(bad); i++) {
		nr = 0;
		if (strcmp(bad[i], "m1,") != 0) /* a list may end so */
			assert_int_equal(threads(bad[i], t, 3, &nr), -UNI_EPROTO);
	}
}

static void registers(void **state)
{
	const struct uni_arch *a = &uni_arch_x86_64;
	char hex[1217];
	struct uni_regs r;
	uint64_t v;

	memset(hex, '0', sizeof(hex) - 1);
	hex[1216] = '\0';
	memcpy(hex + 2 * 128, "0010408000000000", 16); /* rip, little endian */
	memcpy(hex + 2 * 56, "f0ffffffffffffff", 16);  /* rsp */
	memcpy(hex + 2 * 188, "1100008000000000", 16); /* cr0 */
	memcpy(hex, "xxxxxxxxxxxxxxxx", 16);	       /* rax is not known */
	assert_int_equal(uni_gdb_regs(a, (uint8_t *)hex, 1216, true, &r), 0);
	assert_true(r.pc_valid && r.pc == 0x80401000);
	assert_true(r.sp_valid && r.sp == UINT64_MAX - 15);
	assert_false(uni_regs_get(&r, UNI_X86_RAX, &v));
	assert_true(uni_regs_get_sys(&r, UNI_X86_CR0, &v) && v == 0x80000011);
	assert_int_equal(r.state, UNI_VCPU_RUNNING);
	assert_int_equal(uni_gdb_regs(a, (uint8_t *)hex, 1216, false, &r), 0);
	assert_int_equal(r.sys_valid, 0);
	/* Cut anywhere: never a read beyond, and no registers without pc. */
	for (size_t n = 0; n <= 1216; n++) {
		int rc = uni_gdb_regs(a, (uint8_t *)hex + 1216 - n, n, true, &r);

		assert_true(rc == 0 || rc == -UNI_EPROTO);
	}
	assert_int_equal(uni_gdb_regs(a, (uint8_t *)hex, 271, true, &r), -UNI_EPROTO);
	assert_int_equal(uni_gdb_regs(a, (uint8_t *)hex, 272, true, &r), 0);
	/* A vCPU that was never started. */
	memset(hex, '0', 1216);
	memcpy(hex + 2 * 128, "f0ff000000000000", 16);
	memcpy(hex + 2 * 188, "1000006000000000", 16);
	assert_int_equal(uni_gdb_regs(a, (uint8_t *)hex, 1216, true, &r), 0);
	assert_int_equal(r.state, UNI_VCPU_OFFLINE);
}

static void architectures(void **state)
{
	struct uni_err err = { 0 };
	char name[16];

	assert_true(uni_gdb_xml_arch("<a><architecture>aarch64</architecture>", name, 16));
	assert_string_equal(name, "aarch64");
	assert_false(uni_gdb_xml_arch("<architecture>", name, 16));
	assert_false(uni_gdb_xml_arch("<architecture></architecture>", name, 16));
	assert_false(uni_gdb_xml_arch("<architecture>0123456789abcdef</", name, 16));
	assert_int_equal(uni_gdb_check_arch(&uni_arch_x86_64, "i386:x86-64", &err), 0);
	assert_int_equal(uni_gdb_check_arch(&uni_arch_x86_64, "aarch64", &err), -UNI_EMISMATCH);
	assert_non_null(strstr(err.msg, "aarch64"));
}

static void described_registers(void **state)
{
	static const char xml[] = "<reg name=\"A\" bitsize=\"64\" regnum=\"12\"/>"
				  "<reg name=\"AB\" regnum=\"70000\"/><reg name=\"C\" x=\"1\"/>"
				  "<reg name=\"D\" regnum=\"\"/><reg name=\"E\" regnum=\"7";
	uint32_t n = 0;
	uint64_t v = 0;

	assert_true(uni_gdb_xml_reg(xml, "A", &n) && n == 12);
	assert_true(uni_gdb_xml_reg(xml, "AB", &n) && n == 70000);
	assert_false(uni_gdb_xml_reg(xml, "B", &n));
	assert_false(uni_gdb_xml_reg(xml, "C", &n)); /* the number is another one's */
	assert_false(uni_gdb_xml_reg(xml, "D", &n));
	assert_false(uni_gdb_xml_reg(xml, "E", &n));
	assert_false(uni_gdb_xml_reg("<reg name=\"A\" regnum=\"99999999999\">", "A", &n));
	assert_true(uni_gdb_reg_value((const uint8_t *)"efcdab8967452301", 16, &v));
	assert_true(v == 0x0123456789abcdef);
	assert_true(uni_gdb_reg_value((const uint8_t *)"3412", 4, &v) && v == 0x1234);
	assert_false(uni_gdb_reg_value((const uint8_t *)"E14", 0, &v));
	assert_false(uni_gdb_reg_value((const uint8_t *)"xxxxxxxxxxxxxxxx", 16, &v));
	assert_false(uni_gdb_reg_value((const uint8_t *)"000000000000000000", 18, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),
		cmocka_unit_test(items),
		cmocka_unit_test(cut_packets),
		cmocka_unit_test(escapes),
		cmocka_unit_test(numbers),
		cmocka_unit_test(thread_lists),
		cmocka_unit_test(registers),
		cmocka_unit_test(architectures),
		cmocka_unit_test(described_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
