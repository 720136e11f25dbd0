/* SPDX-License-Identifier: BSD-2-Clause */
/* The line table of one unit, as pieces of equal file and line. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "obj/debug_priv.h"

struct line {
	uint64_t addr;
	struct uni_row row;
	bool end; /* of a sequence: what follows belongs to no line */
};

static bool get_line(Dwarf_Lines *lines, size_t i, struct line *ret)
{
	Dwarf_Line *l = dwarf_onesrcline(lines, i);
	Dwarf_Files *files;
	Dwarf_Addr addr;
	size_t file = 0;
	int line = 0;

	if (l == NULL || dwarf_lineaddr(l, &addr) != 0 || dwarf_lineno(l, &line) != 0 ||
		dwarf_lineendsequence(l, &ret->end) != 0)
		return false;
	if (dwarf_line_file(l, &files, &file) != 0 || file > UINT32_MAX)
		file = UINT32_MAX;
	ret->addr = addr;
	ret->row = (struct uni_row){ (uint32_t)file, line > 0 ? (uint32_t)line : 0 };
	return true;
}

/*
 * libdw gives the rows sorted by address; of those at one address the last one counts. A row goes
 * as far as the next one that says something else.
 */
static size_t make_pieces(
	Dwarf_Lines *lines, size_t nr, struct uni_symbol *piece, struct uni_row *row)
{
	struct line open = { .end = true }, next;
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		if (!get_line(lines, i, &next) || (n != 0 && next.addr < piece[n - 1].addr))
			continue;
		if (!open.end && !next.end && open.row.file == next.row.file &&
			open.row.line == next.row.line)
			continue;
		if (!open.end && next.addr > open.addr) {
			row[n] = open.row;
			piece[n] = (struct uni_symbol){ .addr = open.addr,
				.size = next.addr - open.addr };
			n++;
		}
		open = next;
	}
	return n;
}

bool uni_cu_read_rows(struct uni_debug *d, struct uni_cu *cu, Dwarf_Die *die)
{
	_cleanup_free_ struct uni_symbol *piece = NULL;
	Dwarf_Lines *lines;
	size_t nr, n;

	if (dwarf_getsrclines(die, &lines, &nr) != 0 || !uni_debug_spend(d, nr))
		return true;
	if (dwarf_getsrcfiles(die, &cu->files, &cu->nr_files) != 0)
		cu->nr_files = 0;
	cu->file = malloc((cu->nr_files + 1) * sizeof(*cu->file));
	piece = malloc((nr + 1) * sizeof(*piece));
	cu->row = malloc((nr + 1) * sizeof(*cu->row));
	if (cu->file == NULL || piece == NULL || cu->row == NULL)
		return false;
	for (size_t i = 0; i < cu->nr_files; i++)
		cu->file[i] = UNI_STR_NONE;
	n = make_pieces(lines, nr, piece, cu->row);
	return uni_ranges_build(piece, n, &cu->rows);
}
