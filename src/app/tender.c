/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/tender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/privilege.h"
#include "base/text.h"
#include "app/apart.h"
#include "app/child.h"
#include "app/qemu.h"
#include "app/quality.h"
#include "app/signals.h"
#include "app/summary.h"
#include "app/term.h"

/* The tender's process. */
struct tender {
	const char *name;
	const char *console;
	pid_t pid;
	uint64_t begin_ns, end_ns; /* end_ns: how long it ran */
	bool ended;
	int status; /* its wait status, when it has ended */
	/* For a process of its own that records; NULL: there is none. */
	struct uni_child_fate *shared, *fate; /* fate: in that process */
	const struct uni_tender_args *args;
};

const char *uni_tender_of(uint32_t binding)
{
	if (binding == UNI_SOLO5_HVT)
		return "solo5-hvt";
	return binding == UNI_SOLO5_SPT ? "solo5-spt" : NULL;
}

/* Has the user given an option that begins so? */
static bool is_given(const char *option, char *const *extra)
{
	for (; extra != NULL && *extra != NULL; extra++) {
		if (strncmp(*extra, option, strlen(option)) == 0)
			return true;
	}
	return false;
}

/* Returns how many devices of the image the user has not given; they get a placeholder. */
static size_t build_command(const struct uni_tender_args *args, struct uni_child_args *ret)
{
	char word[UNI_SOLO5_NAME_MAX + 32];
	size_t missing = 0;

	uni_child_add(ret, uni_tender_of(args->notes->binding));
	(void)snprintf(word, sizeof(word), "--mem=%" PRIu64, args->mem_bytes >> 20);
	if (!is_given("--mem=", args->extra))
		uni_child_add(ret, word);
	for (char *const *p = args->extra; p != NULL && *p != NULL; p++)
		uni_child_add(ret, *p);
	for (size_t i = 0; i < args->notes->nr_devices; i++) {
		const struct uni_solo5_device *d = &args->notes->device[i];

		/* --net:NAME=IFACE, --block:NAME=PATH */
		(void)snprintf(
			word, sizeof(word), "--%s:%s=", d->is_net ? "net" : "block", d->name);
		if (is_given(word, args->extra))
			continue;
		(void)snprintf(word, sizeof(word), d->is_net ? "--net:%s=TAP" : "--block:%s=FILE",
			d->name);
		uni_child_add(ret, word);
		missing++;
	}
	uni_child_add(ret, "--");
	uni_child_add(ret, args->image);
	if (args->append != NULL)
		uni_child_add(ret, args->append);
	return missing;
}

/* The user can start it by hand, and record it then. */
static int tell_command(
	const struct uni_child_args *command, const char *image, struct uni_err *err)
{
	const char *slash = strrchr(image, '/');
	_cleanup_strbuf_ struct uni_strbuf line;

	uni_strbuf_init(&line);
	uni_child_quote(command, &line);
	if (command->failed || uni_strbuf_failed(&line))
		return uni_err_nomem(err);
	uni_note("it is started by hand with: %s", line.s);
	uni_note("and recorded then with: uniscope record %s", slash != NULL ? slash + 1 : image);
	return -(int)err->code;
}

static bool has_ended(void *ctx)
{
	struct tender *t = ctx;

	if (!t->ended && uni_child_has_ended(t->fate, &t->pid, &t->status)) {
		t->ended = true;
		t->end_ns = uni_now_ns() - t->begin_ns;
	}
	return t->ended;
}

/* "the guest ended after 5.01 s: solo5-hvt left with status 0; its last words: ..." */
static void tell_end(const struct tender *t, char *ret, size_t cap)
{
	char words[256];

	uni_child_last_words(t->console, words, sizeof(words));
	(void)snprintf(ret, cap, "the guest ended after %.2f s: %s %s %d; its last words: %s",
		(double)t->end_ns / 1e9, t->name,
		WIFSIGNALED(t->status) ? "died by signal" : "left with status",
		WIFSIGNALED(t->status) ? WTERMSIG(t->status) : WEXITSTATUS(t->status), words);
}

static bool has_ended_meanwhile(void *ctx, bool settled)
{
	return has_ended(ctx);
}

/* A guest that ended is recorded if some of its samples were. */
static int judge_end(void *ctx, const struct uni_record_stats *st, struct uni_err *err)
{
	struct tender *t = ctx;
	char line[512];

	if (!has_ended(t) || st->inside != 0)
		return 0;
	tell_end(t, line, sizeof(line));
	return uni_err_set(err, UNI_EGONE, "%s, before it could be recorded", line);
}

static int record_tender(void *ctx, struct uni_err *err)
{
	struct tender *t = ctx;
	const struct uni_tender_args *args = t->args;
	struct uni_attach_args attach = args->attach;
	struct uni_guest g, *const one[] = { &g };
	char target[64], line[512];
	int rc;

	(void)snprintf(target, sizeof(target), "%s:pid=%d",
		args->notes->binding == UNI_SOLO5_HVT ? "kvm" : "proc", (int)t->pid);
	attach.target = target;
	attach.ended = has_ended;
	attach.ended_ctx = args->rec->ctx = t;
	args->rec->ended = has_ended_meanwhile;
	args->rec->judge = judge_end;
	uni_confine_output(args->rec->output);
	uni_confine_output(args->rec->save_replay);
	rc = uni_privilege_limit(err); /* the tender runs */
	if (rc == 0)
		rc = uni_guest_open_only(&g, &attach, err);
	if (rc == 0) {
		rc = uni_record_guests(one, 1, args->rec, NULL, err);
		uni_guest_close(&g);
	}
	/* How it ended says more than what was noticed of it. */
	if (!has_ended(t) &&
		!(rc != 0 && uni_child_is_ending(t->fate, &t->pid, &t->status) && has_ended(t)))
		return rc;
	tell_end(t, line, sizeof(line));
	if (rc == 0 && !args->rec->quiet)
		uni_note("%s" UNI_SUMMARY_KEPT, line);
	if (rc == 0)
		return 0;
	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_EGONE, "%s, before it could be recorded", line);
}

static int record_in_child(void *ctx, struct uni_err *err)
{
	struct tender *t = ctx;

	t->fate = t->shared;
	return record_tender(t, err);
}

static void look_after_tender(void *ctx)
{
	struct tender *t = ctx;

	uni_child_tell(&t->pid, t->shared);
}

/* With rights to lose, a process of its own records. This one can still end the tender. */
static int record_tender_apart(struct tender *t, struct uni_err *err)
{
	int rc;

	if (!uni_privilege_has())
		return record_tender(t, err);
	t->shared = uni_apart_share(sizeof(*t->shared));
	if (t->shared == NULL)
		return uni_err_nomem(err);
	rc = uni_apart_run(&(struct uni_apart){ .work = record_in_child,
				   .idle = look_after_tender,
				   .ctx = t,
				   .what = "record the guest" },
		err);
	uni_apart_unshare(t->shared, sizeof(*t->shared));
	return rc;
}

static int start_and_record(
	const struct uni_tender_args *args, struct uni_child_args *command, struct uni_err *err)
{
	struct tender t = {
		.name = uni_tender_of(args->notes->binding), .console = args->console, .args = args
	};
	_cleanup_close_ int console = -1;
	struct uni_signals signals;
	int rc = uni_child_console(args->console, &console, err);

	if (rc != 0)
		return rc;
	uni_signals_begin(&signals);
	t.begin_ns = uni_now_ns();
	command->rights = (struct uni_child_rights){ .image = args->image,
		.kvm = args->notes->binding == UNI_SOLO5_HVT,
		.options = args->extra != NULL && args->extra[0] != NULL };
	rc = uni_child_start(command, console, t.name, &t.pid, err);
	if (rc == 0 && !args->rec->quiet)
		uni_note("started %s with %s, pid %d, console in %s", args->image, t.name,
			(int)t.pid, args->console);
	if (rc == 0)
		rc = record_tender_apart(&t, err);
	uni_child_end(&t.pid, t.name);
	uni_signals_end(&signals);
	return rc;
}

int uni_tender_run(const struct uni_tender_args *args, struct uni_err *err)
{
	const char *name = uni_tender_of(args->notes->binding), *why;
	struct uni_child_args command = { 0 };
	size_t missing = build_command(args, &command);
	int rc = 0;

	if (command.failed)
		rc = uni_err_nomem(err);
	else if (missing != 0)
		rc = uni_err_set(err, UNI_EUSAGE,
			"%s needs %zu device%s that %s not given: options of %s go behind --",
			args->image, missing, uni_plural(missing), missing == 1 ? "is" : "are",
			name);
	else if (!uni_child_is_program(name))
		rc = uni_err_set(err, UNI_ENOENT,
			"%s is needed for %s, and is not in PATH: it is a part of Solo5", name,
			args->image);
	else if (args->notes->binding == UNI_SOLO5_HVT && !uni_qemu_has_kvm(&why))
		rc = uni_err_set(err, UNI_ENOTSUP, "%s runs in KVM, and %s", args->image, why);
	else
		rc = start_and_record(args, &command, err);
	if (rc != 0 && (missing != 0 || err->code == UNI_ENOENT))
		rc = tell_command(&command, args->image, err);
	uni_child_args_deinit(&command);
	return rc;
}
