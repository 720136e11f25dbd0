/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/way.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "app/options.h"
#include "app/resolve.h"
#include "backend/shared.h"

int uni_guest_use_unwinder(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	uni_unwinder_init(&g->unwinder, g->t != NULL ? g->t->arch : NULL, g->hints);
	return args->unwind != NULL ? uni_unwinder_use(&g->unwinder, args->unwind, err) : 0;
}

static const char lacks_frames[] =
	"the image has neither frame pointers nor call frame information, and the kernel does not "
	"search stacks";

/*
 * The kernel follows frame pointers, or the rows of an image without them. Why a guest is better
 * stopped, and its chains are found in another way; NULL: it need not be.
 */
static const char *reason_to_stop(const struct uni_guest *g, const struct uni_attach_args *args)
{
	const struct uni_unwinder *u = &g->unwinder;
	bool fp = false, scan = false;

	for (size_t i = 0; i < uni_array_len(u->stepper); i++) {
		fp = fp || u->stepper[i].ops == &uni_unwind_fp;
		scan = scan || u->stepper[i].ops == &uni_unwind_scan;
	}
	if (args->exits)
		return NULL;
	if (args->threads)
		return "the threads that do not run are read while the guest is stopped";
	if (args->unwind != NULL && !fp)
		return "the kernel chooses itself how it unwinds, and --unwind leaves out "
		       "frame pointers";
	if (args->sysroot != NULL && args->sysroot->items.nr != 0)
		return "the kernel knows the functions of one image only, and --sysroot gives "
		       "others";
	if (scan && g->hints != NULL && g->hints->cfi == NULL && g->image != NULL &&
		uni_image_lacks_frames(g->image, g->hints))
		return lacks_frames;
	return NULL;
}

static struct uni_way_wish make_wish(const struct uni_guest *g, const struct uni_attach_args *args)
{
	struct uni_way_wish wish = {
		.no_pause = args->no_pause,
		.threads = args->threads,
		.once = args->once,
		.no_samples = args->no_samples,
	};

	if (g->hints != NULL && g->hints->cfi != NULL) {
		unsigned sp_reg = uni_image_arch(g->image)->sp_reg;

		wish.switches = uni_cfi_switches(g->hints->cfi, sp_reg);
		wish.pops = uni_cfi_pops(g->hints->cfi, sp_reg);
	}
	(void)uni_asked_parse(args->method, &wish.asked);
	if (wish.asked == UNI_ASKED_AUTO && !wish.no_pause)
		wish.because = reason_to_stop(g, args);
	return wish;
}

int uni_guest_check_method(
	const struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	const struct uni_target_ops *ops = uni_target_backend(g->spec.scheme);
	const struct uni_way_wish wish = make_wish(g, args);
	int rc;

	if (wish.no_pause && wish.asked == UNI_ASKED_PAUSE)
		return uni_err_set(
			err, UNI_EUSAGE, "--method pause and --no-pause contradict each other");
	if (ops == NULL)
		return 0; /* uni_target_probe() reports it */
	rc = ops->check_wish != NULL ? ops->check_wish(&g->spec, &wish, err) : 0;
	if (rc != 0 || wish.asked != UNI_ASKED_KERNEL ||
		(uni_method_flags(ops->stream_method) & UNI_METHOD_KERNEL) != 0)
		return rc;
	return uni_err_set(
		err, UNI_EUSAGE, "--method bpf is for kvm: targets, and this is %s", g->spec.text);
}

/* Backends that have a choice have a key for it; others pause, or need not. */
int uni_guest_choose_method(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	const struct uni_target_ops *ops = uni_target_backend(g->spec.scheme);
	const struct uni_way_wish wish = make_wish(g, args);
	struct uni_way_key key = { 0 };

	if (ops != NULL && ops->choose_key != NULL)
		ops->choose_key(&g->spec, &wish, &key);
	if (key.why != NULL)
		(void)snprintf(g->why, sizeof(g->why), "%s", key.why);
	return key.key != NULL ? uni_spec_add(&g->spec, key.key, key.value, err) : 0;
}

/* --- without rights --------------------------------------------------------------------------- */

static bool is_stopped(const struct uni_spec *spec, const struct uni_attach_args *args)
{
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);
	struct uni_way_wish wish = { .threads = args->threads };

	(void)uni_asked_parse(args->method, &wish.asked);
	return ops->stops != NULL && ops->stops(spec, &wish);
}

/* Otherwise all stays as it is. */
static void plan_owner(
	const struct uni_spec *spec, const struct uni_attach_args *args, struct uni_guest_plan *ret)
{
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);
	struct uni_err ignored = { 0 };

	if (ops->stopped_pid != NULL && args->qmp == NULL &&
		ops->stopped_pid(spec, &ret->pid, &ignored) == 0 &&
		uni_privilege_owner_may_trace(ret->pid))
		ret->rights = UNI_GUEST_OWNER;
}

/* One look at a VM stops it, and begins with what the kernel knows, if that can be had. */
static void plan_look(
	const struct uni_spec *spec, const struct uni_attach_args *args, struct uni_guest_plan *ret)
{
	struct uni_err ignored = { 0 };

	plan_owner(spec, args, ret);
	if (ret->rights == UNI_GUEST_OWNER)
		(void)uni_target_backend(spec->scheme)
			->hand_over(spec, args->shared, false, &ignored);
}

/* Is there a wish that only a stopped guest fulfils? Also: whether its image decides. */
static bool may_need_stop(const struct uni_spec *spec, const struct uni_attach_args *args,
	const struct uni_target_ops *ops, bool *by_image_ret)
{
	struct uni_way_wish wish = { .no_pause = args->no_pause,
		.threads = args->threads,
		.because = "its image",
		.switches = true };
	struct uni_way_key key = { 0 };

	(void)uni_asked_parse(args->method, &wish.asked);
	if (wish.asked == UNI_ASKED_PAUSE || args->threads || args->stopped || args->qmp != NULL)
		return true;
	ops->choose_key(spec, &wish, &key);
	*by_image_ret = !args->exits && key.why != NULL;
	return *by_image_ret &&
	       (args->unwind != NULL || (args->sysroot != NULL && args->sysroot->items.nr != 0));
}

static int open_event(void *ctx)
{
	const int *pid = ctx;
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = UNI_NSEC_PER_SEC,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1 };
	_cleanup_close_ int fd =
		(int)syscall(SYS_perf_event_open, &attr, *pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd >= 0 ? 0 : -UNI_EPERM;
}

#define LOOK_S	    5 /* an image that takes longer to read than that holds up no list of guests */
#define BY_KERNEL   0
#define BY_STOPPING 3 /* no status of a process that was ended */

/* The image is read in a process of its own, whose rights are gone. Its status is the answer. */
static _Noreturn void judge_image(
	const struct uni_spec *spec, const struct uni_attach_args *args, int pid)
{
	struct uni_guest *g = calloc(1, sizeof(*g));
	struct uni_err err = { 0 };
	int notes = memfd_create("notes", MFD_CLOEXEC); /* whoever goes on says them again */
	struct uni_way_wish wish;
	struct uni_way_key key = { 0 };

	if (g == NULL || dup2(notes, STDERR_FILENO) < 0 ||
		uni_privilege_drop_watching(&(struct uni_watched){ .pid = pid }, 1, &err) != 0)
		_exit(1);
	g->spec = *spec;
	if (uni_guest_use_unwinder(g, args, &err) != 0 ||
		uni_target_probe(&g->spec, &g->info, &err) != 0 ||
		uni_guest_load_image(g, args, &err) != 0)
		_exit(BY_KERNEL); /* the same error will be told */
	wish = make_wish(g, args);
	uni_target_backend(spec->scheme)->choose_key(&g->spec, &wish, &key);
	_exit(key.why != NULL ? BY_STOPPING : BY_KERNEL);
}

/* An image that ends its reader is read by nobody with rights. */
static int wait_for_judge(pid_t child, bool *stop_ret, struct uni_err *err)
{
	int status = -1;
	pid_t r;

	do
		r = waitpid(child, &status, 0);
	while (r < 0 && errno == EINTR);
	*stop_ret = WEXITSTATUS(status) == BY_STOPPING;
	if (r == child && WIFEXITED(status) && (*stop_ret || WEXITSTATUS(status) == BY_KERNEL))
		return 0;
	return uni_err_set(err, UNI_EIO,
		"the process that was to read the image without rights has ended: is the image "
		"right?");
}

/* Whether events are permitted is found out for the sake of the observer's rights. */
static int plan_process(const struct uni_spec *spec, const struct uni_attach_args *args,
	struct uni_guest_plan *ret, struct uni_err *err)
{
	enum uni_asked asked = UNI_ASKED_AUTO;
	const char *via = uni_spec_get(spec, "via");
	int pid, rc = uni_target_backend(spec->scheme)->observed_pid(spec, &pid, err);

	if (rc != 0)
		return rc;
	(void)uni_asked_parse(args->method, &asked);
	if (!args->once && asked != UNI_ASKED_PAUSE && (via == NULL || strcmp(via, "stop") != 0))
		(void)uni_privilege_try_observing(open_event, &pid);
	*ret = (struct uni_guest_plan){ .rights = UNI_GUEST_NONE,
		.watched = { pid, .stops = true, .writes = args->writes } };
	return 0;
}

/* Otherwise all stays as it is: attaching says what is missing. */
static void plan_beside(
	const struct uni_spec *spec, const struct uni_attach_args *args, struct uni_guest_plan *ret)
{
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);
	_cleanup_free_ struct uni_spec *wanted = calloc(1, sizeof(*wanted));
	const struct uni_way_wish wish = { .no_pause = args->no_pause };
	struct uni_way_key key = { 0 };
	struct uni_err ignored = { 0 };
	int pid = 0;

	if (wanted == NULL || args->shared == NULL || args->qmp != NULL)
		return;
	*wanted = *spec;
	if (ops->choose_key != NULL)
		ops->choose_key(spec, &wish, &key);
	if (key.key != NULL && uni_spec_add(wanted, key.key, key.value, &ignored) != 0)
		return;
	if (ops->hand_line(wanted, args->shared, &pid, &ignored) == 0)
		*ret = (struct uni_guest_plan){ .rights = UNI_GUEST_NONE,
			.watched = { pid, .beside = true } };
}

/* A VM that the kernel samples, unless its image makes it necessary to stop it. */
static int plan_vm(const struct uni_spec *spec, const struct uni_attach_args *args,
	struct uni_guest_plan *ret, struct uni_err *err)
{
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);
	struct uni_err why = { 0 };
	bool by_image = false, stop = false, ok;
	pid_t judge = -1;
	uint64_t pid = 0;
	int rc = 0, watched;

	if (may_need_stop(spec, args, ops, &by_image) ||
		uni_spec_get_u64(spec, "pid", &pid, &why) != 0 || pid == 0 || pid > INT32_MAX)
		return 0;
	watched = (int)pid;
	if (uni_privilege_try_observing(open_event, &watched) != 0)
		return 0;
	if (by_image) {
		judge = fork();
		if (judge == 0)
			judge_image(spec, args, watched);
	}
	ok = ops->hand_over(spec, args->shared, args->exits || args->exits_too, &why) == 0;
	if (by_image)
		rc = wait_for_judge(judge, &stop, err);
	if (rc == 0 && stop)
		plan_owner(spec, args, ret);
	else if (rc == 0 && ok)
		*ret = (struct uni_guest_plan){ .rights = UNI_GUEST_NONE,
			.watched = { .pid = watched } };
	return rc;
}

int uni_guest_plan_rights(const struct uni_spec *spec, const struct uni_attach_args *args,
	struct uni_guest_plan *ret, struct uni_err *err)
{
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);

	*ret = (struct uni_guest_plan){ .rights = UNI_GUEST_ALL };
	if (ops != NULL && ops->is_file)
		ret->rights = UNI_GUEST_NONE;
	else if (ops != NULL && ops->observed_pid != NULL)
		return plan_process(spec, args, ret, err);
	else if (ops != NULL && ops->hand_line != NULL)
		plan_beside(spec, args, ret);
	else if (ops == NULL || ops->hand_over == NULL || ops->choose_key == NULL)
		return 0;
	else if (args->once)
		plan_look(spec, args, ret);
	else if (is_stopped(spec, args))
		plan_owner(spec, args, ret);
	else
		return plan_vm(spec, args, ret, err);
	return 0;
}

int uni_guests_give_up_rights(const struct uni_guest_plan *plan, size_t nr, struct uni_err *err)
{
	_cleanup_free_ struct uni_watched *w = calloc(nr + 1, sizeof(*w));

	if (w == NULL)
		return uni_err_nomem(err);
	if (nr == 1 && plan->rights == UNI_GUEST_OWNER)
		return uni_privilege_drop_to_owner(plan->pid, err);
	for (size_t i = 0; i < nr; i++) {
		if (plan[i].rights != UNI_GUEST_NONE)
			return 0;
		w[i] = plan[i].watched;
	}
	return nr != 0 ? uni_privilege_drop_watching(w, nr, err) : 0;
}

int uni_guest_give_up_rights(
	const struct uni_spec *spec, const struct uni_attach_args *args, struct uni_err *err)
{
	struct uni_guest_plan plan;
	int rc = uni_guest_plan_rights(spec, args, &plan, err);

	return rc == 0 ? uni_guests_give_up_rights(&plan, 1, err) : rc;
}

int uni_guest_open_only(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err)
{
	_cleanup_free_ struct uni_spec *spec = calloc(1, sizeof(*spec));
	struct uni_target_shared *shared = uni_target_shared_create();
	struct uni_attach_args own = *args;
	int rc = spec == NULL || shared == NULL
			 ? uni_err_nomem(err)
			 : uni_guest_await(args->target, args->wait_ns, spec, err);

	own.shared = shared;
	if (rc == 0)
		rc = uni_guest_give_up_rights(spec, &own, err);
	if (rc == 0) {
		own.target = spec->text;
		rc = uni_guest_open(g, &own, err);
	}
	if (rc == 0)
		g->shared = shared;
	else
		uni_target_shared_destroy(shared);
	return rc;
}

const char *uni_guest_image_stops(const struct uni_spec *spec)
{
	static const struct uni_attach_args args;
	const struct uni_target_ops *ops = uni_target_backend(spec->scheme);
	struct uni_err ignored = { 0 };
	bool by_image = false, stop = false;
	uint64_t pid = 0;
	pid_t judge;

	if (ops == NULL || ops->hand_over == NULL || ops->choose_key == NULL ||
		may_need_stop(spec, &args, ops, &by_image) || !by_image ||
		uni_spec_get_u64(spec, "pid", &pid, &ignored) != 0 || pid == 0 || pid > INT32_MAX)
		return NULL;
	judge = fork();
	if (judge == 0) {
		(void)alarm(LOOK_S);
		judge_image(spec, &args, (int)pid);
	}
	return judge > 0 && wait_for_judge(judge, &stop, &ignored) == 0 && stop ? lacks_frames
										: NULL;
}
