/* SPDX-License-Identifier: BSD-2-Clause */
/* The screen of `top`: its contents, and the effects of keys. */
#ifndef UNI_TOP_UI_H
#define UNI_TOP_UI_H

#include "top/code.h"
#include "top/run.h"
#include "top/say.h"

enum uni_pane {
	UNI_PANE_FUNCTIONS,
	UNI_PANE_CALLS,
};

struct uni_ui {
	struct uni_top_run *run;
	enum uni_pane pane;	  /* where the arrow keys go */
	size_t first_row;	  /* of the functions on the screen */
	size_t first_call, call;  /* of the calls; the picked one */
	struct uni_top_code code; /* instead of the tables, if it is shown */
	bool hide_calls, help, filtering;
	char filter_before[UNI_TOP_NAME_MAX]; /* what Escape goes back to */
	char message[UNI_SAY_MAX];
	bool message_bad;
	uint64_t message_until_ns;
	int page; /* lines of the pane with the keys, as last drawn */
	bool quit, again, changed;
};

/* One picture. */
void uni_ui_draw(struct uni_ui *ui);
/* The list of keys, from that row on. */
void uni_ui_draw_help(int row, int height);
/* A function's code, in these lines. */
void uni_ui_draw_code(struct uni_ui *ui, int row, int height);
/* The lines of vCPUs, at most `height`; returns their number. */
int uni_ui_draw_vcpus(const struct uni_top_run *r, int row, int height);

/* Handles a key and changes settings. Sets ui->again if the model has to be computed again, or
 * ui->changed if only the picture has to be drawn. */
void uni_ui_key(struct uni_ui *ui, int32_t key);
void uni_ui_say(struct uni_ui *ui, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
