/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/kvm/bpf/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static uint64_t le64(const uint8_t *p)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* Where functions begin: the one that reaches into each element, and one that begins there. */
static void fill_functions(const struct uni_unwind_hints *h, struct uni_bpf_text *t, size_t nr)
{
	uint32_t last = 0;
	size_t k = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t off = 0;

		t[i].func = last;
		for (; k < h->nr_funcs; k++) {
			off = h->func[k].start - h->text_start;
			if (off >= (i + 1) * 8)
				break;
			last = (uint32_t)off;
			if (off == i * 8)
				t[i].func = last;
			else
				t[i].next = last;
		}
	}
}

int uni_kvm_text_make(const struct uni_arch *arch, const struct uni_unwind_hints *hints,
	const struct uni_kvm_code *code, struct uni_bpf_text **ret, size_t *nr_ret,
	struct uni_err *err)
{
	_cleanup_free_ struct uni_bpf_text *t = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_free_ uint8_t *rule = NULL;
	size_t n, nr;

	if (hints->text_size > UNI_KVM_TEXT_MAX)
		return uni_err_set(err, UNI_ENOTSUP,
			"the image has more than %u MiB of code: too much for the kernel side",
			UNI_KVM_TEXT_MAX >> 20);
	n = (size_t)hints->text_size;
	nr = (n + 7) / 8;
	bytes = calloc(nr + 1, 8);
	rule = calloc(nr + 1, 8);
	t = calloc(nr + 1, sizeof(*t));
	if (bytes == NULL || rule == NULL || t == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	code->read(code->ctx, hints->text_start, bytes, n);
	if (arch->leaf_rules != NULL && arch->leaf_rules(hints, bytes, n, rule) != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		t[i].code = le64(bytes + 8 * i);
		t[i].rule = le64(rule + 8 * i);
	}
	fill_functions(hints, t, nr);
	*ret = uni_take(t);
	*nr_ret = nr;
	return 0;
}
