/* SPDX-License-Identifier: BSD-2-Clause */
/* `record --save-replay`. */
#include "app/record.h"

#include <inttypes.h>

#include "app/term.h"
#include "base/text.h"
#include "backend/replay/writer.h"

int uni_record_tee_begin(struct uni_guest *g, const char *path, struct uni_err *err)
{
	struct uni_target *inner = g->t;
	int rc;

	g->saved = true;
	g->t = NULL; /* owned by the tee, also when it fails */
	rc = uni_replay_tee(inner, path, &g->t, err);
	return rc == 0 && g->image != NULL ? uni_guest_check_image(g, err) : rc;
}

int uni_record_tee_end(struct uni_guest *g, const struct uni_record_args *args, struct uni_err *err)
{
	struct uni_replay_saved saved = { 0 };
	int rc = uni_replay_tee_finish(g->t, &saved, err);

	if (rc == 0 && !args->quiet)
		uni_note("saved %" PRIu64 " snapshot%s (%" PRIu64 " kB) in %s%s", saved.snapshots,
			uni_plural(saved.snapshots), saved.bytes / 1024, args->save_replay,
			saved.lost_snapshots + saved.lost_blocks != 0
				? ", not all: it is full, or memory could not be read"
				: "");
	return rc;
}
