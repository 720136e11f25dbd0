/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/source.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "app/quality.h"
#include "app/symbols.h"
#include "app/term.h"
#include "format/mirage/mirage.h"
#include "profile/pile.h"
#include "syscalls/source.h"

#define INPUT_MAX ((size_t)4 << 30)

/* Lines were asked for, and there are none to be had. */
static void note_places(const struct uni_source_args *args, const struct uni_recording *rec)
{
	for (uint32_t i = 0; args->build.naming.lines && i < uni_recording_nr_guests(rec); i++) {
		const struct uni_symtab *symtab = uni_recording_guest(rec, i).symtab;

		if (symtab == NULL || uni_symtab_has_places(symtab))
			continue;
		uni_note("%s has no lines and inlined functions of %s, which had no debug data "
			 "when it "
			 "was recorded (--symbols with the ELF can give some)",
			args->path, uni_symtab_path(symtab));
	}
}

/* A damaged session is shown as far as it goes, but never passed off as whole. */
void uni_source_note_damage(const struct uni_source_args *args, const struct uni_source *s,
	const struct uni_build_read *read)
{
	const struct uni_record_stats *st = uni_recording_stats(s->rec);
	uint64_t all = args->exits != NULL ? st->exits : st->samples;
	uint64_t got = args->exits != NULL ? read->exits : read->samples;

	if (uni_recording_was_closed(s->rec) && got < all)
		uni_note("%s: %" PRIu64 " of %" PRIu64
			 " %s could not be read: the stream is damaged (%" PRIu64 " torn packets)",
			args->path, all - got, all, args->exits != NULL ? "exits" : "samples",
			read->torn);
	else if (read->torn != 0)
		uni_note("%s: %" PRIu64 " torn packets were passed over: the stream is damaged",
			args->path, read->torn);
}

static void note_symbols(const struct uni_recording *rec)
{
	const char *last = NULL;

	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		const char *problem = uni_recording_guest(rec, i).symtab_problem;

		/* Guests with the same image have the same problem. */
		if (problem != NULL && problem != last)
			uni_note("%s: addresses stay without names (--symbols can give some)",
				problem);
		last = problem != NULL ? problem : last;
	}
}

/* Users would trust the names of another build. */
static void note_build(const struct uni_source_args *args, const struct uni_source *s)
{
	const char *id = uni_symtab_id(s->symtab);

	if (id[0] == '\0' || uni_symbols_kind_of(args->symbols) != UNI_SYMBOLS_ELF)
		return;
	for (uint32_t i = 0; i < uni_recording_nr_guests(s->rec); i++) {
		const struct uni_record_meta *m = uni_recording_guest(s->rec, i).meta;

		if (m->image_id[0] != '\0' && strcmp(m->image_id, id) != 0) {
			uni_note("%s is another build than %s, which was recorded (build-id %s, "
				 "not %s): names may be wrong",
				args->symbols, m->image_path, id, m->image_id);
			return;
		}
	}
}

static int choose_guest(
	struct uni_source_args *args, const struct uni_recording *rec, struct uni_err *err)
{
	uint32_t guest;
	int rc;

	if (args->guest == NULL)
		return 0;
	rc = uni_recording_find_guest(rec, args->guest, &guest, err);
	if (rc == 0)
		args->build.filter.guest = uni_only(guest);
	return rc;
}

/* --exits[=count|time] */
static int choose_what(
	struct uni_source_args *args, const struct uni_recording *rec, struct uni_err *err)
{
	uint32_t every = 0;

	if (args->exits == NULL)
		return 0;
	if (args->exits[0] == '\0' || strcmp(args->exits, "count") == 0)
		args->build.what = UNI_BUILD_EXITS;
	else if (strcmp(args->exits, "time") == 0)
		args->build.what = UNI_BUILD_EXIT_TIMES;
	else
		return uni_err_set(err, UNI_EUSAGE,
			"--exits=%s: exits are added up by count or by time", args->exits);
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++)
		every = uni_max(every, uni_recording_guest(rec, i).meta->exits_every);
	if (every == 0)
		return uni_err_set(err, UNI_ENOENT,
			"%s has no VM exits: record them with `uniscope record --exits`",
			args->path);
	return 0;
}

static bool has_all_threads(const struct uni_recording *rec)
{
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		if (uni_recording_guest(rec, i).meta->threads)
			return true;
	}
	return false;
}

bool uni_source_was_traced(const struct uni_recording *rec, struct uni_only guest)
{
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		if (uni_only_passes(guest, i) &&
			uni_recording_guest(rec, i).meta->trace.nr_cpus != 0)
			return true;
	}
	return false;
}

/* Those of samples, or none of them where the thread may be one of the trace. */
static int find_threads(
	const struct uni_source_args *args, struct uni_source *s, struct uni_err *err)
{
	bool traced = uni_source_was_traced(s->rec, (struct uni_only){ 0 }) &&
		      (args->calls_too || uni_source_is_trace(s));
	int rc = uni_recording_find_threads(s->rec, args->thread, &s->threads, traced ? NULL : err);

	if (rc != -UNI_ENOENT || !traced)
		return rc;
	s->threads = calloc(1, sizeof(*s->threads));
	return s->threads != NULL ? 0 : uni_err_nomem(err);
}

static int choose_threads(struct uni_source_args *args, struct uni_source *s, struct uni_err *err)
{
	struct uni_build_opts *build = &args->build;
	int rc = 0;

	if (args->on_cpu + args->off_cpu + args->all_time > 1)
		return uni_err_set(err, UNI_EUSAGE,
			"give one of --on-cpu, --off-cpu (both leave nothing) and --all-time");
	build->filter.off_cpu = args->off_cpu;
	build->filter.on_cpu = !args->off_cpu && !args->all_time && !args->every;
	build->filter.unseen = true;
	for (uint32_t i = 0; i < uni_recording_nr_guests(s->rec); i++)
		build->filter.unseen &= !uni_only_passes(build->filter.guest, i) ||
					uni_quality_is_unseen(uni_recording_guest(s->rec, i).meta);
	if (build->filter.off_cpu && !has_all_threads(s->rec))
		return uni_err_set(err, UNI_ENOENT,
			"%s has no samples of waiting threads: record with "
			"`uniscope record --threads`",
			args->path);
	build->per_thread = build->per_thread || build->filter.off_cpu;
	if (args->thread != NULL)
		rc = find_threads(args, s, err);
	build->filter.threads = s->threads;
	return rc;
}

bool uni_source_part(const struct uni_source_args *args, struct uni_record_part *ret)
{
	*ret = (struct uni_record_part){ .from = args->part.from,
		.to = args->part.to_given ? args->part.to : 0,
		.vcpu = { .chosen = args->part.vcpu_given, .nr = args->part.vcpu },
		.thread = args->thread };
	return uni_part_has_time(&args->part) || ret->vcpu.chosen || ret->thread != NULL;
}

/* Has the chosen time something of the guests that are shown? A trace may have calls there. */
static int check_time(const struct uni_source_args *args, const struct uni_source *s,
	const struct uni_record_choice *c, struct uni_err *err)
{
	if (!uni_part_has_time(&args->part) || c->in_time != 0 || c->all == 0 ||
		(args->calls_too && uni_source_was_traced(s->rec, args->build.filter.guest)))
		return 0;
	return uni_part_empty(&args->part, args->path, "sample", c->first_ns, c->last_ns, err);
}

/* Headings tell of the part that is shown, and not of the whole. */
static int choose_part(struct uni_source_args *args, struct uni_source *s, struct uni_err *err)
{
	struct uni_record_choice found;
	struct uni_record_part part;
	int rc;

	if (!uni_source_part(args, &part))
		return 0;
	rc = uni_recording_choose(s->rec, &part, &args->build.filter, &found, err);
	return rc == 0 ? check_time(args, s, &found, err) : rc;
}

static int open_session(struct uni_source_args *args, const struct uni_input *in,
	struct uni_source *s, struct uni_err *err)
{
	struct uni_build_opts opts;
	struct uni_build_read read;
	int rc = uni_recording_open(in->folder, &s->rec, err);

	if (rc == 0)
		rc = choose_guest(args, s->rec, err);
	if (rc == 0 && args->diff)
		rc = uni_err_set(err, UNI_EUSAGE,
			"--diff is for folded input with two counts a line, and %s is a session",
			args->path);
	if (rc == 0)
		rc = choose_what(args, s->rec, err);
	if (rc == 0)
		rc = uni_part_choose(&args->part, s->rec, &args->build.filter, err);
	if (rc == 0)
		rc = choose_threads(args, s, err);
	if (rc == 0)
		rc = choose_part(args, s, err);
	if (rc != 0)
		return rc;
	opts = args->build;
	if (!uni_recording_was_closed(s->rec))
		uni_note("%s was not closed: the recorder was killed, or still runs; showing what "
			 "is "
			 "there",
			args->path);
	if (s->symtab == NULL)
		note_symbols(s->rec);
	else
		note_build(args, s);
	opts.symtab = s->symtab;
	opts.keep_log = args->keep_log;
	if (s->symtab == NULL)
		note_places(args, s->rec);
	if (args->no_profile)
		return 0;
	rc = uni_profile_build(s->rec, &opts, &s->profile, &read, err);
	if (rc == 0)
		uni_source_note_damage(args, s, &read);
	return rc;
}

int uni_source_check_import(const struct uni_source_args *args, struct uni_err *err)
{
	const struct {
		bool given;
		const char *name;
	} options[] = {
		{ args->guest != NULL, "--guest" },
		{ args->exits != NULL, "--exits" },
		{ args->thread != NULL, "--thread" },
		{ args->rules.items.nr != 0, "--rule" },
		{ args->on_cpu, "--on-cpu" },
		{ args->off_cpu, "--off-cpu" },
		{ args->all_time, "--all-time" },
		{ args->part.from != 0, "--from" },
		{ args->part.to_given, "--to" },
		{ args->build.per_thread, "--per-thread" },
		{ args->part.vcpu_given, "--vcpu" },
		{ args->build.per_vcpu, "--per-vcpu" },
	};

	for (size_t i = 0; i < uni_array_len(options); i++) {
		if (options[i].given)
			return uni_err_set(err, UNI_EUSAGE, "%s is for sessions, and %s is none",
				options[i].name, args->path);
	}
	return 0;
}

/* Without images and lines, which would distinguish functions of the two profiles. */
static bool only_names(const struct uni_source *s)
{
	return s->importer != NULL && (s->importer->gives & UNI_GIVES_NAMES) != 0;
}

bool uni_source_is_open(const struct uni_source_args *args, const struct uni_source *s)
{
	return args->unordered && !args->keep_log && !args->diff && only_names(s);
}

static bool is_stream(const struct uni_source_args *args, const struct uni_input *in,
	const struct uni_importer *i)
{
	return in->part && i != NULL && i->read_stream != NULL &&
	       (args->format != NULL || uni_importer_is_sure(i, in->data, in->size));
}

static const struct uni_importer *find_importer(
	const struct uni_source_args *args, const struct uni_input *in)
{
	if (args->format != NULL)
		return uni_importer_by_name(args->format);
	return in->folder != NULL ? uni_importer_of_folder(in->folder)
				  : uni_importer_sniff(in->data, in->size);
}

static bool is_listing(const struct uni_input *in)
{
	struct uni_sysc_log log;
	bool has_calls;

	if (uni_sysc_log_init(&log, NULL) != 0)
		return false;
	has_calls = uni_sysc_from_console((const char *)in->data, in->size, EM_X86_64, &log) == 0 &&
		    log.all.nr + log.sums.nr != 0;
	uni_sysc_log_deinit(&log);
	return has_calls;
}

static int refuse_foreign(
	const struct uni_source_args *args, const struct uni_input *in, struct uni_err *err)
{
	if (is_listing(in))
		return uni_err_set(err, UNI_EFORMAT,
			"%s is a listing of system calls: `uniscope trace syscalls FILE` reads it",
			args->path);
	if (in->size >= 8 && memcmp(in->data, "PERFILE2", 8) == 0)
		return uni_err_set(err, UNI_EFORMAT,
			"%s is perf's own file: give what `perf script -i FILE` prints",
			args->path);
	return uni_err_set(err, UNI_EFORMAT,
		"%s is no session and looks like no format that can be imported; name its format "
		"with --input-format",
		args->path);
}

/* Nor is it a session. Its reader says more. */
static int refuse_folder(
	const struct uni_source_args *args, const struct uni_input *in, struct uni_err *err)
{
	char path[4096];

	if (uni_mirage_is_folder(in->folder) ||
		snprintf(path, sizeof(path), "%s/session.json", in->folder) >= (int)sizeof(path) ||
		uni_door_access(path, R_OK) == 0)
		return 0;
	return uni_err_set(err, UNI_EFORMAT,
		"%s is no session that can be read: cannot open session.json: %s", args->path,
		strerror(errno));
}

int uni_source_check_input(
	const struct uni_source_args *args, const struct uni_input *in, struct uni_err *err)
{
	if (args->format != NULL || find_importer(args, in) != NULL)
		return 0;
	return in->folder != NULL ? refuse_folder(args, in, err) : refuse_foreign(args, in, err);
}

static int choose_importer(const struct uni_source_args *args, struct uni_input *in,
	struct uni_source *s, struct uni_err *err)
{
	bool is_folder = in->folder != NULL;
	int rc = 0;

	s->importer = find_importer(args, in);
	if (in->part && !is_stream(args, in, s->importer)) {
		rc = uni_input_rest(in, args->path, INPUT_MAX, err);
		s->importer = find_importer(args, in);
	}
	if (rc != 0)
		return rc;
	if (s->importer != NULL &&
		(is_folder ? s->importer->read_folder == NULL : s->importer->read == NULL))
		return uni_err_set(err, UNI_EFORMAT, "%s is %s, and %s is %s", args->path,
			is_folder ? "a folder" : "not one", s->importer->name,
			is_folder ? "a file" : "one");
	if (s->importer == NULL && args->format != NULL)
		return uni_err_set(err, UNI_EUSAGE, "no import format '%s'", args->format);
	return s->importer == NULL ? refuse_foreign(args, in, err) : 0;
}

static int read_import(const struct uni_source_args *args, const struct uni_input *in,
	struct uni_source *s, struct uni_err *err)
{
	const struct uni_import_opts opts = { .symtab = s->symtab,
		.diff = args->diff,
		.mangled = args->build.naming.mangled,
		.watch = args->build.watch };
	const struct uni_importer *i = s->importer;
	int rc;

	if (in->folder != NULL)
		rc = i->read_folder(in->folder, &opts, s->profile, &s->stats, err);
	else if (in->part)
		rc = i->read_stream(
			in->fd, in->data, in->size, INPUT_MAX, &opts, s->profile, &s->stats, err);
	else
		rc = i->read(in->data, in->size, &opts, s->profile, &s->stats, err);
	return rc != 0 && err != NULL && err->code != 0 ? uni_err_prefix(err, "%s", args->path)
							: rc;
}

/* One of two forms. */
static const char *choose_form(uint64_t nr, const char *one, const char *more)
{
	return nr == 1 ? one : more;
}

static void note_import(const struct uni_source_args *args, const struct uni_source *s)
{
	const struct uni_import_stats *st = &s->stats;

	if (st->bad_lines != 0)
		uni_note("%s: %" PRIu64 " %s not %s and %s passed over (the first is line "
			 "%" PRIu64 ")",
			args->path, st->bad_lines,
			choose_form(st->bad_lines, "line is", "lines are"), s->importer->name,
			choose_form(st->bad_lines, "was", "were"), st->first_bad_line);
	if (st->cut != 0)
		uni_note("%s: %" PRIu64 " %s more than %d frames: those above are "
			 "left out, and shown as [deeper] or [truncated] (the first is stack "
			 "%" PRIu64 ")",
			args->path, st->cut, choose_form(st->cut, "stack has", "stacks have"),
			UNI_IMPORT_DEPTH, st->first_cut);
	if (st->too_large != 0)
		uni_note("%s: %" PRIu64 " %s a number of more than 15 digits, which could "
			 "not be added up exactly, and %s passed over (the first is line "
			 "%" PRIu64 ")",
			args->path, st->too_large,
			choose_form(st->too_large, "line has", "lines have"),
			choose_form(st->too_large, "was", "were"), st->first_too_large);
	if (s->importer->lost != NULL && !args->quiet)
		uni_note("%s: %s", args->path, s->importer->lost);
	if (st->damaged != 0)
		uni_note("%s: %" PRIu64
			 " of its parts %s damaged, and what makes no sense there was passed over",
			args->path, st->damaged, choose_form(st->damaged, "is", "are"));
	if (st->left_out != 0)
		uni_note("%s: %" PRIu64 " %s %s %s left out", args->path, st->left_out,
			choose_form(st->left_out, "sample", "samples"), st->left_why,
			choose_form(st->left_out, "is", "are"));
}

static int open_import(const struct uni_source_args *args, struct uni_input *in,
	struct uni_source *s, struct uni_err *err)
{
	int rc = uni_source_check_import(args, err);

	if (rc == 0)
		rc = choose_importer(args, in, s, err);
	if (rc != 0)
		return rc;
	if (args->into != NULL && only_names(s))
		s->profile = uni_profile_to_second(args->into) == 0 ? args->into : NULL;
	else
		s->profile = uni_profile_create();
	if (s->profile == NULL)
		return uni_err_nomem(err);
	if (args->keep_log)
		uni_profile_keep_log(s->profile);
	else if (args->walked && s->profile != args->into && only_names(s))
		uni_profile_pile_up(s->profile);
	rc = read_import(args, in, s, err);
	if (rc != 0)
		return rc;
	note_import(args, s);
	if (uni_source_is_open(args, s))
		return 0;
	if (args->unordered && !uni_profile_piles_up(s->profile)) {
		uni_profile_finish_as_is(s->profile);
		return 0;
	}
	return args->piled ? uni_profile_finish_pile(s->profile) : uni_profile_finish(s->profile);
}

int uni_source_open(struct uni_source_args *args, struct uni_source *s, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&args->debug_dirs);
	struct uni_input *in = args->in != NULL ? args->in : &s->in;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	if (args->symbols != NULL)
		rc = uni_symbols_load(args->symbols, &search, &args->build.naming, &s->symtab, err);
	if (rc == 0 && args->in == NULL)
		rc = args->walked ? uni_input_open_part(args->path, INPUT_MAX, &s->in, err)
				  : uni_input_open(args->path, INPUT_MAX, &s->in, err);
	if (rc == 0 && in->folder != NULL && args->format == NULL &&
		uni_importer_of_folder(in->folder) == NULL)
		rc = open_session(args, in, s, err);
	else if (rc == 0)
		rc = open_import(args, in, s, err);
	if (rc != 0 && s->profile == args->into)
		s->profile = NULL;
	if (rc != 0)
		uni_source_close(s);
	return rc;
}

void uni_source_close(struct uni_source *s)
{
	uni_profile_destroy(s->profile);
	uni_recording_close(s->rec);
	uni_input_close(&s->in);
	uni_thread_set_destroy(s->threads);
	uni_symtab_destroy(s->symtab);
	memset(s, 0, sizeof(*s));
}

bool uni_source_is_trace(const struct uni_source *s)
{
	bool traced = false;

	for (uint32_t i = 0; s->rec != NULL && i < uni_recording_nr_guests(s->rec); i++) {
		const struct uni_recorded_guest g = uni_recording_guest(s->rec, i);

		if (g.stats->samples != 0)
			return false;
		traced = traced || g.meta->trace.nr_cpus != 0;
	}
	return traced;
}

int uni_source_compared(
	const struct uni_profile *diff, const char *before, const char *after, struct uni_err *err)
{
	if (uni_profile_total(diff) != 0.0 || uni_profile_total2(diff, UNI_NODE_ROOT) != 0.0)
		return 0;
	return uni_err_set(
		err, UNI_ENOENT, "neither %s nor %s holds samples to compare", before, after);
}
