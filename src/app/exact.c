/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/exact_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/self.h"
#include "app/signals.h"
#include "app/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "config.h"
#include "recording/folder.h"

#define LOOK_NS (50 * UNI_NSEC_PER_MSEC)
/* Between two looks at calls: while there are some, and else. */
#define BUSY_NS	 (1 * UNI_NSEC_PER_MSEC)
#define CALLS_NS (10 * UNI_NSEC_PER_MSEC)

/* Looks at a file that QEMU writes. */
#define TRIES  50
#define TRY_NS (10 * UNI_NSEC_PER_MSEC)

static int load_image(struct uni_exact_run *run, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&run->args->rec->debug_dirs);
	const char *image = run->args->symbols != NULL ? run->args->symbols : run->args->qemu.image;
	int rc = uni_image_load_from(image, &search, &run->image, err);

	run->all[0].image = run->image;
	run->nr_all = 1;
	return rc;
}

/* The guest's programs that are files; wherever the guest has them, the plugin finds
 * them. */
static int load_programs(struct uni_exact_run *run, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&run->args->rec->debug_dirs);
	const struct uni_opt_list *given = &run->args->rec->sysroot;

	for (size_t i = 0; i < given->items.nr; i++) {
		struct uni_exact_image *to = &run->all[run->nr_all];
		int rc;

		if (run->nr_all == UNI_IMAGES_MAX)
			return uni_err_set(err, UNI_EUSAGE, "-e names too many images: at most %d",
				UNI_IMAGES_MAX);
		rc = uni_image_load_from(given->items.v[i], &search, &to->image, err);
		if (rc != 0)
			return rc;
		/* The lower half of its addresses stays. */
		to->bias = UNI_EXACT_PROGRAM(run->nr_all++);
		if (uni_image_nr_segments(to->image) != 0)
			to->bias -= uni_image_segment(to->image, 0)->vaddr >> 32 << 32;
	}
	return 0;
}

int uni_exact_load_images(struct uni_exact_run *run, struct uni_err *err)
{
	int rc = load_image(run, err);

	return rc == 0 ? load_programs(run, err) : rc;
}

int uni_exact_table_of(const struct uni_exact_run *run, struct uni_err *err)
{
	const struct uni_exact_choice choice = { .glob = run->args->filter,
		.nr_globs = run->args->nr_filter,
		.depth = run->args->depth };

	return uni_exact_write_table(run->all, run->nr_all, &choice, run->table, err);
}

/* As the command line has it, for those who read the trace. */
static void describe_only(struct uni_exact_run *run)
{
	_cleanup_strbuf_ struct uni_strbuf b;

	uni_strbuf_init(&b);
	if (run->only[0] != '\0') /* the table told it */
		return;
	for (size_t i = 0; i < run->args->nr_filter; i++)
		uni_strbuf_addf(&b, "%s--filter %s", i != 0 ? " " : "", run->args->filter[i]);
	if (run->args->depth != 0)
		uni_strbuf_addf(&b, "%s--depth %" PRIu64, b.len != 0 ? " " : "", run->args->depth);
	if (b.len != 0 && !uni_strbuf_failed(&b))
		(void)snprintf(run->only, sizeof(run->only), "%s", b.s);
}

static void fill_meta(const struct uni_exact_run *run, uint32_t nr_vcpus, struct uni_record_meta *m)
{
	const struct uni_arch *arch = uni_image_arch(run->image);

	(void)snprintf(m->target, sizeof(m->target), "exact:%s", run->args->qemu.image);
	(void)snprintf(m->method, sizeof(m->method), "exact");
	(void)snprintf(m->unit, sizeof(m->unit), "instructions");
	(void)snprintf(m->arch, sizeof(m->arch), "%s", arch != NULL ? arch->name : "");
	(void)snprintf(m->uniscope_version, sizeof(m->uniscope_version), "%s", UNISCOPE_VERSION);
	uni_self_command(m->command, sizeof(m->command));
	m->aggregate = true;
	m->repeatable = run->args->repeatable;
	m->nr_vcpus = nr_vcpus;
}

int uni_exact_begin_session(struct uni_exact_run *run, uint32_t nr_vcpus, struct uni_err *err)
{
	_cleanup_free_ struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	char calls[sizeof(run->counts) + sizeof(UNI_EXACT_CALLS_FILE)];
	int rc = 0;

	if (meta == NULL)
		return uni_err_nomem(err);
	fill_meta(run, nr_vcpus, meta);
	(void)snprintf(calls, sizeof(calls), "%s" UNI_EXACT_CALLS_FILE, run->counts);
	describe_only(run);
	if (run->args->mode == UNI_EXACT_TRACE)
		rc = uni_calls_session_open(&run->calls, calls, run->only, meta, err);
	if (rc == 0)
		rc = uni_recorder_create(
			run->args->rec->output, meta, run->args->rec->overwrite, &run->rec, err);
	if (rc == 0)
		rc = uni_recorder_add_image(run->rec, 0, run->image, err);
	for (size_t i = 1; rc == 0 && i < run->nr_all; i++)
		rc = uni_recorder_add_more(run->rec, 0, run->all[i].image, run->all[i].bias, err);
	if (rc == 0 && run->calls.calls != NULL)
		rc = uni_calls_session_begin(&run->calls, run->rec, err);
	return rc;
}

/* If several steps fail: the first one's code, and the words of all. */
static void add_error(int *rc, struct uni_err *err, int rc2, const struct uni_err *second)
{
	size_t len = strlen(err->msg);

	if (rc2 == 0)
		return;
	if (*rc != 0) {
		(void)snprintf(err->msg + len, sizeof(err->msg) - len, "; %s", second->msg);
		return;
	}
	*rc = rc2;
	*err = *second;
}

/* The tree goes into the session; why it does not into `failed`. */
static int save_tree(struct uni_exact_run *run, const struct uni_exact *e,
	struct uni_record_stats *st, char *failed, size_t cap)
{
	struct uni_err err = { 0 };
	int rc = uni_exact_save(e, run->args->rec->output, 0, &err);

	if (rc == 0)
		rc = uni_exact_samples(e, run->rec, st, &err);
	run->kept = rc == 0;
	if (rc != 0)
		(void)snprintf(failed, cap,
			"the tree of %" PRIu64 " instructions could not be written: %.300s",
			uni_exact_insns(e), err.msg);
	return rc;
}

/* Only the end shows it: calls have a session from the beginning. */
static const char *why_of(const struct uni_exact_run *run)
{
	return run->state == UNI_EXACT_RUNS
		       ? "read while the guest ran: not all numbers are of one moment"
	       : run->state == UNI_EXACT_KILLED ? "QEMU was killed"
						: NULL;
}

/* Closes it in any case, with what it has; e may be NULL. Calls that fill the disk leave room for
 * the tree. */
static int end_session(
	struct uni_exact_run *run, const struct uni_exact *e, int rc, struct uni_err *err)
{
	/* Its samples have their numbers for times: the host's clock begins at 0, too. */
	struct uni_record_stats st = {
		.end_ns = run->args->repeatable ? 0 : run->end_ns - run->begin_ns
	};
	struct uni_guest_result result = { .stats = &st, .why = why_of(run) };
	struct uni_err calls = { 0 }, tree = { 0 }, close = { 0 };
	char failed[sizeof(((struct uni_record_meta *)0)->failed)] = "";
	int rc2;

	if (rc != 0) {
		e = NULL;
		(void)snprintf(failed, sizeof(failed), "%.500s", err->msg);
	}
	if (run->calls.out != NULL)
		add_error(&rc, err, uni_calls_session_end(&run->calls, run->rec, &calls), &calls);
	uni_calls_session_give(&run->calls);
	rc2 = e != NULL ? save_tree(run, e, &st, failed, sizeof(failed)) : 0;
	if (rc2 != 0)
		(void)uni_err_set(&tree, (enum uni_errcode) - rc2, "%s", failed);
	add_error(&rc, err, rc2, &tree);
	if (failed[0] != '\0') {
		result.failed = failed;
		st.end_ns = 0;
	}
	add_error(&rc, err, uni_recorder_close(run->rec, &result, 1, &close), &close);
	run->rec = NULL;
	return rc;
}

int uni_exact_take_calls(struct uni_exact_run *run, uint64_t *nap_ns_ret, struct uni_err *err)
{
	uint64_t packets = 0;
	int rc = run->calls.out != NULL ? uni_calls_session_take(&run->calls, &packets, err) : 0;

	if (packets != 0)
		uni_calls_session_keep(&run->calls, run->args->rec->output, run->counts);
	*nap_ns_ret = run->calls.out == NULL ? LOOK_NS : packets != 0 ? BUSY_NS : CALLS_NS;
	return rc;
}

int uni_exact_finish(struct uni_exact_run *run, const struct uni_exact *e, struct uni_err *err)
{
	int rc = uni_exact_check_counts(run, e, err);
	bool empty = rc != 0 && run->rec != NULL && rc != -UNI_EIO;

	run->state = uni_exact_state(e);
	if (rc == 0 && run->rec == NULL)
		rc = uni_exact_begin_session(run, uni_exact_nr_vcpus(e), err);
	if (run->rec != NULL)
		rc = end_session(run, e, rc, err);
	if (empty)
		uni_sdir_remove(run->args->rec->output);
	if (!run->kept)
		return rc;
	for (size_t i = 0; i < run->nr_all; i++)
		uni_record_add_places(&(struct uni_guest){ .image = run->all[i].image },
			run->args->rec, run->args->rec->output);
	if (!run->args->rec->quiet)
		uni_exact_tell(run, e);
	return rc != 0 ? rc : uni_exact_check_calls(run, err);
}

int uni_exact_release(struct uni_exact_run *run, struct uni_exact *e, int rc, struct uni_err *err)
{
	if (run->rec != NULL)
		rc = end_session(run, NULL, rc, err);
	uni_calls_session_close(&run->calls);
	uni_exact_destroy(e);
	for (size_t i = 0; i < run->nr_all; i++)
		uni_image_destroy(run->all[i].image);
	return rc;
}

/* The guest may be started in another folder. */
static int name_files(struct uni_exact_run *run, const char *counts, struct uni_err *err)
{
	char here[2048] = "";
	int len;

	if (counts[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return uni_err_set(err, UNI_EIO, "this folder has no name: name it with a '/'");
	len = snprintf(run->counts, sizeof(run->counts), "%s%s%s", here, here[0] != '\0' ? "/" : "",
		counts);
	if (len > 0 && (size_t)len < sizeof(run->counts))
		len = snprintf(run->table, sizeof(run->table), "%s.functions", run->counts);
	if (len <= 0 || (size_t)len >= sizeof(run->table))
		return uni_err_set(err, UNI_EUSAGE, "%s: the name is too long", counts);
	return 0;
}

int uni_exact_print(const struct uni_exact_args *args, const char *counts, struct uni_err *err)
{
	struct uni_exact_run run = { .args = args };
	_cleanup_free_ char *option = NULL;
	int rc = name_files(&run, counts, err);

	if (rc == 0 && access(run.counts, F_OK) == 0)
		rc = uni_err_set(err, UNI_EUSAGE,
			"%s is there already: remove it, or give another name", counts);
	if (rc == 0)
		rc = load_image(&run, err);
	if (rc == 0)
		rc = uni_exact_table_of(&run, err);
	if (rc == 0)
		rc = uni_exact_places(args, run.image, &run.at, err);
	if (rc == 0 &&
		(option = uni_exact_option(args, &run.at, run.counts, run.table, err)) == NULL)
		rc = -(int)err->code;
	if (rc == 0)
		(void)printf("-plugin %s\n", option);
	uni_image_destroy(run.image);
	return rc;
}

static bool qemu_goes_on(const struct uni_exact_run *run)
{
	return run->args->pid != 0
		       ? !uni_process_is_ending(run->args->pid)
		       : run->calls.calls != NULL && uni_exact_calls_goes_on(run->calls.calls);
}

/* Until QEMU ends, the time is over, or the user ends it: takes calls, if there are some. */
static int follow_qemu(struct uni_exact_run *run, struct uni_err *err)
{
	uint64_t begin = uni_now_ns(), length = (uint64_t)(run->args->rec->duration * 1e9);
	struct uni_signals signals;
	int rc = 0;

	uni_signals_begin(&signals);
	while (rc == 0 && !atomic_load(uni_signals_stop()) && qemu_goes_on(run) &&
		(length == 0 || uni_now_ns() - begin < length)) {
		struct timespec nap;
		uint64_t nap_ns;

		rc = uni_exact_take_calls(run, &nap_ns, err);
		nap = uni_ns_timespec(nap_ns);
		(void)nanosleep(&nap, NULL);
	}
	uni_signals_end(&signals);
	return rc;
}

/* A reader that follows QEMU may come before it: the file may not be there yet. */
static bool may_come(const struct uni_exact_run *run)
{
	return run->args->follow && (run->args->pid == 0 || !uni_process_is_ending(run->args->pid));
}

/* QEMU may be writing: what does not fit together now will a moment later. */
static int take_counts(
	const struct uni_exact_run *run, bool first, struct uni_exact **ret, struct uni_err *err)
{
	const struct timespec nap = uni_ns_timespec(TRY_NS);
	int rc = uni_exact_take(run->counts, ret, err);

	for (int i = 1;
		(rc == -UNI_ENOENT && first && may_come(run)) || (rc == -UNI_EFORMAT && i < TRIES);
		i++) {
		(void)nanosleep(&nap, NULL);
		*err = (struct uni_err){ 0 };
		rc = uni_exact_take(run->counts, ret, err);
	}
	return rc;
}

int uni_exact_read(const struct uni_exact_args *args, const char *counts, struct uni_err *err)
{
	struct uni_exact_args own = *args;
	struct uni_exact_run run = { .args = &own };
	struct uni_exact *e = NULL;
	int rc = name_files(&run, counts, err);

	if (rc == 0)
		rc = load_image(&run, err);
	if (rc == 0)
		rc = take_counts(&run, true, &e, err);
	if (rc == 0)
		rc = uni_exact_check_table(run.table, run.image, run.only, sizeof(run.only), err);
	if (rc == 0)
		own.mode = uni_exact_mode(e);
	if (rc == 0 && own.mode == UNI_EXACT_TRACE)
		rc = uni_exact_begin_session(&run, uni_exact_nr_vcpus(e), err);
	if (rc == 0 && args->follow) {
		rc = follow_qemu(&run, err);
		uni_exact_destroy(e);
		e = NULL;
		if (rc == 0)
			rc = take_counts(&run, false, &e, err);
	}
	if (rc == 0) {
		(void)snprintf(run.end, sizeof(run.end), "%s",
			uni_exact_state(e) == UNI_EXACT_RUNS	 ? "not ended"
			: uni_exact_state(e) == UNI_EXACT_KILLED ? "QEMU was killed"
								 : "ended");
		rc = uni_exact_finish(&run, e, err);
	}
	return uni_exact_release(&run, e, rc, err);
}
