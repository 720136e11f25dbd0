/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/term.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

unsigned uni_term_width(FILE *f)
{
	struct winsize ws;

	if (isatty(fileno(f)) && ioctl(fileno(f), TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 40)
		return ws.ws_col;
	return 80;
}

bool uni_term_colour(FILE *f)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (no == NULL || no[0] == '\0') && isatty(fileno(f)) && term != NULL &&
	       strcmp(term, "dumb") != 0;
}

static _Thread_local bool hushed;

void uni_note_hush(bool hush)
{
	hushed = hush;
}

void uni_note(const char *fmt, ...)
{
	char line[4096], clean[4096];
	va_list ap;

	if (hushed)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* File names and the like are other people's words. */
	(void)uni_text_clean(clean, sizeof(clean), line, strlen(line));
	uni_progress_end();
	(void)fprintf(stderr, "uniscope: %s\n", clean);
}

void uni_progress(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!isatty(STDERR_FILENO))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\r\033[K%.*s", (int)uni_term_width(stderr) - 1, line);
	(void)fflush(stderr);
}

void uni_progress_end(void)
{
	if (isatty(STDERR_FILENO)) {
		(void)fputs("\r\033[K", stderr);
		(void)fflush(stderr);
	}
}
