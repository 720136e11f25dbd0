/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal: taken and given back whole on every way out, also when this program crashes. Text
 * is put down as characters that are printable, never as bytes: nothing in it reaches the terminal
 * as a control sequence.
 */
#ifndef UNI_TOP_SCREEN_H
#define UNI_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum uni_ink {
	UNI_INK_PLAIN,
	UNI_INK_BAR,	   /* title, headings */
	UNI_INK_PICK,	   /* the selected row */
	UNI_INK_PICK_AWAY, /* ... where the keys do not go */
	UNI_INK_HOT,
	UNI_INK_WARM,
	UNI_INK_BAD,
	UNI_INK_KEY,
	UNI_INK_GUEST,
	UNI_INK_KVM,
	UNI_INK_VMM,
	UNI_INK_STOLEN,
	UNI_INK_NR
};

/* Keys that are no characters; characters come as their code point. */
enum uni_key {
	UNI_KEY_NONE = -1, /* nothing until the time was over */
	UNI_KEY_END_OF_INPUT = -2,
	UNI_KEY_UP = -100,
	UNI_KEY_DOWN,
	UNI_KEY_PAGE_UP,
	UNI_KEY_PAGE_DOWN,
	UNI_KEY_HOME,
	UNI_KEY_LAST,
	UNI_KEY_LEFT,
	UNI_KEY_RIGHT,
	UNI_KEY_ENTER,
	UNI_KEY_ESCAPE,
	UNI_KEY_BACKSPACE,
	UNI_KEY_RESIZE,
	UNI_KEY_HELP,
	UNI_KEY_OTHER,
};

/* -UNI_ENOTSUP: this is no terminal, or one that cannot place its cursor. */
int uni_screen_open(struct uni_err *err);
void uni_screen_close(void); /* idempotent */
/* Gives the terminal back for a while, and takes it again. */
void uni_screen_leave(void);
void uni_screen_enter(void);

int uni_screen_rows(void);
int uni_screen_columns(void);

void uni_screen_begin(void); /* an empty picture */
void uni_screen_show(void);
void uni_screen_redraw(void); /* the next one from scratch */
/* Text from (row, column) on, in at most `width` columns. Longer text is cut, and ".." marks the
 * cut. Returns the number of used columns. Never writes outside the screen. */
int uni_screen_put(int row, int column, int width, enum uni_ink ink, const char *text);
/* The same character `width` times. */
void uni_screen_fill(int row, int column, int width, enum uni_ink ink, char c);
/* The position at which the user types; -1: none. */
void uni_screen_cursor(int row, int column);

/* enum uni_key or a code point; waits for that long. */
int32_t uni_screen_key(unsigned wait_ms);

#endif
