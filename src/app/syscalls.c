/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/syscalls.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/confine.h"
#include "base/privilege.h"
#include "app/scratch.h"
#include "app/symbols.h"
#include "app/syscalls_live.h"
#include "app/syscalls_options.h"
#include "app/syscalls_stops.h"
#include "app/term.h"
#include "app/trace_open.h"
#include "app/tracing_session.h"
#include "app/uktrace.h"
#include "backend/shared.h"

#define FILE_MAX_BYTES ((size_t)1 << 30)

struct input {
	const struct uni_syscalls_args *a;
	struct uni_sysc_prefixes prefixes;
	struct uni_sysc_log *log;
	bool told; /* while it was recorded */
	uint64_t realtime_offset_ns;
};

static int no_memory(struct uni_err *err)
{
	return uni_err_nomem(err);
}

static unsigned machine_of(const struct input *in, struct uni_err *err)
{
	if (in->a->arch == NULL || strcmp(in->a->arch, "x86_64") == 0)
		return EM_X86_64;
	if (strcmp(in->a->arch, "aarch64") == 0)
		return EM_AARCH64;
	(void)uni_err_set(err, UNI_EUSAGE, "--arch is x86_64 or aarch64, not %s", in->a->arch);
	return 0;
}

/* --- a session -------------------------------------------------------------------------------- */

/* The guest's image, for texts that its calls point to: those in read-only memory. */
struct texts {
	const struct input *in;
	const struct uni_record_meta *meta;
	struct uni_image *image; /* NULL: none */
	uint64_t bias;
	bool looked; /* for the image */
};

struct uni_image *uni_syscalls_image(const struct uni_syscalls_args *a,
	const struct uni_record_meta *meta, const char *otherwise)
{
	const struct uni_image_search search = uni_search_of(&a->debug_dirs);
	const char *given = uni_images_first(&a->images);
	const char *path = given != NULL ? given : meta->image_path;
	struct uni_image *image = NULL;
	struct uni_err err = { 0 };

	if (path[0] == '\0' || uni_symbols_kind_of(path) != UNI_SYMBOLS_ELF) {
		uni_note("%s has no code, but names alone: %s",
			path[0] != '\0' ? path : "the session", otherwise);
		return NULL;
	}
	if (uni_image_load_from(path, &search, &image, &err) != 0) {
		uni_note("%s: %s", err.msg, otherwise);
		return NULL;
	}
	if (strcmp(uni_image_id(image), meta->image_id) == 0)
		return image;
	uni_note("%s is another build now than when it was traced: %s", path, otherwise);
	uni_image_destroy(image);
	return NULL;
}

/* Once, and only if a call has a text to show. */
static void find_image(struct texts *t)
{
	t->looked = true;
	t->image = uni_syscalls_image(t->in->a, t->meta, "texts are shown as addresses");
}

static size_t read_text(void *ctx, uint64_t va, void *buf, size_t cap)
{
	struct texts *t = ctx;

	if (!t->looked)
		find_image(t);
	for (size_t i = 0; t->image != NULL && i < uni_image_nr_segments(t->image); i++) {
		const struct uni_segment *s = uni_image_segment(t->image, i);
		uint64_t off = va - t->bias - s->vaddr;
		size_t n;

		if (s->write || off >= s->file_size)
			continue;
		n = (size_t)uni_min((uint64_t)cap, s->file_size - off);
		memcpy(buf, s->bytes + off, n);
		return n;
	}
	return 0;
}

/* Calls as a timeline whose functions and threads are those of an opened trace. */
struct adapter {
	struct uni_trace_open *t;
	struct uni_calls *calls;
};

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct adapter *a = ctx;

	return uni_calls_read(a->calls, ret, nr_ret);
}

static const char *func_name(void *ctx, uint32_t func)
{
	struct adapter *a = ctx;

	return uni_funcs_name(a->t->funcs, func);
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	struct adapter *a = ctx;

	return uni_calls_thread_name(a->calls, thread, number_ret);
}

static const uint64_t *call_words(void *ctx, const struct uni_call_event *e)
{
	struct adapter *a = ctx;

	return uni_calls_words(a->calls, e);
}

static int read_trace(struct input *in, struct uni_trace_open *t, struct uni_err *err)
{
	const struct uni_recorded_guest guest = uni_recording_guest(t->rec, t->guest);
	struct adapter a = { .t = t };
	const struct uni_timeline tl = { .ctx = &a,
		.read = read_calls,
		.func = func_name,
		.thread = thread_name,
		.words = call_words };
	struct texts texts = { .in = in, .meta = guest.meta, .bias = guest.meta->bias };
	const struct uni_sysc_memory memory = { read_text, &texts, in->a->string_max };
	int rc = uni_calls_open(t->in, &t->filter, t->funcs, &a.calls, err);

	if (rc != 0)
		return rc;
	in->realtime_offset_ns = guest.meta->realtime_offset_ns;
	rc = uni_sysc_from_calls(&tl, &in->prefixes, &memory, in->log);
	uni_trace_note(t, uni_recording_path(t->rec), uni_calls_stats(a.calls));
	uni_image_destroy(texts.image);
	uni_calls_close(a.calls);
	return rc == 0 ? 0 : no_memory(err);
}

static int read_session(struct input *in, const char *path, struct uni_err *err)
{
	const struct uni_trace_args args = { .guest = in->a->guest,
		.symbols = in->a->symbols,
		.debug_dirs = in->a->debug_dirs,
		.threads = in->a->threads,
		.part = in->a->part,
		.mangled = true };
	struct uni_trace_open t;
	int rc = uni_trace_open(path, &args, &t, err);

	if (rc != 0)
		return rc;
	rc = read_trace(in, &t, err);
	uni_trace_close(&t);
	return rc;
}

/* --- a file ----------------------------------------------------------------------------------- */

static int read_tracepoints(
	struct input *in, const char *what, const struct uni_ukt_file *f, struct uni_err *err)
{
	struct uni_ukt_trace t;
	int rc = uni_ukt_trace_open(f, &t, err);

	if (rc != 0)
		return rc;
	uni_uktrace_note(what, &t);
	rc = uni_sysc_from_tracepoints(&t, in->log);
	uni_ukt_trace_close(&t);
	return rc == 0 ? 0 : no_memory(err);
}

static int read_file(
	struct input *in, const char *path, const struct uni_input *file, struct uni_err *err)
{
	const struct uni_uktrace_args args = { .image = uni_images_first(&in->a->images),
		.debug_dirs = in->a->debug_dirs };
	struct uni_ukt_file f;
	unsigned machine;
	int rc;

	if (uni_ukt_file_is(file->data, file->size)) {
		rc = uni_uktrace_of(path, file->data, file->size, &args, &f, err);
		if (rc == 0) {
			rc = read_tracepoints(in, path, &f, err);
			uni_ukt_file_free(&f);
		}
		return rc;
	}
	machine = machine_of(in, err);
	if (machine == 0)
		return -UNI_EUSAGE;
	if (in->a->images.items.nr != 0 || in->a->debug_dirs.items.nr != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"%s is text, which names its calls itself: leave out --image and "
			"--debug-dir",
			path);
	if (uni_sysc_from_console(file->data, file->size, machine, in->log) != 0)
		return no_memory(err);
	if (in->log->all.nr == 0 && in->log->sums.nr == 0 && in->log->other_lines != 0)
		uni_note("%s: none of its %" PRIu64 " lines is a system call%s", path,
			in->log->other_lines,
			in->a->filter->chosen || in->a->filter->ends != 0 ? " that passes --expr"
									  : "");
	return 0;
}

static int read_path(struct input *in, const char *path, struct uni_err *err)
{
	struct uni_input file;
	int rc = uni_privilege_drop(err);

	if (rc == 0)
		rc = uni_input_open(path, FILE_MAX_BYTES, &file, err);

	if (rc != 0)
		return rc;
	rc = uni_syscalls_check(
		in->a, path, file.folder == NULL ? UNI_SYSCALLS_FILE : UNI_SYSCALLS_SESSION, err);
	if (rc == 0)
		rc = file.folder != NULL ? read_session(in, file.folder, err)
					 : read_file(in, path, &file, err);
	uni_input_close(&file);
	return rc;
}

/* --- a guest ---------------------------------------------------------------------------------- */

static bool has_function(const struct uni_image *img, const char *prefix, const char *name)
{
	char text[96];
	uint64_t at, size;

	(void)snprintf(text, sizeof(text), "%s%s", prefix, name);
	return uni_image_find(img, text, &at, &size) == 0;
}

static bool is_unikraft(const struct uni_image *img)
{
	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		if (strncmp(uni_image_sym_name(img, uni_image_symbol(img, i)), "uk_syscall_r_",
			    13) == 0)
			return true;
	}
	return false;
}

/* Nanos' handlers are called as the calls are, some sys_ and that, and return -errno. */
static const struct uni_sysc_prefixes nanos = { .v = { "", "sys_" }, .nr = 2 };

static bool is_nanos(const struct uni_image *img)
{
	uint64_t at, size;

	return uni_image_find(img, "register_file_syscalls", &at, &size) == 0 &&
	       uni_image_find(img, "register_net_syscalls", &at, &size) == 0;
}

/*
 * For functions without a prefix of their own. In Unikraft, those functions of the C library that
 * are a system call (the compiler may have put all of it into them). Unikraft's file systems have
 * sys_* functions that are no system calls. In other guests, sys_*.
 */
static bool is_other(const struct uni_image *img, const struct uni_symbol *sym, bool unikraft)
{
	const char *name = uni_image_sym_name(img, sym);

	if (!unikraft)
		return strncmp(name, "sys_", 4) == 0;
	return sym->bind != STB_LOCAL && (has_function(img, "uk_syscall_r_", name) ||
						 has_function(img, "uk_syscall_e_", name));
}

/* The functions of the image that answer system calls which are wanted, by their full names. */
static int choose_answers(struct input *in, const struct uni_image *img, struct uni_opt_list *ret,
	struct uni_err *err)
{
	const bool unikraft = img != NULL && is_unikraft(img);
	size_t answers = 0;

	if (img == NULL)
		return uni_err_set(err, UNI_ENOENT,
			"only the guest's image tells which functions answer its "
			"system calls: give it with --image");
	if (in->a->prefixes.items.nr == 0 && is_nanos(img))
		in->prefixes = nanos;

	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *sym = uni_image_symbol(img, i);
		const char *name = uni_image_sym_name(img, sym);
		const struct uni_sysc_def *def;
		bool other;

		def = uni_sysc_of_function(&in->prefixes, name, &other);
		if (def == NULL || (other && !is_other(img, sym, unikraft)))
			continue;
		answers++;
		if (uni_sysc_filter_name(in->a->filter, def->name) &&
			!uni_vec_push(&ret->items, name))
			return no_memory(err);
	}
	if (ret->items.nr != 0)
		return 0;
	return uni_err_set(err, UNI_ENOENT,
		answers != 0 ? "no function of the image answers a system call that passes --expr"
			     : "no function of the image answers a system call: --prefix says how "
			       "they are named");
}

/* "NAME(1:s33)": a function with those of its arguments that point to text. */
static char *with_texts(const struct input *in, const char *name)
{
	const uint64_t most = uni_min(in->a->string_max, (uint64_t)UNI_TRACE_TEXT_MAX - 1) + 1;
	struct uni_strbuf b;
	bool other;
	const struct uni_sysc_def *def = uni_sysc_of_function(&in->prefixes, name, &other);
	unsigned nr = 0, args = def != NULL ? uni_sysc_nr_args(def) : 0;

	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, name);
	for (unsigned i = 0; i < uni_min(args, (unsigned)UNI_TRACE_ARGS); i++) {
		char kind = def->kinds[i];

		if (kind == 's' || kind == 'i')
			uni_strbuf_addf(&b, "%s%u:%c%" PRIu64, nr++ != 0 ? "," : "(", i + 1,
				kind == 's' ? 's' : 'b', most);
	}
	uni_strbuf_adds(&b, nr != 0 ? ")" : "");
	return uni_strbuf_detach(&b);
}

/* The functions as --args takes them: with their texts, if the guest copies any. */
static int choose_texts(const struct input *in, const struct uni_opt_list *answers, bool texts,
	struct uni_opt_list *ret)
{
	for (size_t i = 0; i < answers->items.nr; i++) {
		const char *name = answers->items.v[i];
		char *text = texts ? with_texts(in, name) : strdup(name);

		if (text == NULL || !uni_vec_push(&ret->items, text)) {
			free(text);
			return -UNI_ENOMEM;
		}
	}
	return 0;
}

static void free_texts(struct uni_opt_list *list)
{
	uni_vec_foreach (text, &list->items)
		free((void *)(uintptr_t)*text);
	uni_vec_free(&list->items);
}

/* Lines that were written stay, even if the recording ends in a failure. */
static int write_and_tell(
	struct input *in, struct uni_tracing *t, struct uni_tracing_session *s, struct uni_err *err)
{
	struct texts texts = { .image = t->g.image, .bias = t->g.bias, .looked = true };
	const struct uni_sysc_memory memory = { read_text, &texts, in->a->string_max };
	const struct uni_sysc_live_args args = { .t = t,
		.prefixes = &in->prefixes,
		.filter = in->a->filter,
		.memory = &memory,
		.print = in->a->lines,
		.out = in->a->out,
		.parts = in->a->parts };
	struct uni_sysc_live *live;
	int rc = uni_sysc_live_create(&args, &live, err), rc2;

	if (rc != 0)
		return rc;
	s->watcher = uni_sysc_live_watcher(live);
	rc = uni_tracing_write(t, s, err);
	rc2 = uni_sysc_live_end(live, t->g.info.name, rc == 0 ? err : NULL);
	uni_sysc_live_destroy(live);
	in->told = true;
	return rc != 0 ? rc : rc2;
}

static int record_answers(
	struct input *in, struct uni_tracing *t, const char *path, struct uni_err *err)
{
	struct uni_tracing_args args = { 0 };
	struct uni_tracing_session s = { .output = path,
		.overwrite = in->a->save != NULL,
		/* It would report a session that the user does not see. */
		.quiet = in->a->quiet || in->a->save == NULL,
		.duration = in->a->duration };
	struct uni_choice choice;
	int rc = choose_answers(in, t->g.image, &args.filter, err);

	args.pieces = in->a->pieces;
	if (rc == 0 && choose_texts(in, &args.filter,
			       uni_ring_info(uni_tracer_ring(t->tracer))->text_rules != 0,
			       &args.args) != 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = uni_choice_make(&choice, &args, err);
	if (rc == 0) {
		s.choice = &choice;
		rc = in->a->lines != NULL ? write_and_tell(in, t, &s, err)
					  : uni_tracing_write(t, &s, err);
		uni_choice_free(&choice);
	}
	free_texts(&args.args);
	uni_vec_free(&args.filter.items);
	return rc;
}

static int record_and_read(struct input *in, struct uni_tracing *t, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf path;
	struct uni_scratch scratch = { 0 };
	int rc = in->a->save == NULL ? uni_scratch_make(&scratch, err) : 0;

	uni_strbuf_init(&path);
	if (rc != 0)
		return rc;
	if (in->a->save != NULL)
		uni_strbuf_adds(&path, in->a->save);
	else
		uni_strbuf_addf(&path, "%s/calls.uniscope", scratch.path);
	rc = uni_strbuf_failed(&path) ? no_memory(err) : record_answers(in, t, path.s, err);
	if (rc == 0 && (!in->told || in->a->log))
		rc = read_session(in, path.s, err);
	uni_scratch_remove(&scratch);
	return rc;
}

/* Without our tracer in the image, Unikraft's tracepoints give as much as they can. */
static int from_buffer(
	struct input *in, const char *target, struct uni_target_shared *shared, struct uni_err *err)
{
	const struct uni_uktrace_args args = { .shared = shared,
		.image = uni_images_first(&in->a->images),
		.qmp = in->a->qmp,
		.debug_dirs = in->a->debug_dirs,
		.wait = in->a->wait };
	struct uni_ukt_file f;
	int rc = uni_uktrace_fetch(target, &args, &f, err);

	if (rc != 0)
		return rc;
	uni_note("%s has Unikraft's tracepoints, and not our tracer: these are the calls in its "
		 "buffer",
		target);
	rc = read_tracepoints(in, target, &f, err);
	uni_ukt_file_free(&f);
	return rc;
}

static int trace_guest(
	struct input *in, const char *target, struct uni_target_shared *shared, struct uni_err *err)
{
	const struct uni_tracing_args args = { .images = in->a->images,
		.qmp = in->a->qmp,
		.debug_dirs = in->a->debug_dirs,
		.wait = in->a->wait,
		.shared = shared,
		.may_give_up = true,
		.owns = true,
		.guarded = true };
	struct uni_err why = { 0 };
	struct uni_tracing t;
	int rc = uni_tracing_open(&t, target, &args, err);

	if (rc == 0) {
		rc = record_and_read(in, &t, err);
		uni_tracing_close(&t);
		return rc;
	}
	if (err->code != UNI_ENOENT)
		return rc;
	/* Without rights, it is not found by a name again. */
	if (from_buffer(in, t.g.spec.text[0] != '\0' ? t.g.spec.text : target, shared, &why) == 0) {
		*err = (struct uni_err){ 0 };
		return 0;
	}
	/* The same message twice: the guest was not even reached. */
	if (strcmp(err->msg, why.msg) == 0)
		return rc;
	why = *err;
	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_ENOENT,
		"%.300s. As it is, a guest shows its system calls if Nanos prints them "
		"(debugsyscalls in its manifest) or Unikraft keeps them (tracepoints). "
		"--stops stops Nanos at each call, by a gdb stub. `uniscope run --exact` counts "
		"the functions that answer them, under QEMU's TCG",
		why.msg);
}

static int read_guest(struct input *in, const char *target, struct uni_err *err)
{
	struct uni_target_shared *shared = uni_target_shared_create();
	int rc;

	if (shared == NULL)
		return no_memory(err);
	uni_confine_output(in->a->save);
	rc = trace_guest(in, target, shared, err);
	uni_target_shared_destroy(shared);
	return rc;
}

int uni_syscalls_read(const char *what, const struct uni_syscalls_args *args,
	struct uni_sysc_log *log, bool *told_ret, uint64_t *realtime_offset_ns_ret,
	struct uni_err *err)
{
	struct input in = { .a = args, .prefixes = uni_sysc_prefixes, .log = log };
	struct stat st;
	int rc;

	if (args->prefixes.items.nr > UNI_SYSC_PREFIXES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --prefix", UNI_SYSC_PREFIXES_MAX);
	if (args->prefixes.items.nr != 0) {
		in.prefixes.nr = args->prefixes.items.nr;
		in.prefixes.others = false;
		memcpy(in.prefixes.v, args->prefixes.items.v,
			in.prefixes.nr * sizeof(in.prefixes.v[0]));
	}
	if (strcmp(what, "-") == 0 || stat(what, &st) == 0)
		rc = read_path(&in, what, err);
	else if (uni_syscalls_check(args, what, UNI_SYSCALLS_GUEST, err) != 0)
		rc = -UNI_EUSAGE;
	else if (args->stops)
		rc = uni_syscalls_by_stops(what, args, log, &in.realtime_offset_ns, err);
	else
		rc = read_guest(&in, what, err);
	*told_ret = in.told;
	*realtime_offset_ns_ret = in.realtime_offset_ns;
	return rc;
}
