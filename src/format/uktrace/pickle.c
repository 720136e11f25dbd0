/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/pickle.h"

#include <string.h>

#include "base/cursor.h"

#define STACK_MAX (2 * UNI_PICKLE_PAIRS_MAX + 4)
#define MEMO_MAX  (2 * UNI_PICKLE_PAIRS_MAX + 16)

/* Operations, by their byte. */
enum {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_NONE = 'N',
	OP_FALSE = 0x89,
	OP_TRUE = 0x88,
	OP_INT1 = 'K',
	OP_INT2 = 'M',
	OP_INT4 = 'J',
	OP_LONG1 = 0x8a,
	OP_TEXT1 = 0x8c,
	OP_TEXT4 = 'X',
	OP_TEXT8 = 0x8d,
	OP_BYTES1 = 'C',
	OP_BYTES4 = 'B',
	OP_BYTES8 = 0x8e,
	OP_DICT = '}',
	OP_SET = 's',
	OP_SETS = 'u',
	OP_PUT1 = 'q',
	OP_PUT4 = 'r',
	OP_GET1 = 'h',
	OP_GET4 = 'j',
	OP_MEMOIZE = 0x94,
	OP_FRAME = 0x95,
	OP_PROTO = 0x80,
};

struct machine {
	struct uni_cursor c;
	struct uni_pickle *p;
	struct uni_pickle_value stack[STACK_MAX], memo[MEMO_MAX];
	size_t nr, nr_memo;
};

static int push_value(struct machine *m, struct uni_pickle_value v)
{
	if (m->c.failed || m->nr == STACK_MAX)
		return -UNI_EFORMAT;
	m->stack[m->nr++] = v;
	return 0;
}

static int push_int(struct machine *m, uint64_t v)
{
	return push_value(m, (struct uni_pickle_value){ .kind = UNI_PICKLE_INT, .v = v });
}

static int push_data(struct machine *m, enum uni_pickle_kind kind, uint64_t len)
{
	const uint8_t *data = NULL;

	if (len > uni_cursor_left(&m->c) && kind == UNI_PICKLE_BYTES && !m->c.failed) {
		m->p->cut = true;
		len = uni_cursor_left(&m->c);
	}
	if (len <= uni_cursor_left(&m->c))
		data = uni_cursor_take(&m->c, (size_t)len);
	else
		m->c.failed = true;
	if (data == NULL)
		return -UNI_EFORMAT;
	return push_value(
		m, (struct uni_pickle_value){ .kind = kind, .data = data, .size = (size_t)len });
}

static int push_long(struct machine *m)
{
	uint8_t len = uni_cursor_u8(&m->c);
	const uint8_t *s = uni_cursor_take(&m->c, len);
	uint64_t v = 0;

	if (s == NULL || len > 8)
		return -UNI_EFORMAT;
	for (unsigned i = 0; i < len; i++)
		v |= (uint64_t)s[i] << 8 * i;
	return push_int(m, v);
}

/* The pairs above `from` on the stack go into the dictionary below it. */
static int set_pairs(struct machine *m, size_t from)
{
	size_t dict = from;

	if (from != 0 && m->stack[from - 1].kind == UNI_PICKLE_MARK)
		dict = from - 1;
	if (dict == 0 || m->stack[dict - 1].kind != UNI_PICKLE_DICT || (m->nr - from) % 2 != 0)
		return -UNI_EFORMAT;
	for (size_t i = from; i < m->nr; i += 2) {
		const struct uni_pickle_pair pair = { m->stack[i], m->stack[i + 1] };

		if (m->p->pairs.nr == UNI_PICKLE_PAIRS_MAX)
			return -UNI_EFORMAT;
		if (!uni_vec_push(&m->p->pairs, pair))
			return -UNI_ENOMEM;
	}
	m->nr = dict;
	return 0;
}

static int set_items(struct machine *m)
{
	size_t from = m->nr;

	while (from != 0 && m->stack[from - 1].kind != UNI_PICKLE_MARK)
		from--;
	return from != 0 ? set_pairs(m, from) : -UNI_EFORMAT;
}

static int memo_put(struct machine *m, uint32_t at)
{
	if (m->nr == 0 || at >= MEMO_MAX)
		return -UNI_EFORMAT;
	m->memo[at] = m->stack[m->nr - 1];
	if (at == m->nr_memo)
		m->nr_memo++;
	return 0;
}

static int memo_get(struct machine *m, uint32_t at)
{
	if (at >= MEMO_MAX || m->memo[at].kind == UNI_PICKLE_NONE)
		return -UNI_EFORMAT;
	return push_value(m, m->memo[at]);
}

/* Those that move no value. */
static int run_housekeeping(struct machine *m, uint8_t op)
{
	switch (op) {
	case OP_PROTO:
		return uni_cursor_u8(&m->c) <= 5 ? 0 : -UNI_EFORMAT;
	case OP_FRAME:
		(void)uni_cursor_u64(&m->c);
		return 0;
	case OP_PUT1:
		return memo_put(m, uni_cursor_u8(&m->c));
	case OP_PUT4:
		return memo_put(m, uni_cursor_u32(&m->c));
	case OP_MEMOIZE:
		return memo_put(m, (uint32_t)m->nr_memo);
	case OP_SET:
		return m->nr >= 2 ? set_pairs(m, m->nr - 2) : -UNI_EFORMAT;
	case OP_SETS:
		return set_items(m);
	default:
		return -UNI_EFORMAT;
	}
}

static int run_opcode(struct machine *m, uint8_t op)
{
	switch (op) {
	case OP_MARK:
		return push_value(m, (struct uni_pickle_value){ .kind = UNI_PICKLE_MARK });
	case OP_DICT:
		return push_value(m, (struct uni_pickle_value){ .kind = UNI_PICKLE_DICT });
	case OP_FALSE:
	case OP_NONE:
		return push_int(m, 0);
	case OP_TRUE:
		return push_int(m, 1);
	case OP_INT1:
		return push_int(m, uni_cursor_u8(&m->c));
	case OP_INT2:
		return push_int(m, uni_cursor_u16(&m->c));
	case OP_INT4:
		return push_int(m, (uint64_t)(int64_t)(int32_t)uni_cursor_u32(&m->c));
	case OP_LONG1:
		return push_long(m);
	case OP_TEXT1:
		return push_data(m, UNI_PICKLE_TEXT, uni_cursor_u8(&m->c));
	case OP_TEXT4:
		return push_data(m, UNI_PICKLE_TEXT, uni_cursor_u32(&m->c));
	case OP_TEXT8:
		return push_data(m, UNI_PICKLE_TEXT, uni_cursor_u64(&m->c));
	case OP_BYTES1:
		return push_data(m, UNI_PICKLE_BYTES, uni_cursor_u8(&m->c));
	case OP_BYTES4:
		return push_data(m, UNI_PICKLE_BYTES, uni_cursor_u32(&m->c));
	case OP_BYTES8:
		return push_data(m, UNI_PICKLE_BYTES, uni_cursor_u64(&m->c));
	case OP_GET1:
		return memo_get(m, uni_cursor_u8(&m->c));
	case OP_GET4:
		return memo_get(m, uni_cursor_u32(&m->c));
	default:
		return run_housekeeping(m, op);
	}
}

static int run_pickle(struct machine *m, struct uni_err *err)
{
	int rc = 0;

	while (rc == 0) {
		size_t at = m->c.pos;
		uint8_t op = uni_cursor_u8(&m->c);

		if (m->c.failed && m->nr == 1 && m->stack[0].kind == UNI_PICKLE_BYTES)
			m->p->cut = true;
		else if (m->c.failed)
			return uni_err_set(err, UNI_EFORMAT, "the file ends at byte %zu", at);
		if (op == OP_STOP || m->p->cut)
			break;
		rc = run_opcode(m, op);
		if (m->c.failed)
			return uni_err_set(err, UNI_EFORMAT,
				"the file ends within what begins at byte %zu", at);
		if (rc == -UNI_EFORMAT)
			return uni_err_set(err, UNI_EFORMAT,
				"at byte %zu is what no trace file of Unikraft needs (0x%02x)", at,
				op);
	}
	if (rc == -UNI_ENOMEM)
		return uni_err_nomem(err);
	if (m->nr != 1 || m->stack[0].kind == UNI_PICKLE_MARK)
		return uni_err_set(err, UNI_EFORMAT, "a pickle in it holds not one value");
	m->p->result = m->stack[0];
	m->p->used = m->c.pos;
	return 0;
}

int uni_pickle_load(const uint8_t *data, size_t size, struct uni_pickle *ret, struct uni_err *err)
{
	struct machine *m = calloc(1, sizeof(*m));
	int rc;

	*ret = (struct uni_pickle){ 0 };
	if (m == NULL)
		return uni_err_nomem(err);
	m->c = uni_cursor_make(data, size);
	m->p = ret;
	rc = run_pickle(m, err);
	free(m);
	return rc;
}

void uni_pickle_free(struct uni_pickle *p)
{
	uni_vec_free(&p->pairs);
}

void uni_pickle_begin(struct uni_sink *out)
{
	uni_sink_putc(out, (char)OP_PROTO);
	uni_sink_putc(out, 3);
}

static void put_len(struct uni_sink *out, char op, size_t len)
{
	const uint32_t n = (uint32_t)len; /* callers' data has bounds far below */

	uni_sink_putc(out, op);
	uni_sink_write(out, &n, sizeof(n));
}

void uni_pickle_put_text(struct uni_sink *out, const char *s)
{
	put_len(out, OP_TEXT4, strlen(s));
	uni_sink_puts(out, s);
}

void uni_pickle_put_bytes(struct uni_sink *out, const uint8_t *data, size_t size)
{
	put_len(out, OP_BYTES4, size);
	if (size != 0)
		uni_sink_write(out, data, size);
}

void uni_pickle_end(struct uni_sink *out)
{
	uni_sink_putc(out, OP_STOP);
}
