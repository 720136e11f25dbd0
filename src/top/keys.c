/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "top/screen.h"
#include "top/ui.h"

#define MESSAGE_NS (8 * UNI_NSEC_PER_SEC)

void uni_ui_say(struct uni_ui *ui, bool bad, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(ui->message, sizeof(ui->message), fmt, ap);
	va_end(ap);
	ui->message_bad = bad;
	ui->message_until_ns = uni_now_ns() + MESSAGE_NS;
	ui->changed = true;
}

/* Appends a code point to the filter; does nothing if it does not fit. */
static void filter_add(char *filter, int32_t c)
{
	char in[5] = { 0 }, out[8];
	size_t len = strlen(filter), n = 0;

	if (c < 0x80) {
		in[n++] = (char)c;
	} else if (c < 0x800) {
		in[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		in[n++] = (char)(0xe0 | c >> 12);
		in[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		in[n++] = (char)(0xf0 | c >> 18);
		in[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		in[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		in[n++] = (char)(0x80 | (c & 0x3f));
	n = uni_text_clean(out, sizeof(out), in, n);
	if (len + n < UNI_TOP_NAME_MAX)
		memcpy(filter + len, out, n + 1);
}

static void filter_cut(char *filter)
{
	size_t len = strlen(filter);

	while (len != 0 && (filter[--len] & 0xc0) == 0x80)
		;
	filter[len] = '\0';
}

static void filter_key(struct uni_ui *ui, int32_t key)
{
	char *filter = ui->run->top.filter;

	if (key == UNI_KEY_ENTER) {
		ui->filtering = false;
	} else if (key == UNI_KEY_ESCAPE) {
		ui->filtering = false;
		memcpy(filter, ui->filter_before, sizeof(ui->filter_before));
	} else if (key == UNI_KEY_BACKSPACE) {
		filter_cut(filter);
	} else if (key >= 0x20) {
		filter_add(filter, key);
	}
	ui->again = true;
}

/* Up and down in the functions: from then on the function is followed, not the row. */
static void move_row(struct uni_ui *ui, int64_t by)
{
	struct uni_top *top = &ui->run->top;
	int64_t nr = (int64_t)top->nr_rows, at;

	if (nr == 0)
		return;
	at = top->selected == SIZE_MAX ? 0 : (int64_t)top->selected + by;
	at = uni_max(uni_min(at, nr - 1), (int64_t)0);
	if (uni_top_select(top, (size_t)at) != 0)
		uni_ui_say(ui, true, "out of memory");
	ui->first_call = ui->call = 0;
	ui->changed = true;
}

static void move_call(struct uni_ui *ui, int64_t by)
{
	int64_t nr = (int64_t)ui->run->top.outline.lines.nr - 1, at = (int64_t)ui->call + by;

	ui->call = nr > 0 ? (size_t)uni_max(uni_min(at, nr - 1), (int64_t)0) : 0;
	ui->changed = true;
}

/* Opens the code of the selected function. */
static void open_code(struct uni_ui *ui)
{
	struct uni_err err = { 0 };

	if (uni_top_code_open(&ui->code, ui->run, &err) != 0) {
		uni_ui_say(ui, true, "%s", err.msg);
		return;
	}
	/* The hottest place, with some lines before it. */
	ui->code.first = uni_top_code_hottest(&ui->code);
	ui->code.first -= uni_min(ui->code.first, (size_t)(ui->page / 2));
	ui->changed = true;
}

static void close_code(struct uni_ui *ui)
{
	uni_top_code_close(&ui->code);
	ui->changed = true;
}

static void move_code(struct uni_ui *ui, int64_t by)
{
	int64_t nr = (int64_t)uni_top_code_nr_lines(&ui->code), at = (int64_t)ui->code.first + by;

	ui->code.first = (size_t)uni_max(uni_min(at, nr - 1), (int64_t)0);
	ui->changed = true;
}

static void move_selection(struct uni_ui *ui, int64_t by)
{
	if (ui->code.shown)
		move_code(ui, by);
	else if (ui->pane == UNI_PANE_CALLS)
		move_call(ui, by);
	else
		move_row(ui, by);
}

static void move_home(struct uni_ui *ui)
{
	if (ui->code.shown) {
		ui->code.first = 0;
	} else if (ui->pane == UNI_PANE_CALLS) {
		ui->call = 0;
	} else {
		(void)uni_top_select(&ui->run->top, SIZE_MAX);
		ui->first_row = ui->first_call = ui->call = 0;
	}
	ui->changed = true;
}

/* From a line of the calls to the function that it is of. */
static void pick_call(struct uni_ui *ui)
{
	struct uni_top *top = &ui->run->top;
	uint32_t node;

	if (ui->call + 1 >= top->outline.lines.nr)
		return;
	node = top->outline.lines.v[ui->call + 1].node;
	/* Frames have the same numbers in both profiles. */
	(void)uni_top_select_frame(top, uni_profile_node(top->focus, node)->frame);
	ui->first_call = ui->call = 0;
	ui->changed = true;
}

static void change_pane(struct uni_ui *ui)
{
	ui->pane = ui->pane == UNI_PANE_CALLS ? UNI_PANE_FUNCTIONS : UNI_PANE_CALLS;
	if (ui->pane == UNI_PANE_CALLS)
		ui->hide_calls = false;
	ui->changed = true;
}

static void change_window(struct uni_ui *ui, bool longer)
{
	static const uint64_t windows[] = { 1, 2, 5, 10, 30, 60, 300, 0 };
	struct uni_top *top = &ui->run->top;
	size_t i = 0, nr = uni_array_len(windows);

	while (i + 1 < nr && windows[i] * UNI_NSEC_PER_SEC < top->window_ns)
		i++;
	if (top->window_ns == 0)
		i = nr - 1;
	i = (longer ? i + 1 : i + nr - 1) % nr;
	top->window_ns = windows[i] * UNI_NSEC_PER_SEC;
	ui->again = true;
}

/* All, 0, 1, ... nr - 1, and round again. */
static int64_t step_choice(int64_t at, int64_t nr, bool next)
{
	return (at + 1 + (next ? 1 : nr)) % (nr + 1) - 1;
}

static void change_guest(struct uni_ui *ui, bool next)
{
	struct uni_top *top = &ui->run->top;

	top->guest = step_choice(top->guest, ui->run->nr_guests, next);
	top->vcpu = -1;
	ui->again = true;
}

/* With several guests it is the vCPU of that number of each, or of the selected guest. */
static void change_vcpu(struct uni_ui *ui, bool next)
{
	struct uni_top *top = &ui->run->top;
	const uint32_t *first = top->first_vcpu;
	int64_t nr = 0;

	for (uint32_t i = 0; i < ui->run->nr_guests; i++) {
		if (top->guest < 0 || top->guest == i)
			nr = uni_max(nr, (int64_t)(first[i + 1] - first[i]));
	}
	top->vcpu = step_choice(top->vcpu, nr, next);
	ui->again = true;
}

static void sort_by(struct uni_ui *ui, unsigned by)
{
	ui->run->top.sort = by % UNI_LIVE_SORT_NR;
	ui->again = true;
}

static void toggle_freeze(struct uni_ui *ui)
{
	struct uni_top *top = &ui->run->top;

	top->frozen_ns = top->frozen_ns != 0 ? 0 : top->shown_ns;
	ui->again = true;
}

static void save_kept(struct uni_ui *ui)
{
	_cleanup_free_ char *path = NULL;
	struct uni_history_info info;
	struct uni_err err = { 0 };

	uni_history_info(ui->run->top.history, &info);
	if (info.kept == 0)
		uni_ui_say(ui, true, "nothing was sampled yet");
	else if (uni_top_run_save(ui->run, &path, &err) != 0)
		uni_ui_say(ui, true, "not saved: %s", err.msg);
	else if (info.kept < info.seen)
		uni_ui_say(ui, false, "saved %s: the last %" PRIu64 " of %" PRIu64 " sample%s",
			path, info.kept, info.seen, uni_plural(info.seen));
	else
		uni_ui_say(ui, false, "saved %s: %" PRIu64 " sample%s", path, info.kept,
			uni_plural(info.kept));
}

static void clear_all(struct uni_ui *ui)
{
	uni_top_clear(&ui->run->top, uni_now_ns());
	uni_ui_say(ui, false, "started anew");
	ui->again = true;
}

static void begin_filter(struct uni_ui *ui)
{
	ui->filtering = true;
	ui->pane = UNI_PANE_FUNCTIONS;
	memcpy(ui->filter_before, ui->run->top.filter, sizeof(ui->filter_before));
	ui->changed = true;
}

/* Escape goes back, one step at a time. */
static void go_back(struct uni_ui *ui)
{
	if (ui->pane == UNI_PANE_CALLS)
		ui->pane = UNI_PANE_FUNCTIONS;
	else
		ui->run->top.filter[0] = '\0';
	ui->again = true;
}

static bool moving_key(struct uni_ui *ui, int32_t key)
{
	switch (key) {
	case UNI_KEY_UP:
	case 'k':
		move_selection(ui, -1);
		return true;
	case UNI_KEY_DOWN:
	case 'j':
		move_selection(ui, 1);
		return true;
	case UNI_KEY_PAGE_UP:
		move_selection(ui, -ui->page);
		return true;
	case UNI_KEY_PAGE_DOWN:
		move_selection(ui, ui->page);
		return true;
	case UNI_KEY_HOME:
	case 'g':
		move_home(ui);
		return true;
	case UNI_KEY_LAST:
	case 'G':
		move_selection(ui, INT32_MAX);
		return true;
	case '\t':
		close_code(ui);
		change_pane(ui);
		return true;
	case UNI_KEY_ENTER:
		if (ui->code.shown)
			close_code(ui);
		else if (ui->pane == UNI_PANE_CALLS)
			pick_call(ui);
		else
			open_code(ui);
		return true;
	default:
		return false;
	}
}

static bool setting_key(struct uni_ui *ui, int32_t key)
{
	struct uni_top *top = &ui->run->top;

	switch (key) {
	case 'c':
		top->callers = !top->callers;
		ui->first_call = ui->call = 0;
		break;
	case 'i':
		top->idle = !top->idle;
		break;
	case 'o':
		sort_by(ui, top->sort + 1u);
		break;
	case '1':
	case '2':
	case '3':
		sort_by(ui, (unsigned)(key - '1'));
		break;
	case 'v':
	case 'V':
		change_vcpu(ui, key == 'v');
		break;
	case 'm':
	case 'M':
		change_guest(ui, key == 'm');
		break;
	case 'w':
	case 'W':
		change_window(ui, key == 'w');
		break;
	case 't':
		ui->hide_calls = !ui->hide_calls;
		ui->pane = UNI_PANE_FUNCTIONS;
		break;
	default:
		return false;
	}
	ui->again = true;
	return true;
}

static void doing_key(struct uni_ui *ui, int32_t key)
{
	switch (key) {
	case ' ':
	case 'p':
		toggle_freeze(ui);
		break;
	case '/':
		begin_filter(ui);
		break;
	case UNI_KEY_ESCAPE:
		go_back(ui);
		break;
	case 's':
		save_kept(ui);
		break;
	case 'z':
		clear_all(ui);
		break;
	case 'l' & 0x1f:
		uni_screen_redraw();
		ui->changed = true;
		break;
	case 'q':
	case UNI_KEY_END_OF_INPUT:
		ui->quit = true;
		break;
	default:
		break;
	}
}

void uni_ui_key(struct uni_ui *ui, int32_t key)
{
	if (key == UNI_KEY_RESIZE) {
		/* Terminals do not agree on what becomes of the old picture. */
		uni_screen_redraw();
		ui->changed = true;
	} else if (ui->filtering && key != UNI_KEY_END_OF_INPUT) {
		filter_key(ui, key);
	} else if (key == '?' || key == 'h' || key == UNI_KEY_HELP) {
		ui->help = !ui->help;
		ui->changed = true;
	} else if (ui->help && (key == UNI_KEY_ESCAPE || key == 'q')) {
		ui->help = false;
		ui->changed = true;
	} else if (ui->code.shown && (key == UNI_KEY_ESCAPE || key == 'q')) {
		close_code(ui);
	} else if (!moving_key(ui, key) && !setting_key(ui, key)) {
		doing_key(ui, key);
	}
}
