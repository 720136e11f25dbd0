/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line table of one unit, as pieces of equal file and line. We run its program here instead of
 * libdw: there are ten times more rows than anything else, and most of them change nothing.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/cfi_priv.h"
#include "obj/debug_priv.h"

#define ROWS_MAX ((size_t)1 << 24)

/* The line number machine (DWARF 5, 6.2.2), reduced to files and lines. */
struct machine {
	const struct uni_debug *d;
	struct uni_line_unit *u;
	uint64_t addr;
	struct uni_row now;
	uint64_t open_addr; /* start of the row that is not yet a piece */
	struct uni_row open;
	bool is_open, sorted, failed;
	UNI_VEC(struct uni_symbol) pieces; /* name: index of the row */
	UNI_VEC(struct uni_row) rows;
};

static void machine_reset(struct machine *m)
{
	m->addr = 0;
	m->now = (struct uni_row){ 1, 1 };
	m->is_open = false;
}

/* The open row ends here. */
static void close_row(struct machine *m)
{
	struct uni_symbol piece = {
		.addr = m->open_addr, .size = m->addr - m->open_addr, .name = (uint32_t)m->rows.nr
	};

	/* A sequence at 0 is of code that the linker dropped. */
	if (!m->is_open || m->addr <= m->open_addr || (m->open_addr == 0 && !m->d->code_at_zero))
		return;
	if (m->pieces.nr != 0 && m->pieces.v[m->pieces.nr - 1].addr > piece.addr)
		m->sorted = false;
	if (m->rows.nr == ROWS_MAX || !uni_vec_push(&m->rows, m->open) ||
		!uni_vec_push(&m->pieces, piece))
		m->failed = true;
}

/* The machine has made a row. If several rows have one address, the last one counts. */
static void emit_row(struct machine *m)
{
	if (m->is_open && m->open.file == m->now.file && m->open.line == m->now.line)
		return;
	if (m->is_open && m->addr < m->open_addr)
		return;
	close_row(m);
	m->open = m->now;
	m->open_addr = m->addr;
	m->is_open = true;
}

static void end_sequence(struct machine *m)
{
	close_row(m);
	machine_reset(m);
}

static void advance_line(struct machine *m, int64_t by)
{
	m->now.line = (uint32_t)((int64_t)m->now.line + (int32_t)by);
}

static void run_extended(struct machine *m, struct uni_cursor *c)
{
	uint64_t len = uni_cfi_uleb(c);
	const uint8_t *arg = uni_cursor_take(c, (size_t)len);

	if (arg == NULL || len == 0) {
		c->failed = true;
		return;
	}
	if (arg[0] == DW_LNE_end_sequence) {
		end_sequence(m);
	} else if (arg[0] == DW_LNE_set_address && (len == 9 || len == 5)) {
		m->addr = 0;
		for (size_t i = 1; i < len; i++)
			m->addr |= (uint64_t)arg[i] << 8 * (i - 1);
	}
}

static void run_standard(struct machine *m, struct uni_cursor *c, uint8_t op)
{
	uint64_t file;

	switch (op) {
	case DW_LNS_copy:
		emit_row(m);
		break;
	case DW_LNS_advance_pc:
		m->addr += uni_cfi_uleb(c) * m->u->min_length;
		break;
	case DW_LNS_advance_line:
		advance_line(m, uni_cfi_sleb(c));
		break;
	case DW_LNS_set_file:
		file = uni_cfi_uleb(c);
		m->now.file = (uint32_t)uni_min(file, (uint64_t)UINT32_MAX);
		break;
	case DW_LNS_const_add_pc:
		m->addr +=
			(uint64_t)((255 - m->u->opcode_base) / m->u->line_range) * m->u->min_length;
		break;
	case DW_LNS_fixed_advance_pc:
		m->addr += uni_cursor_u16(c);
		break;
	default: /* opcodes that do not change file or line, and future ones */
		for (unsigned i = 0; i < m->u->nr_args[op - 1]; i++)
			(void)uni_cfi_uleb(c);
		break;
	}
}

static void run_program(struct machine *m)
{
	struct uni_cursor *c = &m->u->program;

	machine_reset(m);
	while (uni_cursor_left(c) != 0 && !c->failed && !m->failed) {
		uint8_t op = uni_cursor_u8(c);

		if (op == 0) {
			run_extended(m, c);
		} else if (op < m->u->opcode_base) {
			run_standard(m, c, op);
		} else {
			uint8_t by = (uint8_t)(op - m->u->opcode_base);

			m->addr += (uint64_t)(by / m->u->line_range) * m->u->min_length;
			advance_line(m, m->u->line_base + by % m->u->line_range);
			emit_row(m);
		}
	}
}

static int cmp_pieces(const void *pa, const void *pb)
{
	const struct uni_symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

/* Replaces the numbers of the flattened pieces by those of the rows. */
static bool finish_rows(struct machine *m, struct uni_cu *cu)
{
	if (!m->sorted)
		qsort(m->pieces.v, m->pieces.nr, sizeof(*m->pieces.v), cmp_pieces);
	if (m->pieces.v == NULL)
		return true;
	if (!uni_ranges_build(m->pieces.v, m->pieces.nr, &cu->rows))
		return false;
	for (size_t i = 0; i < cu->rows.nr; i++) {
		if (cu->rows.sym[i] != UNI_RANGE_GAP)
			cu->rows.sym[i] = m->pieces.v[cu->rows.sym[i]].name;
	}
	return true;
}

static bool stmt_list(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (dwarf_attr(die, DW_AT_stmt_list, &a) == NULL || dwarf_formudata(&a, &v) != 0)
		return false;
	*ret = v;
	return true;
}

bool uni_cu_read_rows(struct uni_debug *d, struct uni_cu *cu, Dwarf_Die *die)
{
	struct machine m = { .d = d, .u = &cu->line, .sorted = true };
	uint64_t offset;
	bool ok;

	if (!stmt_list(die, &offset) || !uni_line_unit_open(&d->sections, offset, &cu->line) ||
		!uni_debug_spend(d, uni_cursor_left(&cu->line.program)))
		return true;
	cu->file = malloc((cu->line.nr_files + 1) * sizeof(*cu->file));
	if (cu->file == NULL)
		return false;
	for (size_t i = 0; i < cu->line.nr_files; i++)
		cu->file[i] = UNI_STR_NONE;
	run_program(&m);
	ok = !m.failed && finish_rows(&m, cu);
	cu->row = m.rows.v;
	uni_vec_free(&m.pieces);
	return ok;
}
