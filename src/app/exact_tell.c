/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes on the exact counts of a run, and reasons to fail. */
#include "app/exact_priv.h"

#include <inttypes.h>

#include "app/term.h"
#include "base/text.h"

static void tell_calls(const struct uni_exact_run *run)
{
	uint64_t lost = uni_calls_session_lost(&run->calls),
		 events = uni_calls_session_events(&run->calls),
		 bytes = uni_calls_session_bytes(&run->calls);

	if (run->calls.calls == NULL)
		return;
	uni_note("%" PRIu64 " entries and exits are recorded in %" PRIu64 " bytes (%.1f each); "
		 "times in the trace are instructions (1 ns each)",
		events, bytes, events != 0 ? (double)bytes / (double)events : 0.0);
	if (lost != 0)
		uni_note("%" PRIu64 " are lost", lost);
}

/* How far the image moved, and the programs of which no code ran. */
static void tell_places(const struct uni_exact_run *run, const struct uni_exact *e)
{
	const struct uni_exact_function *f;
	const struct uni_exact_node *node;
	uint32_t nr_functions, nr_nodes, i;

	f = uni_exact_functions(e, &nr_functions);
	node = uni_exact_nodes(e, &nr_nodes);
	if (uni_exact_moved(e) != 0)
		uni_note("%s moved by 0x%" PRIx64 "; its addresses are as linked",
			uni_image_path(run->image), uni_exact_moved(e));
	for (size_t k = 1; k < run->nr_all; k++) {
		for (i = 0; i < nr_nodes; i++) {
			if (node[i].insns != 0 &&
				f[node[i].function].start >> 32 == UNI_EXACT_PROGRAM(k) >> 32)
				break;
		}
		if (i == nr_nodes)
			uni_note("%s: none of its code was executed",
				uni_image_path(run->all[k].image));
	}
}

void uni_exact_tell(const struct uni_exact_run *run, const struct uni_exact *e)
{
	uint64_t unsure = uni_exact_stat(e, UNI_EXACT_UNKNOWN_CUTS);

	if (uni_exact_mode(e) == UNI_EXACT_COUNTS)
		uni_note("%s: %" PRIu64 " instruction%s", run->end, uni_exact_insns(e),
			uni_plural(uni_exact_insns(e)));
	else
		uni_note("%s: %" PRIu64 " instruction%s, %" PRIu64 " call%s, %" PRIu64
			 " interrupt%s",
			run->end, uni_exact_insns(e), uni_plural(uni_exact_insns(e)),
			uni_exact_stat(e, UNI_EXACT_CALLS),
			uni_plural(uni_exact_stat(e, UNI_EXACT_CALLS)),
			uni_exact_stat(e, UNI_EXACT_INTERRUPTS),
			uni_plural(uni_exact_stat(e, UNI_EXACT_INTERRUPTS)));
	if (uni_exact_before(e) != 0)
		uni_note("%" PRIu64 " instruction%s of firmware before the image are left out",
			uni_exact_before(e), uni_plural(uni_exact_before(e)));
	tell_places(run, e);
	if (uni_exact_state(e) == UNI_EXACT_RUNS)
		uni_note("read while the guest ran: not all numbers are of one moment");
	if (run->args->end_at != NULL && uni_exact_state(e) != UNI_EXACT_REACHED)
		uni_note("%s was not called: all is counted until the guest's end",
			run->args->end_at);
	if (run->args->repeatable && run->over)
		uni_note("the guest did not end by itself: when it was ended is not repeatable");
	if (unsure != 0)
		uni_note("%" PRIu64 " blocks were left in their middle, nobody knows where: all of "
			 "each is counted",
			unsure);
	if (uni_exact_stat(e, UNI_EXACT_FOLDED) != 0)
		uni_note("the tree was folded at %" PRIu64 " calls: deeper than %d frames, or in "
			 "too many contexts. These count below an earlier call of their caller, or "
			 "beside it",
			uni_exact_stat(e, UNI_EXACT_FOLDED), UNI_EXACT_DEPTH);
	if (uni_exact_stat(e, UNI_EXACT_UNCOUNTED) != 0)
		uni_note("%" PRIu64 " blocks of code did not fit into memory or on the disk: they "
			 "are not counted",
			uni_exact_stat(e, UNI_EXACT_UNCOUNTED));
	tell_calls(run);
	uni_note("wrote %s: try `uniscope %sreport %s`", run->args->rec->output,
		run->calls.out != NULL ? "trace " : "", run->args->rec->output);
}

/* QEMU 9 and later count by vCPU, in memory of their own. */
static bool has_none_yet(const struct uni_exact *e)
{
	return uni_exact_mode(e) == UNI_EXACT_COUNTS && uni_exact_before(e) == 0 &&
	       uni_exact_parts(e).nr_blocks != 0 &&
	       (uni_exact_state(e) == UNI_EXACT_RUNS || uni_exact_state(e) == UNI_EXACT_KILLED);
}

int uni_exact_check_counts(
	const struct uni_exact_run *run, const struct uni_exact *e, struct uni_err *err)
{
	if (uni_exact_insns(e) != 0)
		return 0;
	if (uni_exact_stat(e, UNI_EXACT_UNCOUNTED) != 0)
		return uni_err_set(err, UNI_EIO,
			"there is no room for the counts in %s: free some, or name another folder "
			"by TMPDIR",
			run->counts);
	if (has_none_yet(e))
		return uni_err_set(err, UNI_EAGAIN,
			"%s: this QEMU hands over the numbers of mode counts when it ends: take "
			"mode tree",
			run->end);
	if (run->by_you)
		return uni_err_set(err, UNI_EAGAIN,
			"ended by you after %.1f s, before the guest executed any code of %s",
			run->took_s, uni_image_path(run->image));
	if (run->args->begin_at != NULL && uni_exact_before(e) != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s, and never called %s: no counting began, after %" PRIu64
			" instructions of all code",
			run->end, run->args->begin_at, uni_exact_before(e));
	return uni_err_set(err, UNI_EMISMATCH,
		"%s, and executed no code of %s%s: is it the image that was booted, linked where "
		"it runs?",
		run->end, uni_image_path(run->image),
		uni_exact_before(e) != 0 ? ", only code before it or elsewhere" : "");
}

/* A guest that we have booted waits for us: only a full disk loses its calls. */
int uni_exact_check_calls(const struct uni_exact_run *run, struct uni_err *err)
{
	uint64_t lost = uni_calls_session_lost(&run->calls);

	if (run->calls.calls == NULL || run->scratch.path == NULL || lost == 0)
		return 0;
	return uni_err_set(err, UNI_EIO,
		"%" PRIu64
		" calls and returns are lost, the trace lacks them: there is no room for "
		"them in %s; free some, or name another folder by TMPDIR",
		lost, run->scratch.path);
}
