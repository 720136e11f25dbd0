/* SPDX-License-Identifier: BSD-2-Clause */
/* ELF images: whatever loads must keep the promises that image.h makes about it. */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "obj/nm.h"
#include "obj/solo5.h"
#include "obj/symtext.h"
#include "obj/usym.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_symbols(const struct uni_image *img, const struct uni_symtab *s)
{
	size_t nr = uni_image_nr_symbols(img);

	require(uni_symtab_nr(s) == nr);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_symbol *sym = uni_image_symbol(img, i), *hit;
		uint64_t probes[] = { sym->addr, sym->addr + sym->size - 1, sym->addr + sym->size };

		require(sym->size != 0 && uni_range_ok(sym->addr, sym->size));
		require(i == 0 || uni_image_symbol(img, i - 1)->addr < sym->addr);
		for (size_t k = 0; k < uni_array_len(probes); k++) {
			const char *name;
			uint64_t off;

			hit = uni_image_lookup(img, probes[k]);
			told_u64(hit != NULL ? hit->addr : 1);
			require(hit != NULL || k == 2);
			require(hit == NULL || uni_range_has(hit->addr, hit->size, probes[k]));
			require(uni_symtab_lookup(s, probes[k], &name, &off) == (hit != NULL));
			require(hit == NULL || off == probes[k] - hit->addr);
		}
	}
}

static void check_hints(struct uni_image *img, uint64_t bias)
{
	const struct uni_unwind_hints *h;

	if (uni_image_hints(img, bias, &h, NULL) != 0)
		return;
	for (size_t i = 0; i < h->nr_funcs; i++) {
		told_u64(h->func[i].start);
		told_u64(h->func[i].size);
		told_u64(h->func[i].flags);
	}
	for (size_t i = 1; i < h->nr_funcs; i++)
		require(h->func[i].start > h->func[i - 1].start &&
			!uni_range_overlaps(h->func[i - 1].start, h->func[i - 1].size,
				h->func[i].start, h->func[i].size));
}

/* The list in the format of nm reads back, with no more functions than lines. */
static void check_list(const uint8_t *data, size_t size)
{
	struct uni_strbuf text;
	struct uni_symtab *s;
	struct uni_sink *out;
	size_t lines = 0;

	uni_strbuf_init(&text);
	require(uni_sink_open_strbuf(&text, &out) == 0);
	if (uni_nm_from_memory("fuzz", data, size, out, NULL) != 0) {
		uni_sink_abort(out);
		uni_strbuf_deinit(&text);
		return;
	}
	require(uni_sink_close(out, NULL) == 0);
	told(text.s, text.len);
	for (size_t i = 0; i < text.len; i++)
		lines += text.s[i] == '\n';
	if (uni_symtab_of_nm("fuzz", text.s, text.len, &s, NULL) == 0) {
		require(uni_symtab_nr(s) <= lines);
		uni_symtab_destroy(s);
	}
	uni_strbuf_deinit(&text);
}

/* The names go into a command. */
static void check_solo5(const uint8_t *data, size_t size)
{
	static struct uni_solo5 s;

	if (uni_solo5_parse(data, size, &s, NULL) != 0)
		return;
	require(s.nr_devices <= UNI_SOLO5_DEVICES_MAX && (s.has_manifest || s.nr_devices == 0));
	for (size_t i = 0; i < s.nr_devices; i++) {
		size_t len = strnlen(s.device[i].name, UNI_SOLO5_NAME_MAX);

		told_text(s.device[i].name);
		require(len != 0 && len < UNI_SOLO5_NAME_MAX);
		for (size_t k = 0; k < len; k++)
			require(isalnum((unsigned char)s.device[i].name[k]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_image *img;
	struct uni_symtab *s;
	struct uni_err err = { 0 };
	uint64_t addr, sym_size;
	uint8_t buf[16];

	check_list(data, size);
	check_solo5(data, size);

	if (uni_image_from_memory("fuzz", data, size, &img, &err) != 0)
		return 0;
	require(uni_symtab_of_image(img, &s, &err) == 0);
	check_symbols(img, s);
	check_hints(img, 0);
	check_hints(img, 0xffffffff80000000);
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *seg = uni_image_segment(img, i);

		require(uni_range_ok(seg->vaddr, seg->mem_size));
		(void)uni_image_bytes(img, seg->vaddr + seg->file_size - 8, buf, sizeof(buf));
	}
	if (uni_image_find(img, "main", &addr, &sym_size) == 0)
		told_u64(addr);
	uni_symtab_destroy(s);
	uni_image_destroy(img);
	return 0;
}
