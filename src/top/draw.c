/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "top/screen.h"
#include "top/ui.h"
#include "profile/text.h"

#define HOT_PERCENT    10.0
#define WARM_PERCENT   2.0
#define SAMPLES_FROM   70 /* columns of the screen from which on there is room for it */
#define CALLS_MIN_ROWS 11 /* rows for both tables from which on there are two */

static int draw_text(int row, int column, enum uni_ink ink, const char *s)
{
	return uni_screen_put(row, column, uni_screen_columns() - column, ink, s);
}

/* A line in one ink, with something at its left and its right end; the left goes first. */
static void draw_bar(int row, const char *left, const char *right)
{
	int width = uni_screen_columns(), len = (int)strlen(right), used;

	uni_screen_fill(row, 0, width, UNI_INK_BAR, ' ');
	used = uni_screen_put(row, 0, width, UNI_INK_BAR, left);
	if (len != 0 && used + len + 2 <= width)
		(void)uni_screen_put(row, width - len - 1, len, UNI_INK_BAR, right);
}

static void draw_title(const struct uni_ui *ui)
{
	const struct uni_top *top = &ui->run->top;
	const char *what = top->frozen_ns != 0 ? "PAUSED  " : top->ended ? "ENDED  " : "";
	char left[UNI_SAY_MAX], right[160], window[128];

	uni_say_window(window, sizeof(window), top);
	(void)snprintf(right, sizeof(right), "%s%s", what, window);
	(void)snprintf(left, sizeof(left), " uniscope top  %s", ui->run->title);
	/* On a narrow screen the view matters more than the guest's name. */
	if ((int)(strlen(left) + strlen(right)) + 3 > uni_screen_columns())
		(void)snprintf(left, sizeof(left), " %.*s",
			uni_max(uni_screen_columns() - (int)strlen(right) - 4, 0), ui->run->title);
	draw_bar(0, left, right);
}

/* Parts side by side in at most `height` lines; a part that does not fit whole is left out. */
static int draw_parts(int row, int height, const struct uni_say_parts *p)
{
	int column = 0, line = 0;

	for (size_t i = 0; i < p->nr; i++) {
		int len = (int)strlen(p->v[i]);

		if (column != 0 && column + 2 + len > uni_screen_columns()) {
			if (line + 1 == height)
				continue;
			line++;
			column = 0;
		}
		column += column != 0 ? 2 : 0;
		column += draw_text(
			row + line, column, p->bad[i] ? UNI_INK_BAD : UNI_INK_PLAIN, p->v[i]);
	}
	return line + 1;
}

static int draw_head(const struct uni_ui *ui)
{
	const struct uni_top *top = &ui->run->top;
	struct uni_say_parts parts;
	char end[UNI_SAY_MAX], doubt[UNI_QUALITY_METHOD];
	int row = 1, rows = uni_screen_rows();

	draw_title(ui);
	uni_say_quality(&parts, top);
	row += draw_parts(row, rows >= 16 ? 2 : 1, &parts);
	if (uni_say_doubt(doubt, top))
		(void)draw_text(row++, 0, UNI_INK_BAD, doubt);
	if (top->last.held[0] != '\0')
		(void)draw_text(row++, 0, UNI_INK_BAD, top->last.held);
	uni_say_end(end, sizeof(end), top);
	if (end[0] != '\0')
		(void)draw_text(row++, 0, UNI_INK_BAD, end);
	/* A quarter of the screen, if it is a screen worth the name. */
	return row + uni_ui_draw_vcpus(ui->run, row, rows >= 12 ? rows / 4 : rows >= 8 ? 1 : 0);
}

static enum uni_ink heat_ink(double percent)
{
	return percent >= HOT_PERCENT	 ? UNI_INK_HOT
	       : percent >= WARM_PERCENT ? UNI_INK_WARM
					 : UNI_INK_PLAIN;
}

/* A picked row has one colour, from end to end. */
static void draw_row(
	int row, bool picked, bool here, double first, const char *numbers, const char *name)
{
	enum uni_ink ink = heat_ink(first), name_ink = UNI_INK_PLAIN;
	int used;

	if (picked) {
		ink = name_ink = here ? UNI_INK_PICK : UNI_INK_PICK_AWAY;
		uni_screen_fill(row, 0, uni_screen_columns(), ink, ' ');
	}
	used = draw_text(row, 0, ink, numbers);
	(void)draw_text(row, used, name_ink, name);
}

static void draw_function(const struct uni_ui *ui, int row, size_t i)
{
	const struct uni_top *top = &ui->run->top;
	const struct uni_func_row *r = &top->rows[i];
	double self = uni_top_percent(top, r->self);
	double total = uni_top_percent(top, r->total);
	char numbers[160], samples[UNI_NUMBER_MAX], name[UNI_SAY_MAX];

	uni_text_number(samples, r->self);
	if (uni_screen_columns() >= SAMPLES_FROM)
		(void)snprintf(
			numbers, sizeof(numbers), "%7.2f %7.2f %10s  ", self, total, samples);
	else
		(void)snprintf(numbers, sizeof(numbers), "%7.2f %7.2f  ", self, total);
	(void)snprintf(name, sizeof(name), "%s%s", uni_top_row_name(top, i),
		uni_profile_mark(top->profile, r->frame));
	draw_row(row, i == top->selected, ui->pane == UNI_PANE_FUNCTIONS, self, numbers, name);
}

/* So that `at` is on the screen, moving as little as possible. */
static size_t scroll_to(size_t first, size_t at, size_t nr, size_t height)
{
	if (height == 0)
		return first;
	if (at < nr && at < first)
		first = at;
	if (at < nr && at - first >= height)
		first = at - height + 1;
	if (nr <= height)
		return 0;
	return uni_min(first, nr - height);
}

static void draw_functions(struct uni_ui *ui, int row, int height)
{
	const struct uni_top *top = &ui->run->top;
	bool wide = uni_screen_columns() >= SAMPLES_FROM;
	const char *head =
		wide ? "  SELF%  TOTAL%    SAMPLES  FUNCTION" : "  SELF%  TOTAL%  FUNCTION";
	char settings[UNI_SAY_MAX];
	size_t n;

	uni_say_settings(settings, sizeof(settings), top);
	n = strlen(settings);
	/* In a narrow terminal the settings come first. */
	if (strlen(head) + n + strlen(uni_say_whole(top)) + 4 <= (size_t)uni_screen_columns())
		(void)snprintf(settings + n, sizeof(settings) - n, ", %s", uni_say_whole(top));
	draw_bar(row, head, settings);
	row++;
	height--;
	if (top->nr_rows == 0)
		(void)draw_text(row, 2, UNI_INK_PLAIN,
			top->sums.shown != 0 ? "no function has such a name (Esc: show all)"
			: top->sums.weight != 0
				? "nothing but idle in this window (i: show it, w: longer window)"
				: "no samples in this window yet");
	ui->first_row = scroll_to(ui->first_row, top->selected, top->nr_rows, (size_t)height);
	for (int i = 0; i < height && ui->first_row + (size_t)i < top->nr_rows; i++)
		draw_function(ui, row + i, ui->first_row + (size_t)i);
}

void uni_ui_draw_code(struct uni_ui *ui, int row, int height)
{
	struct uni_top_code *c = &ui->code;
	size_t nr = uni_top_code_nr_lines(c);
	char text[UNI_SAY_MAX];

	if (height <= 0)
		return;
	(void)snprintf(text, sizeof(text), "CODE OF %.*s", UNI_SAY_MAX - 16, c->a.code.name);
	draw_bar(row, text, "Esc: back");
	ui->page = uni_max(height - 2, 1);
	for (size_t i = 0; i + 1 < (size_t)height && c->first + i < nr; i++) {
		double percent = uni_top_code_line(c, c->first + i, text, sizeof(text));

		(void)draw_text(row + 1 + (int)i, 0, heat_ink(percent), text);
	}
}

static void draw_call(const struct uni_ui *ui, int row, size_t i)
{
	const struct uni_top *top = &ui->run->top;
	const struct uni_outline_line *l = &top->outline.lines.v[i];
	const struct uni_node *n = uni_profile_node(top->focus, l->node);
	char numbers[128], name[UNI_SAY_MAX];
	size_t len = 0;

	/* In the inverted tree, a caller's "self" would be the function's. */
	if (top->callers)
		(void)snprintf(numbers, sizeof(numbers), "%7s %7.2f  ", "",
			uni_top_percent(top, n->total));
	else
		(void)snprintf(numbers, sizeof(numbers), "%7.2f %7.2f  ",
			uni_top_percent(top, n->self), uni_top_percent(top, n->total));
	for (uint32_t k = 0; k < l->indent && len + 4 < sizeof(name); k++, len += 3)
		memcpy(name + len, l->forked && k + 1 == l->indent ? "|- " : "|  ", 4);
	(void)snprintf(name + len, sizeof(name) - len, "%s%s",
		uni_profile_node_name(top->focus, l->node), uni_profile_mark(top->focus, n->frame));
	draw_row(row, ui->pane == UNI_PANE_CALLS && i == ui->call + 1, true,
		uni_top_percent(top, n->total), numbers, name);
}

static void draw_calls(struct uni_ui *ui, int row, int height)
{
	const struct uni_top *top = &ui->run->top;
	/* The first line is the root of the tree, which is no function. */
	size_t nr = top->outline.lines.nr != 0 ? top->outline.lines.nr - 1 : 0;
	char head[UNI_SAY_MAX];

	(void)snprintf(head, sizeof(head), "%s  TOTAL%%  %s %s",
		top->callers ? "       " : "  SELF%", top->callers ? "CALLERS OF" : "CALLS OF",
		top->selected_name);
	draw_bar(row, head, "");
	row++;
	height--;
	if (nr == 0)
		(void)draw_text(row, 2, UNI_INK_PLAIN, "no samples of it in this window");
	ui->call = nr != 0 ? uni_min(ui->call, nr - 1) : 0;
	ui->first_call = scroll_to(ui->first_call, ui->call, nr, (size_t)height);
	for (int i = 0; i < height && ui->first_call + (size_t)i < nr; i++)
		draw_call(ui, row + i, ui->first_call + (size_t)i + 1);
}

static void draw_keys(int row)
{
	static const char *const keys[] = { "?", "help", "q", "quit", "/", "filter", "o", "order",
		"w", "window", "c", "callers", "Tab", "calls", "Enter", "code", "Space", "pause",
		"s", "save", "i", "idle", "v", "vCPU" };
	int column = 0;

	for (size_t i = 0; i + 1 < uni_array_len(keys); i += 2) {
		int len = (int)(strlen(keys[i]) + 1 + strlen(keys[i + 1]));

		if (column + len > uni_screen_columns())
			return;
		column += draw_text(row, column, UNI_INK_KEY, keys[i]) + 1;
		column += draw_text(row, column, UNI_INK_PLAIN, keys[i + 1]) + 2;
	}
}

static void draw_foot(struct uni_ui *ui, int row)
{
	int used;

	if (ui->filtering) {
		used = draw_text(row, 0, UNI_INK_KEY, "Functions with: ");
		used += draw_text(row, used, UNI_INK_PLAIN, ui->run->top.filter);
		uni_screen_cursor(row, used);
		return;
	}
	uni_screen_cursor(-1, 0);
	if (ui->message_until_ns > uni_now_ns())
		(void)draw_text(row, 0, ui->message_bad ? UNI_INK_BAD : UNI_INK_KEY, ui->message);
	else
		draw_keys(row);
}

static void draw_tables(struct uni_ui *ui, int row, int height)
{
	const struct uni_top *top = &ui->run->top;
	int calls = 0;

	if (!ui->hide_calls && (height >= CALLS_MIN_ROWS || ui->pane == UNI_PANE_CALLS)) {
		/* Not by how many calls there are: the line between must not jump. */
		calls = uni_max(height * 2 / 5, height - 2 - (int)uni_min(top->nr_rows, 1000u));
	}
	if (ui->pane == UNI_PANE_CALLS && height < CALLS_MIN_ROWS)
		calls = height;
	if (height - calls > 0)
		draw_functions(ui, row, height - calls);
	if (calls > 0)
		draw_calls(ui, row + height - calls, calls);
	ui->page = uni_max((ui->pane == UNI_PANE_CALLS ? calls : height - calls) - 2, 1);
}

void uni_ui_draw(struct uni_ui *ui)
{
	int rows = uni_screen_rows(), row;

	uni_screen_begin();
	row = draw_head(ui);
	if (ui->help)
		uni_ui_draw_help(row, rows - 1 - row);
	else if (ui->code.shown)
		uni_ui_draw_code(ui, row, rows - 1 - row);
	else if (rows - 1 - row > 0)
		draw_tables(ui, row, rows - 1 - row);
	draw_foot(ui, rows - 1);
	uni_screen_show();
}
