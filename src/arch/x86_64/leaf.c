/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The leaf step of fp.c as data: it states, for each byte of code, what find_return() would decide
 * from the instructions. A unit test compares the two.
 */
#include "arch/leaf.h"

#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/x86_64.h"
#include "base/checked.h"
#include "base/cleanup.h"

#define NO_RET	  UINT8_MAX
#define SLOT_CODE "\xf3\x0f\x1e\xfa" /* endbr64 */

/* The epilogue that begins at each byte. */
struct epilogue {
	uint8_t reach; /* bytes up to the end of the ret; NO_RET: it is no epilogue */
	uint16_t add;  /* to rsp before it */
};

/* Goes backwards, so that it looks at each instruction once. */
static void find_epilogues(const uint8_t *code, size_t n, struct epilogue *ret)
{
	for (size_t i = n; i-- != 0;) {
		uint32_t add;
		bool is_ret;
		size_t left = uni_min(n - i, (size_t)UNI_X86_LEAF_CODE_MAX);
		size_t len = uni_x86_64_epilogue_step(code + i, left, &add, &is_ret);

		ret[i] = (struct epilogue){ .reach = NO_RET };
		if (is_ret)
			ret[i].reach = (uint8_t)len;
		else if (len != 0 && len < n - i && ret[i + len].reach != NO_RET &&
			 ret[i + len].reach + len <= UNI_X86_LEAF_CODE_MAX &&
			 ret[i + len].add + add <= UINT16_MAX)
			ret[i] = (struct epilogue){ .reach = (uint8_t)(ret[i + len].reach + len),
				.add = (uint16_t)(ret[i + len].add + add) };
	}
}

/* The rule for n bytes above rsp; `other` if no rule can state that. */
static uint8_t rule_at(uint32_t bytes, uint8_t other)
{
	if (bytes % 8 != 0 || bytes / 8 > UNI_LEAF_AT_MAX - UNI_LEAF_AT)
		return other;
	return (uint8_t)(UNI_LEAF_AT + bytes / 8);
}

static uint8_t rule_search(uint32_t moved)
{
	if (moved % 8 != 0 || moved / 8 > UNI_LEAF_SEARCH_MAX - UNI_LEAF_SEARCH)
		return UNI_LEAF_SEARCH;
	return (uint8_t)(UNI_LEAF_SEARCH + moved / 8);
}

/* A function without a frame: states how far it has moved rsp, as long as it only pushes. */
static void frameless_rules(const uint8_t *code, size_t n, uint8_t *rule)
{
	size_t max = uni_min(n, (size_t)UNI_X86_START_MAX), len;
	size_t pos = max >= 4 && memcmp(code, SLOT_CODE, 4) == 0 ? 4 : 0;
	uint32_t moved = 0, sub;

	memset(rule, UNI_LEAF_SEARCH, n);
	rule[pos < n ? pos : 0] = rule_at(0, UNI_LEAF_SEARCH);
	while (pos < max) {
		len = uni_x86_64_push_step(code + pos, max - pos, &sub);
		if (len == 0)
			break;
		pos += len;
		moved += sub;
		memset(rule + pos, rule_search(moved), n - pos);
		if (pos < n && pos <= max)
			rule[pos] = rule_at(moved, rule_search(moved));
	}
}

/* A function that sets up its frame: rules for the code before that is done. */
static void framed_rules(const uint8_t *code, size_t n, uint8_t *rule)
{
	struct uni_x86_64_prologue p;

	memset(rule, UNI_LEAF_FRAME, n);
	n = uni_min(n, (size_t)UNI_X86_PROLOGUE_MAX);
	if (!uni_x86_64_prologue(code, n, &p))
		return;
	for (size_t i = 0; i < n && i <= p.mov; i++)
		rule[i] = rule_at(i <= p.push ? 0 : 8, UNI_LEAF_FRAME);
}

/* Code that is in no function. */
static uint8_t unknown_rule(const uint8_t *code, size_t n)
{
	struct uni_x86_64_prologue p;

	n = uni_min(n, (size_t)UNI_X86_LEAF_CODE_MAX);
	if (uni_x86_64_prologue(code, n, &p))
		return rule_at(0, UNI_LEAF_FRAME);
	if ((n >= 4 && memcmp(code, SLOT_CODE, 4) == 0) || (n >= 1 && code[0] == 0x55))
		return UNI_LEAF_SLOT;
	return UNI_LEAF_FRAME;
}

/* Rules from the code itself; they go before those from its function. */
static void apply_code(const uint8_t *code, size_t n, const struct epilogue *epi, uint8_t *rule)
{
	for (size_t i = 0; i < n; i++) {
		if (rule[i] == UNI_LEAF_ENTRY)
			continue;
		if (epi[i].reach <= UNI_X86_LEAF_CODE_MAX)
			rule[i] = rule_at(epi[i].add, UNI_LEAF_FRAME);
		else if (i >= 1 && code[i - 1] == 0x55 && uni_x86_64_is_set_frame(code + i, n - i))
			rule[i] = rule_at(8, UNI_LEAF_FRAME);
		else if (rule[i] == UNI_LEAF_FRAME && i >= 2 &&
			 uni_x86_64_frame_popped(code + i - 2, 2))
			rule[i] = UNI_LEAF_SLOT;
	}
}

int uni_x86_64_leaf_rules(
	const struct uni_unwind_hints *hints, const uint8_t *code, size_t n, uint8_t *rule_ret)
{
	_cleanup_free_ struct epilogue *epi = malloc(n * sizeof(*epi) + 1);
	size_t done = 0;

	if (epi == NULL)
		return -UNI_ENOMEM;
	find_epilogues(code, n, epi);
	for (size_t i = 0; i < hints->nr_funcs; i++) {
		const struct uni_func_hint *f = &hints->func[i];
		uint64_t off = f->start - hints->text_start;
		size_t size;

		if (off >= n || f->size == 0 || off < done)
			continue;
		for (; done < off; done++)
			rule_ret[done] = unknown_rule(code + done, n - done);
		size = (size_t)uni_min((uint64_t)f->size, n - off);
		if ((f->flags & UNI_FUNC_ENTRY) != 0)
			memset(rule_ret + off, UNI_LEAF_ENTRY, size);
		else if ((f->flags & UNI_FUNC_FRAMELESS) != 0)
			frameless_rules(code + off, size, rule_ret + off);
		else
			framed_rules(code + off, size, rule_ret + off);
		done = (size_t)off + size;
	}
	for (; done < n; done++)
		rule_ret[done] = unknown_rule(code + done, n - done);
	apply_code(code, n, epi, rule_ret);
	for (size_t i = 0; i < hints->nr_funcs; i++) {
		uint64_t off = hints->func[i].start - hints->text_start;

		if (off < n && (hints->func[i].flags & UNI_FUNC_ENTRY) == 0)
			rule_ret[off] = rule_at(0, UNI_LEAF_FRAME);
	}
	return 0;
}
