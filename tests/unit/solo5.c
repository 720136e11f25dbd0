/* SPDX-License-Identifier: BSD-2-Clause */
/* Solo5's notes: the binding, and the devices that the manifest names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf_spec.h"
#include "obj/elffile.h"
#include "obj/solo5.h"

#define ABI	 0x31494241
#define MANIFEST 0x3154464d

/* Notes as they lie in the file. */
struct notes {
	uint8_t v[8192];
	size_t len;
};

static void put_u32(struct notes *n, uint32_t v)
{
	assert_true(n->len + 4 <= sizeof(n->v));
	for (size_t i = 0; i < 4; i++)
		n->v[n->len++] = (uint8_t)(v >> 8 * i);
}

static void begin_note(struct notes *n, const char *name, uint32_t type, uint32_t len)
{
	put_u32(n, 6);
	put_u32(n, len);
	put_u32(n, type);
	memcpy(n->v + n->len, name, 6);
	n->len += 8;
}

static void put_abi(struct notes *n, uint32_t binding, uint32_t version)
{
	begin_note(n, "Solo5", ABI, 16);
	put_u32(n, binding);
	put_u32(n, version);
	put_u32(n, 0);
	put_u32(n, 0);
}

static void put_entry(struct notes *n, const char *name, uint32_t type)
{
	assert_true(n->len + 104 <= sizeof(n->v));
	(void)snprintf((char *)n->v + n->len, 69, "%s", name);
	n->len += 68;
	put_u32(n, type);
	for (int i = 0; i < 8; i++)
		put_u32(n, 0xffffffff); /* properties, backing, attached: of no concern */
}

/* A manifest whose first entry is the reserved one. */
static void begin_manifest(struct notes *n, uint32_t version, uint32_t entries)
{
	begin_note(n, "Solo5", MANIFEST, 12 + entries * 104);
	put_u32(n, 0xffffffff); /* the pad */
	put_u32(n, version);
	put_u32(n, entries);
	put_entry(n, "", 1u << 30);
}

static void parse(const struct notes *n, struct uni_solo5 *ret)
{
	static struct elf_image e;
	const struct elf_spec spec = { .text = 0x100000,
		.data = 0x200000,
		.code_size = 8,
		.build_id = "1234",
		.notes = n->v,
		.notes_size = n->len };
	struct uni_err err = { 0 };

	elf_spec_write(&spec, &e);
	assert_int_equal(uni_solo5_parse(e.data, e.size, ret, &err), 0);
}

static void bindings(void **state)
{
	const char *const names[] = { "hvt", "spt", "virtio", "muen", "genode", "xen" };
	struct uni_solo5 s;

	for (uint32_t i = 0; i < 6; i++) {
		struct notes n = { .len = 0 };

		put_abi(&n, i + 1, i + 7);
		parse(&n, &s);
		assert_string_equal(uni_solo5_binding_name(s.binding), names[i]);
		assert_int_equal(s.abi, i + 7);
		assert_false(s.has_manifest);
	}
	assert_null(uni_solo5_binding_name(0));
	assert_null(uni_solo5_binding_name(7));
	assert_null(uni_solo5_binding_name(UINT32_MAX));
	parse(&(struct notes){ .len = 0 }, &s);
	assert_int_equal(s.binding, UNI_SOLO5_NONE);
}

static void others_notes_are_not_solo5s(void **state)
{
	struct notes n = { .len = 0 };
	struct uni_solo5 s;

	begin_note(&n, "Solo6", ABI, 16);
	for (int i = 0; i < 4; i++)
		put_u32(&n, 1);
	put_abi(&n, UNI_SOLO5_SPT, 1);
	put_abi(&n, UNI_SOLO5_HVT, 2); /* the first counts */
	parse(&n, &s);
	assert_int_equal(s.binding, UNI_SOLO5_SPT);
}

static void devices(void **state)
{
	struct notes n = { .len = 0 };
	struct uni_solo5 s;

	begin_manifest(&n, 1, 3);
	put_entry(&n, "service0", 2);
	put_entry(&n, "Storage", 1);
	put_abi(&n, UNI_SOLO5_HVT, 2);
	parse(&n, &s);
	assert_int_equal(s.binding, UNI_SOLO5_HVT);
	assert_true(s.has_manifest && !s.partly);
	assert_int_equal(s.nr_devices, 2);
	assert_string_equal(s.device[0].name, "service0");
	assert_true(s.device[0].is_net);
	assert_string_equal(s.device[1].name, "Storage");
	assert_false(s.device[1].is_net);
}

static void needs_none(void **state)
{
	struct notes n = { .len = 0 };
	struct uni_solo5 s;

	begin_manifest(&n, 1, 1);
	parse(&n, &s);
	assert_true(s.has_manifest && !s.partly);
	assert_int_equal(s.nr_devices, 0);
}

/* Devices that cannot be told are not left out silently. */
static void strange_manifests(void **state)
{
	static char longest[69], too_long[69];
	const struct {
		const char *name;
		uint32_t version, type, said;
		bool partly;
	} row[] = {
		{ "ok", 1, 1, 2, false },
		{ "ok", 2, 1, 2, true },
		{ "ok", 1, 3, 2, true },
		{ "ok", 1, 0, 2, true },
		{ "", 1, 1, 2, true },
		{ "a b", 1, 1, 2, true },
		{ "$(x)", 1, 1, 2, true },
		{ "\xc3\xa9", 1, 1, 2, true },
		{ longest, 1, 2, 2, false },
		{ too_long, 1, 2, 2, true },
		{ "ok", 1, 1, 3, true }, /* cut off */
		{ "ok", 1, 1, UINT32_MAX, true },
	};

	memset(longest, 'x', 67);
	memset(too_long, 'x', 68);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct notes n = { .len = 0 };
		struct uni_solo5 s;

		begin_note(&n, "Solo5", MANIFEST, 12 + 2 * 104);
		put_u32(&n, 0);
		put_u32(&n, row[i].version);
		put_u32(&n, row[i].said);
		put_entry(&n, "", 1u << 30);
		put_entry(&n, row[i].name, row[i].type);
		parse(&n, &s);
		assert_int_equal(s.partly, row[i].partly);
		assert_int_equal(s.nr_devices, row[i].said == 2 ? !row[i].partly : 1);
	}
}

static void as_many_as_solo5_permits(void **state)
{
	struct notes n = { .len = 0 };
	struct uni_solo5 s;
	char name[8];

	begin_manifest(&n, 1, 66);
	for (int i = 0; i < 65; i++) {
		(void)snprintf(name, sizeof(name), "b%d", i);
		put_entry(&n, name, 1);
	}
	parse(&n, &s);
	assert_int_equal(s.nr_devices, UNI_SOLO5_DEVICES_MAX);
	assert_string_equal(s.device[63].name, "b63");
	assert_true(s.partly);
}

/* Each cut of the descriptors ends within its bytes (ASan), and gives no device that is not whole.
 */
static void cut_off(void **state)
{
	struct notes n = { .len = 0 };
	struct uni_solo5 s;

	begin_manifest(&n, 1, 2);
	put_entry(&n, "net", 2);
	for (size_t len = 0; len <= 12 + 2 * 104; len++) {
		uint8_t *desc = malloc(len + 1);

		assert_non_null(desc);
		memcpy(desc, n.v + 20, len);
		s = (struct uni_solo5){ 0 };
		uni_solo5_take(MANIFEST, desc, len, &s);
		assert_int_equal(s.nr_devices, len == 12 + 2 * 104);
		assert_int_equal(s.partly, len != 12 + 2 * 104);
		uni_solo5_take(ABI, desc, len < 16 ? len : 16, &s);
		assert_int_equal(s.binding, len < 8 ? 0 : 0xffffffff);
		free(desc);
	}
}

/* A build id of more bytes than there is room for is none; notes of others are passed over. */
static void long_build_ids(void **state)
{
	const uint32_t build_id = 3; /* NT_GNU_BUILD_ID */

	(void)state;
	for (uint32_t len = 0; len <= UNI_BUILD_ID_MAX + 8; len += 4) {
		struct {
			struct uni_elf_notes notes;
			uint8_t behind[16];
		} r = { 0 };
		struct notes n = { .len = 0 };

		put_u32(&n, 4);
		put_u32(&n, len);
		put_u32(&n, build_id);
		put_u32(&n, 0x00554e47); /* "GNU" */
		for (uint32_t i = 0; i < len; i += 4)
			put_u32(&n, 0xabababab);
		uni_elf_notes_parse(n.v, n.len, &r.notes);
		assert_int_equal(r.notes.build_id_len, len <= UNI_BUILD_ID_MAX ? len : 0);
		assert_int_equal(r.notes.pvh_entry, 0);
		assert_int_equal(
			r.notes.build_id[0], len == 0 || len > UNI_BUILD_ID_MAX ? 0 : 0xab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bindings),
		cmocka_unit_test(others_notes_are_not_solo5s),
		cmocka_unit_test(devices),
		cmocka_unit_test(needs_none),
		cmocka_unit_test(strange_manifests),
		cmocka_unit_test(as_many_as_solo5_permits),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(long_build_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
