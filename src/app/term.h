/* SPDX-License-Identifier: BSD-2-Clause */
/* Abilities of the terminal, and messages on stderr: progress on a terminal, quiet in a pipe. */
#ifndef UNI_APP_TERM_H
#define UNI_APP_TERM_H

#include <stdbool.h>
#include <stdio.h>

unsigned uni_term_width(FILE *f); /* columns; 80 when it is no terminal */
bool uni_term_colour(FILE *f);	  /* a terminal, TERM not dumb, NO_COLOR not set */

/* A note to the user: "uniscope: ..." on stderr. */
void uni_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Drops this thread's notes, because it does the same repeatedly. */
void uni_note_hush(bool hush);
/* One line that overwrites itself; nothing when stderr is no terminal. */
void uni_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void uni_progress_end(void); /* clears the line */

#endif
