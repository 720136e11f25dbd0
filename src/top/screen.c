/* SPDX-License-Identifier: BSD-2-Clause */
#define _XOPEN_SOURCE_EXTENDED 1 /* ncurses: wide characters */
#include "top/screen.h"

#include <curses.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "base/checked.h"
#include "app/term.h"
#include "top/signals.h"

#define TEXT_MAX    1024 /* characters of one piece of text */
#define ESCAPE_MS   25
#define NOTHING_MAX 20

static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

/* There is one terminal. Data for the crash handler is made beforehand. */
static struct {
	SCREEN *screen;
	bool open, colour;
	unsigned nothing; /* times in a row that there was input, but no key */
	struct termios before;
	char restore[128];
	size_t restore_len;
	struct sigaction old[uni_array_len(crashes)];
} term;

/* Calls only async-signal-safe functions: restores the terminal, then lets the crash go on. */
static void on_crash(int sig)
{
	(void)!write(STDOUT_FILENO, term.restore, term.restore_len);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &term.before);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void add_restore(const char *name)
{
	const char *s = tigetstr(name);
	size_t len = s != NULL && s != (const char *)-1 ? strlen(s) : 0;

	/* Waiting times in it are for terminals of long ago. */
	if (len == 0 || len > sizeof(term.restore) - term.restore_len || strstr(s, "$<") != NULL)
		return;
	memcpy(term.restore + term.restore_len, s, len);
	term.restore_len += len;
}

static void guard_against_crashes(void)
{
	struct sigaction sa = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };

	term.restore_len = 0;
	add_restore("sgr0");
	add_restore("cnorm");
	add_restore("rmkx");
	add_restore("rmcup");
	for (size_t i = 0; i < uni_array_len(crashes); i++)
		(void)sigaction(crashes[i], &sa, &term.old[i]);
}

static void make_colours(void)
{
	static const struct {
		short fg, bg;
	} colours[UNI_INK_NR] = {
		[UNI_INK_PLAIN] = { -1, -1 },
		[UNI_INK_BAR] = { COLOR_BLACK, COLOR_GREEN },
		[UNI_INK_PICK] = { COLOR_BLACK, COLOR_CYAN },
		[UNI_INK_PICK_AWAY] = { COLOR_BLACK, COLOR_WHITE },
		[UNI_INK_HOT] = { COLOR_RED, -1 },
		[UNI_INK_WARM] = { COLOR_YELLOW, -1 },
		[UNI_INK_BAD] = { COLOR_RED, -1 },
		[UNI_INK_KEY] = { COLOR_CYAN, -1 },
		[UNI_INK_GUEST] = { COLOR_GREEN, -1 },
		[UNI_INK_KVM] = { COLOR_BLUE, -1 },
		[UNI_INK_VMM] = { COLOR_MAGENTA, -1 },
		[UNI_INK_STOLEN] = { COLOR_RED, -1 },
	};

	term.colour = uni_term_colour(stdout) && has_colors() && start_color() == OK &&
		      use_default_colors() == OK;
	for (short i = 1; term.colour && i < UNI_INK_NR; i++)
		(void)init_pair(i, colours[i].fg, colours[i].bg);
}

static attr_t attr_of(enum uni_ink ink)
{
	static const attr_t mono[UNI_INK_NR] = {
		[UNI_INK_BAR] = A_REVERSE,
		[UNI_INK_PICK] = A_REVERSE | A_BOLD,
		[UNI_INK_PICK_AWAY] = A_UNDERLINE,
		[UNI_INK_HOT] = A_BOLD,
		[UNI_INK_BAD] = A_BOLD,
		[UNI_INK_KEY] = A_BOLD,
	};

	if (!term.colour)
		return mono[ink];
	return ink == UNI_INK_HOT || ink == UNI_INK_BAD ? A_BOLD : A_NORMAL;
}

int uni_screen_open(struct uni_err *err)
{
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) ||
		tcgetattr(STDIN_FILENO, &term.before) != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"this is no terminal: --batch prints snapshots as plain text");
	(void)setlocale(LC_CTYPE, "");
	term.screen = newterm(NULL, stdout, stdin);
	if (term.screen == NULL) {
		const char *name = getenv("TERM");

		return uni_err_set(err, UNI_ENOTSUP, "terminal %s%s: set TERM, or use --batch",
			name != NULL ? name : "of no name",
			name != NULL ? " is not known or cannot place its cursor" : "");
	}
	term.open = true;
	guard_against_crashes();
	make_colours();
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, true);
	(void)nodelay(stdscr, true);
	(void)set_escdelay(ESCAPE_MS);
	(void)curs_set(0);
	/* It has put handlers of its own in their place. */
	uni_top_signals_take();
	return 0;
}

void uni_screen_close(void)
{
	if (!term.open)
		return;
	(void)curs_set(1);
	(void)endwin();
	delscreen(term.screen);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &term.before);
	for (size_t i = 0; i < uni_array_len(crashes); i++)
		(void)sigaction(crashes[i], &term.old[i], NULL);
	term.screen = NULL;
	term.open = false;
}

void uni_screen_leave(void)
{
	(void)curs_set(1);
	(void)endwin();
}

void uni_screen_enter(void)
{
	(void)refresh();
	(void)curs_set(0);
	uni_screen_redraw();
}

int uni_screen_rows(void)
{
	return getmaxy(stdscr);
}

int uni_screen_columns(void)
{
	return getmaxx(stdscr);
}

void uni_screen_begin(void)
{
	(void)erase();
}

void uni_screen_show(void)
{
	(void)refresh();
}

void uni_screen_redraw(void)
{
	(void)clearok(stdscr, true);
}

/* One character of valid UTF-8; '?' if it is invalid or cannot be shown here. */
static wchar_t next_char(const char **text)
{
	const unsigned char *s = (const unsigned char *)*text;
	unsigned n = s[0] < 0x80 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
	wchar_t c = n == 0 ? (wchar_t)s[0] : (wchar_t)(s[0] & (0x3f >> n));
	unsigned i = 1;

	for (; i <= n && (s[i] & 0xc0) == 0x80; i++)
		c = (wchar_t)(c << 6 | (s[i] & 0x3f));
	*text += i;
	if (i <= n || (n != 0 && MB_CUR_MAX == 1) || c < 0x20 || (c >= 0x7f && c < 0xa0) ||
		!iswprint((wint_t)c) || wcwidth(c) < 1)
		return L'?';
	return c;
}

/* As much as fits; ".." at the end marks a cut. Returns columns. */
static int lay_out(const char *text, int width, wchar_t out[TEXT_MAX + 3])
{
	int used = 0, cut_at = 0, cut_used = 0, n = 0;

	while (*text != '\0' && n < TEXT_MAX) {
		wchar_t c = next_char(&text);
		int w = wcwidth(c) > 0 ? wcwidth(c) : 1;

		if (used + w > width) {
			n = cut_at;
			used = cut_used;
			for (int i = 0; i < 2 && used < width; i++, used++)
				out[n++] = L'.';
			break;
		}
		out[n++] = c;
		used += w;
		if (used + 2 <= width) {
			cut_at = n;
			cut_used = used;
		}
	}
	out[n] = L'\0';
	return used;
}

int uni_screen_put(int row, int column, int width, enum uni_ink ink, const char *text)
{
	wchar_t out[TEXT_MAX + 3];
	int used;

	if (row < 0 || row >= getmaxy(stdscr) || column < 0 || column >= getmaxx(stdscr))
		return 0;
	width = uni_min(width, getmaxx(stdscr) - column);
	if (width <= 0)
		return 0;
	used = lay_out(text, width, out);
	(void)attr_set(attr_of(ink), term.colour ? (short)ink : 0, NULL);
	(void)mvaddwstr(row, column, out);
	(void)attr_set(A_NORMAL, 0, NULL);
	return used;
}

void uni_screen_fill(int row, int column, int width, enum uni_ink ink, char c)
{
	if (row < 0 || row >= getmaxy(stdscr) || column < 0 || column >= getmaxx(stdscr))
		return;
	(void)attr_set(attr_of(ink), term.colour ? (short)ink : 0, NULL);
	for (int i = column; i < uni_min(column + width, getmaxx(stdscr)); i++)
		(void)mvaddch(row, i, (chtype)(unsigned char)c);
	(void)attr_set(A_NORMAL, 0, NULL);
}

void uni_screen_cursor(int row, int column)
{
	(void)curs_set(row >= 0 ? 1 : 0);
	if (row >= 0)
		(void)move(uni_min(row, getmaxy(stdscr) - 1), uni_min(column, getmaxx(stdscr) - 1));
}

static int32_t special_key(wint_t c)
{
	static const struct {
		wint_t from;
		int32_t to;
	} keys[] = {
		{ KEY_UP, UNI_KEY_UP },
		{ KEY_DOWN, UNI_KEY_DOWN },
		{ KEY_PPAGE, UNI_KEY_PAGE_UP },
		{ KEY_NPAGE, UNI_KEY_PAGE_DOWN },
		{ KEY_HOME, UNI_KEY_HOME },
		{ KEY_END, UNI_KEY_LAST },
		{ KEY_LEFT, UNI_KEY_LEFT },
		{ KEY_RIGHT, UNI_KEY_RIGHT },
		{ KEY_ENTER, UNI_KEY_ENTER },
		{ KEY_BACKSPACE, UNI_KEY_BACKSPACE },
		{ KEY_RESIZE, UNI_KEY_RESIZE },
		{ KEY_F(1), UNI_KEY_HELP },
	};

	for (size_t i = 0; i < uni_array_len(keys); i++) {
		if (keys[i].from == c)
			return keys[i].to;
	}
	return UNI_KEY_OTHER;
}

int32_t uni_screen_key(unsigned wait_ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	wint_t c = 0;
	int r = get_wch(&c);

	if (r == ERR) {
		/* Waits outside of ncurses, which would not report a closed terminal. */
		bool input = poll(&p, 1, (int)wait_ms) > 0;

		if (input && (p.revents & (POLLHUP | POLLERR | POLLNVAL)))
			return UNI_KEY_END_OF_INPUT;
		r = get_wch(&c);
		term.nothing = input && r == ERR ? term.nothing + 1 : 0;
	}
	if (r == ERR)
		return term.nothing > NOTHING_MAX ? UNI_KEY_END_OF_INPUT : UNI_KEY_NONE;
	if (r == KEY_CODE_YES)
		return special_key(c);
	if (c == '\r' || c == '\n')
		return UNI_KEY_ENTER;
	if (c == 0x1b)
		return UNI_KEY_ESCAPE;
	return c == 0x7f || c == '\b' ? UNI_KEY_BACKSPACE : (int32_t)c;
}
