/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/checked.h"
#include "base/clock.h"
#include "top/run.h"
#include "top/screen.h"
#include "top/signals.h"
#include "top/ui.h"

#define WAIT_MS	 50u
#define FIRST_NS (300 * UNI_NSEC_PER_MSEC) /* the first picture need not be a good one */

static void suspend_screen(struct uni_ui *ui)
{
	uni_screen_leave();
	uni_top_run_suspend(ui->run);
	uni_screen_enter();
	ui->changed = true;
}

/* All that were typed; false: nothing more to do but to end. */
static bool take_keys(struct uni_ui *ui)
{
	int32_t key = uni_screen_key(WAIT_MS);

	for (unsigned i = 0; key != UNI_KEY_NONE && i < 64 && !ui->quit; i++) {
		uni_ui_key(ui, key);
		key = uni_screen_key(0);
	}
	return !ui->quit && !uni_top_asked_to_end();
}

static int screen_loop(struct uni_ui *ui, struct uni_err *err)
{
	uint64_t interval_ns = (uint64_t)(ui->run->args->interval * 1e9);
	uint64_t begin_ns = uni_now_ns(), next_ns = begin_ns + uni_min(interval_ns, FIRST_NS);
	uint64_t limit_ns = (uint64_t)(ui->run->args->duration * 1e9);
	int rc = uni_top_run_refresh(ui->run, err);

	ui->changed = true;
	while (rc == 0) {
		uint64_t now_ns = uni_now_ns();
		bool anew = ui->again || now_ns >= next_ns;

		/* Samples are taken out all the time, whatever is on the screen. */
		uni_top_run_drain(ui->run);
		if (now_ns >= next_ns) {
			rc = uni_top_run_refresh(ui->run, err);
			next_ns = now_ns + interval_ns;
			ui->changed = true;
		} else if (ui->again && uni_top_again(&ui->run->top) != 0) {
			rc = uni_err_nomem(err);
		}
		if (rc == 0 && ui->code.shown && anew &&
			uni_top_code_refresh(&ui->code, ui->run) != 0)
			rc = uni_err_nomem(err);
		if (ui->changed || ui->again)
			uni_ui_draw(ui);
		ui->changed = ui->again = false;
		if (!take_keys(ui) || (limit_ns != 0 && now_ns - begin_ns >= limit_ns))
			break;
		if (uni_top_asked_to_suspend())
			suspend_screen(ui);
	}
	return rc;
}

/* Why it ended stays readable when the screen is gone. */
static int screen_result(const struct uni_top_run *r, struct uni_err *err)
{
	const struct uni_feed_status *st = &r->top.last;

	if (!st->ended || st->rc == 0)
		return 0;
	*err = st->err;
	return st->rc;
}

int uni_top_run_screen(struct uni_top_run *r, struct uni_err *err)
{
	struct uni_ui ui = { .run = r };
	int rc = uni_screen_open(err);

	if (rc != 0)
		return rc;
	rc = screen_loop(&ui, err);
	uni_screen_close();
	uni_top_code_close(&ui.code);
	return rc != 0 ? rc : screen_result(r, err);
}
