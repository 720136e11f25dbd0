/* SPDX-License-Identifier: BSD-2-Clause */
/* xen: a domain of the hypervisor whose dom0 is this host. */
#include "backend/xen/xen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LOOK_NS	      (100 * UNI_NSEC_PER_MSEC) /* how often the domain's state is read */
#define LOOK_AGAIN_NS (5 * UNI_NSEC_PER_MSEC)	/* while somebody else has paused it */

static struct uni_xen_target *xen_target(struct uni_target *t)
{
	return (struct uni_xen_target *)t;
}

/* The domain has ended: a remaining mapping would keep it as a zombie for as long as we live. */
static void lose_domain(struct uni_xen_target *t)
{
	t->gone = true;
	t->held = false;
	if (t->keeper.state != NULL)
		uni_xen_keeper_done(&t->keeper);
	uni_xen_pages_seal(t->pages);
	(void)snprintf(t->info.ended, sizeof(t->info.ended), "domain %" PRIu32 " (%s) %s",
		t->dom.domid, t->info.name[0] != '\0' ? t->info.name : "no name",
		uni_xen_fate(&t->dom));
}

/* Has it ended, or does another domain have its number now? */
static bool has_ended(struct uni_xen_target *t)
{
	struct uni_xen_dominfo d;
	int rc = uni_xen_call_info(t->call, t->dom.domid, &d);

	if (rc == 0 && memcmp(d.uuid, t->dom.uuid, sizeof(d.uuid)) != 0)
		rc = -UNI_EGONE;
	if (rc == -UNI_EGONE)
		t->dom.dying = true;
	else if (rc == 0)
		t->dom = d;
	return t->dom.dying || (t->dom.shutdown && !t->dead && !uni_xen_is_suspended(&t->dom));
}

/* May we stop it now? */
static bool may_hold(struct uni_xen_target *t)
{
	return t->pause && !t->dead && !t->found_paused && uni_xen_keeper_alive(&t->keeper);
}

void uni_xen_look(struct uni_xen_target *t, uint64_t now_ns)
{
	t->next_look_ns = now_ns + LOOK_NS;
	if (t->gone)
		return;
	if (has_ended(t)) {
		lose_domain(t);
		return;
	}
	if (t->held) /* paused by us */
		return;
	uni_xen_say_rest(&t->dom, &t->info);
	if (!t->dom.paused)
		t->found_paused = false;
	t->suspended = uni_xen_is_suspended(&t->dom) && !t->dead;
	t->others_pause = t->suspended || (t->dom.paused && !t->found_paused && !t->dead);
	/* It may be another profiler's pause, for a moment. */
	if (t->others_pause)
		t->next_look_ns = now_ns + LOOK_AGAIN_NS;
	t->may_hold = may_hold(t);
	if (now_ns < t->next_drop_ns || t->dead)
		return;
	t->next_drop_ns = now_ns + UNI_XEN_REMAP_NS;
	uni_xen_pages_drop(t->pages);
}

/* Looks at the instruction before its pc. If that cannot be read, the vCPU may wait. */
static bool may_wait(struct uni_xen_target *t, const struct uni_regs *regs)
{
	uint8_t before[UNI_XEN_WAIT_BYTES];
	struct uni_pt_root root;

	if (regs->pc < sizeof(before) || t->base.arch->paging(regs, &root) != 0)
		return true;
	uni_as_begin(t->as, &root);
	return uni_as_read(t->as, uni_gva_of(regs->pc - sizeof(before)), before, sizeof(before)) !=
		       0 ||
	       t->arch->may_wait(before);
}

/*
 * Asking costs as much as the unpause does. So it asks only about a vCPU that is at the same place
 * as last time, or is seen for the first time. The vCPU must also be at a place where it can wait.
 */
static void find_halted(struct uni_xen_target *t, uint32_t vcpu, struct uni_regs *regs)
{
	__typeof__(&t->last[0]) last = &t->last[vcpu];
	bool seen = last->pc != 0, blocked = false;

	if (last->pc != regs->pc || last->sp != regs->sp) {
		last->pc = regs->pc;
		last->sp = regs->sp;
		last->waits = UNI_XEN_WAITS_UNKNOWN;
		if (seen)
			return;
	}
	if (last->waits == UNI_XEN_WAITS_UNKNOWN)
		last->waits = may_wait(t, regs) ? UNI_XEN_WAITS_MAYBE : UNI_XEN_WAITS_NEVER;
	if (last->waits == UNI_XEN_WAITS_MAYBE && regs->state == UNI_VCPU_RUNNING &&
		uni_xen_call_blocked(t->call, t->dom.domid, vcpu, &blocked) == 0 && blocked)
		regs->state = UNI_VCPU_HALTED;
}

static void take_regs(struct uni_xen_target *t, const struct uni_vcpuset *set,
	const struct uni_vcpuset *have, struct uni_regs *ret)
{
	for (uint32_t v = 0; v < t->nr_vcpus; v++) {
		if (!uni_vcpuset_has(set, v))
			continue;
		if (!uni_vcpuset_has(have, v)) {
			ret[v] = (struct uni_regs){ .state = UNI_VCPU_OFFLINE };
			continue;
		}
		t->arch->regs(uni_xen_call_context(t->call, v), !t->dom.hvm, &ret[v]);
		find_halted(t, v, &ret[v]);
	}
}

static int xen_snap(struct uni_target *base, const struct uni_vcpuset *set, struct uni_regs *ret,
	unsigned flags)
{
	struct uni_xen_target *t = xen_target(base);
	uint64_t now_ns = uni_now_ns();
	struct uni_vcpuset have;
	bool hold;
	int rc;

	if (!uni_vcpuset_fits(set, t->nr_vcpus))
		return -UNI_EINVAL;
	if (now_ns >= t->next_look_ns)
		uni_xen_look(t, now_ns);
	if (t->gone)
		return -UNI_EGONE;
	if (t->others_pause && (t->pause || t->suspended))
		return -UNI_EAGAIN;
	hold = (flags & UNI_SNAP_HOLD) != 0 && t->may_hold && !t->held;
	if (hold)
		uni_xen_keeper_hold(&t->keeper, now_ns);
	rc = uni_xen_call_contexts(t->call, t->dom.domid, set, hold, &have);
	if (rc != 0 && hold)
		uni_xen_keeper_done(&t->keeper);
	if (rc == -UNI_EGONE) {
		t->dom.dying = true;
		lose_domain(t);
	}
	if (rc != 0)
		return rc;
	t->held = t->held || hold;
	take_regs(t, set, &have, ret);
	return 0;
}

static int xen_release(struct uni_target *base)
{
	struct uni_xen_target *t = xen_target(base);
	int rc = -UNI_EAGAIN;

	if (!t->held)
		return 0;
	t->held = false;
	if (uni_xen_keeper_holds(&t->keeper))
		rc = uni_xen_call_unpause(t->call, t->dom.domid);
	else if (has_ended(t))
		rc = -UNI_EGONE;
	if (rc == -UNI_EIO || rc == -UNI_EPERM)
		t->held = true; /* we, or the keeper, will try again */
	else
		uni_xen_keeper_done(&t->keeper);
	return rc;
}

static unsigned xen_caps(struct uni_target *base)
{
	const struct uni_xen_target *t = xen_target(base);
	unsigned caps = UNI_CAP_NO_PAUSE | UNI_CAP_SYSREGS;

	if (t->dead)
		return caps | UNI_CAP_DEAD | UNI_CAP_STILL;
	if (t->pause)
		caps |= UNI_CAP_HOLD | UNI_CAP_WHOLE_STOP | UNI_CAP_WRITE_TEXT;
	return caps;
}

static int xen_nr_vcpus(struct uni_target *base)
{
	return (int)xen_target(base)->nr_vcpus;
}

static int xen_may_sample(struct uni_target *base, struct uni_err *err)
{
	struct uni_xen_target *t = xen_target(base);

	uni_xen_look(t, uni_now_ns());
	if (!t->pause || t->dead || t->gone || (!t->found_paused && !t->others_pause))
		return 0;
	return uni_err_set(err, UNI_EBUSY,
		"domain %" PRIu32 " was paused by somebody else: `xl unpause %" PRIu32
		"` first (`uniscope stacks` shows where it stands)",
		t->dom.domid, t->dom.domid);
}

static bool xen_more_regs(struct uni_target *base, uint32_t vcpu, struct uni_more_regs *ret)
{
	const struct uni_xen_target *t = xen_target(base);

	if (t->arch->more == NULL || vcpu >= t->nr_vcpus)
		return false;
	t->arch->more(uni_xen_call_context(t->call, vcpu), ret);
	return true;
}

static struct uni_gmem *xen_gmem(struct uni_target *base)
{
	return xen_target(base)->gmem;
}

static void xen_info(struct uni_target *base, struct uni_target_info *ret)
{
	*ret = xen_target(base)->info;
}

static uint64_t xen_counter_hz(struct uni_target *base)
{
	struct uni_xen_target *t = xen_target(base);

	return uni_xen_call_tsc_hz(t->call, t->dom.domid);
}

static bool xen_alive(struct uni_target *base)
{
	struct uni_xen_target *t = xen_target(base);
	uint64_t now_ns = uni_now_ns();

	if (now_ns >= t->next_look_ns)
		uni_xen_look(t, now_ns);
	return !t->gone;
}

static void xen_detach(struct uni_target *base)
{
	(void)xen_release(base);
	uni_xen_target_end(xen_target(base));
}

static int xen_attach(const struct uni_spec *spec, const struct uni_attach_opts *opts,
	struct uni_target **ret, struct uni_err *err)
{
	struct uni_xen_target *t = uni_xen_kept(spec);
	int rc = 0;

	if (t == NULL || t->keep == UNI_XEN_KEPT_USED)
		rc = uni_xen_target_make(spec, &t, err);
	if (rc != 0)
		return rc;
	if (opts->arch != NULL && opts->arch != t->arch->arch) {
		rc = uni_err_set(err, UNI_EMISMATCH, "the image is for %s, this host runs %s",
			opts->arch->name, t->arch->arch->name);
		uni_xen_target_end(t);
		return rc;
	}
	uni_xen_target_begin(t);
	*ret = &t->base;
	return 0;
}

int uni_xen_attach_with(const struct uni_xen_module *m, const char *state_dir,
	const struct uni_spec *spec, struct uni_target **ret, struct uni_err *err)
{
	struct uni_xen_target *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return uni_err_set(err, UNI_ENOMEM, "xen: out of memory");
	t->keeper = (struct uni_xen_keeper){ .fd = -1, .sock = -1 };
	rc = uni_xen_target_open(t, m, state_dir, spec, err);
	if (rc != 0) {
		uni_xen_target_free(t);
		return rc;
	}
	uni_xen_target_begin(t);
	*ret = &t->base;
	return 0;
}

static bool xen_claims(const struct uni_target_info *info, char *keys_ret, size_t cap)
{
	return info->domid != 0 && snprintf(keys_ret, cap, "dom=%" PRIu32, info->domid) > 0;
}

static int xen_choose(const struct uni_target_info *info, const struct uni_host_way *ways,
	uint32_t nr, char *why_ret, size_t cap)
{
	(void)snprintf(why_ret, cap, "%s",
		info->note[0] != '\0' ? info->note
				      : "stopped for each sample, by hypercalls (or not: "
					"--no-pause)");
	return 0;
}

static void xen_choose_key(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_way_key *ret)
{
	if (!wish->no_pause || uni_spec_get(spec, "pause") != NULL)
		return;
	ret->key = "pause";
	ret->value = "no";
}

const struct uni_target_ops uni_target_xen = {
	.scheme = "xen",
	.summary = "a domain of Xen, PV or PVH, from dom0",
	.keys = "dom=ID|NAME|UUID[,pause=yes|no]",
	.host_check = uni_xen_host_check,
	.host_ways = uni_xen_host_ways,
	.claims = xen_claims,
	.choose = xen_choose,
	.choose_key = xen_choose_key,
	.list = uni_xen_list,
	.probe = uni_xen_probe,
	.hand_line = uni_xen_hand_line,
	.attach = xen_attach,
	.caps = xen_caps,
	.nr_vcpus = xen_nr_vcpus,
	.may_sample = xen_may_sample,
	.snap = xen_snap,
	.release = xen_release,
	.more_regs = xen_more_regs,
	.gmem = xen_gmem,
	.counter_hz = xen_counter_hz,
	.info = xen_info,
	.alive = xen_alive,
	.granted = uni_xen_granted,
	.write_text = uni_xen_write_text,
	.write_places = 1024,
	.detach = xen_detach,
};
