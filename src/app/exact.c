/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/exact.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/boot.h"
#include "app/scratch.h"
#include "app/self.h"
#include "app/signals.h"
#include "app/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "config.h"
#include "recording/exact.h"

#define LOOK_NS	 (50 * UNI_NSEC_PER_MSEC)
#define QEMU_MAX ((size_t)256 << 20) /* bytes of the program */

struct run {
	const struct uni_exact_args *args;
	struct uni_image *image;
	struct uni_scratch scratch;
	char table[4096], counts[4096]; /* files for the plugin and from it */
	char end[512];			/* how the guest ended */
	bool over;			/* the time, not the guest's end */
};

static bool find_plugin_beside(const char *where, char *ret, size_t cap)
{
	char exe[2048];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;
	int len;

	if (n <= 0)
		return false;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	len = snprintf(ret, cap, "%s/%s" UNI_EXACT_PLUGIN, exe, where);
	return len > 0 && (size_t)len < cap && access(ret, R_OK) == 0;
}

int uni_exact_plugin(char *ret, size_t cap, struct uni_err *err)
{
	/* A copy, then the tree in which both were built, then the installed files. */
	if (find_plugin_beside("", ret, cap) || find_plugin_beside("../../plugin/", ret, cap))
		return 0;
	(void)snprintf(ret, cap, UNI_PLUGIN_DIR "/" UNI_EXACT_PLUGIN);
	if (access(ret, R_OK) == 0)
		return 0;
	return uni_err_set(err, UNI_ENOENT,
		"the plugin for QEMU is not installed (%s): install uniscope as a whole", ret);
}

/* A QEMU without plugins does not export their interface. */
bool uni_exact_can_load(const char *qemu)
{
	static const char name[] = "qemu_plugin_register_vcpu_tb_trans_cb";
	_cleanup_free_ char *data = NULL;
	struct uni_err err = { 0 };
	size_t size;

	return uni_read_regular(qemu, QEMU_MAX, &data, &size, &err) == 0 &&
	       memmem(data, size, name, sizeof(name)) != NULL;
}

static int add_address(const struct run *run, struct uni_strbuf *b, const char *key,
	const char *name, struct uni_err *err)
{
	uint64_t addr, size;

	if (name == NULL)
		return 0;
	if (uni_image_find(run->image, name, &addr, &size) != 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no function %s: names are those that `nm` prints",
			uni_image_path(run->image), name);
	uni_strbuf_addf(b, ",%s=0x%" PRIx64, key, addr);
	return 0;
}

static char *plugin_option(const struct run *run, struct uni_err *err)
{
	char path[4096];
	struct uni_strbuf b;

	if (uni_exact_plugin(path, sizeof(path), err) != 0)
		return NULL;
	uni_strbuf_init(&b);
	uni_qemu_add_value(&b, path);
	uni_strbuf_adds(&b, ",out=");
	uni_qemu_add_value(&b, run->counts);
	uni_strbuf_adds(&b, ",functions=");
	uni_qemu_add_value(&b, run->table);
	uni_strbuf_adds(&b, run->args->mode == UNI_EXACT_COUNTS ? ",mode=counts" : ",mode=tree");
	if (add_address(run, &b, "begin", run->args->begin_at, err) != 0 ||
		add_address(run, &b, "end", run->args->end_at, err) != 0) {
		uni_strbuf_deinit(&b);
		return NULL;
	}
	if (uni_strbuf_failed(&b))
		(void)uni_err_nomem(err);
	return uni_strbuf_detach(&b);
}

static int load_image(struct run *run, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&run->args->rec->debug_dirs);
	const char *image = run->args->symbols != NULL ? run->args->symbols : run->args->qemu.image;

	return uni_image_load_from(image, &search, &run->image, err);
}

static int load_exact_image(struct run *run, struct uni_err *err)
{
	int rc = load_image(run, err);

	if (rc == 0)
		rc = uni_scratch_make(&run->scratch, err);
	if (rc != 0)
		return rc;
	(void)snprintf(run->table, sizeof(run->table), "%s/functions", run->scratch.path);
	(void)snprintf(run->counts, sizeof(run->counts), "%s/exact", run->scratch.path);
	return uni_exact_write_table(run->image, run->table, err);
}

/* The guest's clocks follow its instructions, and chance begins at the same number. */
static const char *const repeatable[] = { "-icount", "shift=0,sleep=off", "-seed", "1", "-rtc",
	"base=2000-01-01T00:00:00,clock=vm" };

/* Options of QEMU by which something comes in that no run repeats. */
static const char *const inputs[] = { "-netdev", "-nic", "-net", "-drive", "-blockdev", "-hda",
	"-cdrom", "-chardev", "-virtfs", "-fsdev" };

static void note_inputs(char **extra)
{
	for (char **p = extra; p != NULL && *p != NULL; p++) {
		for (size_t i = 0; i < uni_array_len(inputs); i++) {
			if (strcmp(*p, inputs[i]) == 0)
				uni_note("input through %s is not fixed: if it differs, the "
					 "counts differ",
					*p);
		}
	}
}

/* extra and what makes a run repeatable, ended by NULL; the caller's to free, the words are not. */
static char **more_options(char **extra)
{
	size_t nr = 0;
	char **all;

	while (extra != NULL && extra[nr] != NULL)
		nr++;
	all = calloc(nr + uni_array_len(repeatable) + 1, sizeof(*all));
	for (size_t i = 0; all != NULL && i < nr; i++)
		all[i] = extra[i];
	for (size_t i = 0; all != NULL && i < uni_array_len(repeatable); i++)
		all[nr + i] = (char *)(uintptr_t)repeatable[i];
	return all;
}

/* Waits until the guest ends, the time is over, or the user stops it. */
static void wait_for(struct run *run, struct uni_boot *boot)
{
	double seconds = run->args->rec->duration;
	uint64_t begin = uni_now_ns(), took = 0;
	const struct timespec nap = uni_ns_timespec(LOOK_NS);

	while (!uni_boot_ended(boot)) {
		took = uni_now_ns() - begin;
		run->over = (seconds > 0 && (double)took >= seconds * 1e9) ||
			    atomic_load(uni_signals_stop());
		if (run->over)
			break;
		if (!run->args->rec->quiet)
			uni_progress("counting for %.1f s (until the guest ends; Ctrl-C ends it)",
				(double)took / 1e9);
		(void)nanosleep(&nap, NULL);
	}
	if (!run->args->rec->quiet)
		uni_progress_end();
	if (run->over)
		(void)snprintf(run->end, sizeof(run->end), "ended");
	else
		uni_boot_tell(boot, run->end, sizeof(run->end));
}

static int boot_counted(struct run *run, const struct uni_qemu_args *args, struct uni_err *err)
{
	const char *slash = strrchr(args->image, '/');
	struct uni_qemu q;
	struct uni_boot b = { .q = &q,
		.image = run->image,
		.name = slash != NULL ? slash + 1 : args->image,
		.console = args->console,
		.quiet = run->args->rec->quiet };
	int rc = uni_qemu_start(args, &q, err);

	if (rc != 0)
		return rc;
	if (!run->args->rec->quiet)
		uni_note("booted %s under QEMU with tcg on %s, console in %s", args->image,
			q.machine, args->console);
	rc = uni_boot_begin(&b, err);
	if (rc == 0)
		wait_for(run, &b);
	uni_qemu_stop(&q);
	return rc;
}

/* Gets QEMU's counts after it has ended. */
static int count_instructions(struct run *run, struct uni_exact **ret, struct uni_err *err)
{
	struct uni_qemu_args args = run->args->qemu;
	_cleanup_free_ char *option = plugin_option(run, err);
	_cleanup_free_ char **more = more_options(args.extra);
	struct uni_signals signals;
	int rc, rc2;

	if (option == NULL)
		return err->code != 0 ? -(int)err->code : -UNI_ENOMEM;
	if (more == NULL)
		return uni_err_nomem(err);
	if (run->args->repeatable) {
		note_inputs(args.extra);
		args.extra = more;
	}
	args.plugin = option;
	/* Threads would add to one number at once; newer versions of QEMU have one for each. */
	args.accel =
		run->args->mode == UNI_EXACT_COUNTS && args.vcpus > 1 ? "tcg,thread=single" : "tcg";
	uni_signals_begin(&signals);
	rc = boot_counted(run, &args, err);
	uni_signals_end(&signals);
	/* The guest may reach the end address before the first look at QEMU. */
	if (rc != 0 && (rc != -UNI_EGONE || run->args->end_at == NULL))
		return rc;
	rc2 = uni_exact_take(run->counts, ret, rc == 0 ? err : NULL);
	if (rc2 == 0 && uni_exact_has_reached(*ret))
		(void)snprintf(run->end, sizeof(run->end), "reached %s", run->args->end_at);
	else if (rc != 0)
		return rc;
	return rc2;
}

static void fill_meta(const struct run *run, const struct uni_exact *e, struct uni_record_meta *m)
{
	const struct uni_arch *arch = uni_image_arch(run->image);

	(void)snprintf(m->target, sizeof(m->target), "exact:%s", run->args->qemu.image);
	(void)snprintf(m->method, sizeof(m->method), "exact");
	(void)snprintf(m->unit, sizeof(m->unit), "instructions");
	(void)snprintf(m->arch, sizeof(m->arch), "%s", arch != NULL ? arch->name : "");
	(void)snprintf(m->uniscope_version, sizeof(m->uniscope_version), "%s", UNISCOPE_VERSION);
	uni_self_command(m->command, sizeof(m->command));
	m->aggregate = true;
	m->nr_vcpus = uni_exact_nr_vcpus(e);
}

static int write_session(struct run *run, const struct uni_exact *e, struct uni_err *err)
{
	_cleanup_free_ struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	const struct uni_record_args *rec = run->args->rec;
	struct uni_record_stats st = { 0 };
	const struct uni_guest_result result = { .stats = &st };
	struct uni_recorder *r = NULL;
	int rc, rc2;

	if (meta == NULL)
		return uni_err_nomem(err);
	fill_meta(run, e, meta);
	rc = uni_recorder_create(rec->output, meta, rec->overwrite, &r, err);
	if (rc != 0)
		return rc;
	rc = uni_recorder_add_image(r, 0, run->image, err);
	if (rc == 0)
		rc = uni_exact_save(e, rec->output, 0, err);
	if (rc == 0)
		rc = uni_exact_samples(e, r, &st, err);
	rc2 = uni_recorder_close(r, &result, 1, rc == 0 ? err : NULL);
	return rc != 0 ? rc : rc2;
}

static void tell_exact_counts(const struct run *run, const struct uni_exact *e)
{
	uint64_t unsure = uni_exact_stat(e, UNI_EXACT_UNKNOWN_CUTS);

	if (uni_exact_mode(e) == UNI_EXACT_COUNTS)
		uni_note("%s: %" PRIu64 " instructions", run->end, uni_exact_insns(e));
	else
		uni_note("%s: %" PRIu64 " instructions, %" PRIu64 " calls, %" PRIu64 " interrupts",
			run->end, uni_exact_insns(e), uni_exact_stat(e, UNI_EXACT_CALLS),
			uni_exact_stat(e, UNI_EXACT_INTERRUPTS));
	if (uni_exact_before(e) != 0)
		uni_note("%" PRIu64 " instructions of firmware before the image are left out",
			uni_exact_before(e));
	if (run->args->repeatable && run->over)
		uni_note("the guest did not end by itself: when it was ended is not repeatable");
	if (unsure != 0)
		uni_note("%" PRIu64 " blocks were left in their middle, nobody knows where: all of "
			 "each is counted",
			unsure);
	if (uni_exact_stat(e, UNI_EXACT_FOLDED) != 0)
		uni_note("%" PRIu64 " calls were deeper than %d frames, or in too many contexts: "
			 "they are counted, beside their caller",
			uni_exact_stat(e, UNI_EXACT_FOLDED), UNI_EXACT_DEPTH);
	if (uni_exact_stat(e, UNI_EXACT_UNCOUNTED) != 0)
		uni_note("%" PRIu64 " blocks of code did not fit into memory or on the disk: they "
			 "are not counted",
			uni_exact_stat(e, UNI_EXACT_UNCOUNTED));
	uni_note("wrote %s: try `uniscope report %s`", run->args->rec->output,
		run->args->rec->output);
}

static int check_counts(const struct run *run, const struct uni_exact *e, struct uni_err *err)
{
	if (uni_exact_insns(e) != 0)
		return 0;
	if (uni_exact_stat(e, UNI_EXACT_UNCOUNTED) != 0)
		return uni_err_set(err, UNI_EIO,
			"there is no room for the counts in %s: free some, or name another folder "
			"by TMPDIR",
			run->counts);
	return uni_err_set(err, UNI_EMISMATCH,
		"%s, and executed no code of %s%s: is it the image that was booted, linked where "
		"it runs?",
		run->end, uni_image_path(run->image),
		uni_exact_before(e) != 0 ? ", only code before it or elsewhere" : "");
}

static int finish_exact(struct run *run, const struct uni_exact *e, struct uni_err *err)
{
	const struct uni_guest g = { .image = run->image };
	int rc = check_counts(run, e, err);

	if (rc == 0)
		rc = write_session(run, e, err);
	if (rc != 0)
		return rc;
	uni_record_add_places(&g, run->args->rec, run->args->rec->output);
	if (!run->args->rec->quiet)
		tell_exact_counts(run, e);
	return 0;
}

int uni_exact_run(const struct uni_exact_args *args, struct uni_err *err)
{
	struct run run = { .args = args };
	struct uni_exact *e = NULL;
	int rc = load_exact_image(&run, err);

	if (rc == 0)
		rc = count_instructions(&run, &e, err);
	if (rc == 0)
		rc = finish_exact(&run, e, err);
	uni_exact_destroy(e);
	uni_scratch_remove(&run.scratch);
	uni_image_destroy(run.image);
	return rc;
}

/* The guest may be started in another folder. */
static int name_files(struct run *run, const char *counts, struct uni_err *err)
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
	struct run run = { .args = args };
	_cleanup_free_ char *option = NULL;
	int rc = name_files(&run, counts, err);

	if (rc == 0 && access(run.counts, F_OK) == 0)
		rc = uni_err_set(err, UNI_EUSAGE,
			"%s is there already: remove it, or give another name", counts);
	if (rc == 0)
		rc = load_image(&run, err);
	if (rc == 0)
		rc = uni_exact_write_table(run.image, run.table, err);
	if (rc == 0 && (option = plugin_option(&run, err)) == NULL)
		rc = -(int)err->code;
	if (rc == 0)
		(void)printf("-plugin %s\n", option);
	uni_image_destroy(run.image);
	return rc;
}

int uni_exact_read(const struct uni_exact_args *args, const char *counts, struct uni_err *err)
{
	struct run run = { .args = args };
	struct uni_exact *e = NULL;
	int rc = name_files(&run, counts, err);

	if (rc == 0)
		rc = load_image(&run, err);
	if (rc == 0)
		rc = uni_exact_take(run.counts, &e, err);
	if (rc == 0) {
		(void)snprintf(run.end, sizeof(run.end), "%s",
			uni_exact_has_ended(e) ? "ended" : "not ended");
		rc = finish_exact(&run, e, err);
	}
	uni_exact_destroy(e);
	uni_image_destroy(run.image);
	return rc;
}
