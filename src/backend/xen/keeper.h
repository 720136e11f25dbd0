/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nobody owns a pause in Xen: a domain that we paused stays paused when we die. Two things undo it.
 *
 * The keeper, a forked child, waits for the close of our end of a socket pair. If we were in the
 * middle of a hold, it unpauses the domain. It also does so if a hold lasts too long (we were
 * stopped).
 * The state file, /run/uniscope/xen-DOMID-UUID, is a page that both map. It outlives both if they
 * are killed together. The next start finds it, and sees by its lock that it has no owner any more.
 * If the domain is still the same one, and paused, that start unpauses it.
 *
 *   profiler ---- socket pair: its closing is our death ---- keeper
 *       `---- state file, mapped: since when we hold ----------'
 *
 * An operator's own pause in the very moment of our death cannot be told from ours. So we do not
 * hold a domain that somebody else has paused (xen.c checks ten times a second).
 */
#ifndef UNI_BACKEND_XEN_KEEPER_H
#define UNI_BACKEND_XEN_KEEPER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "backend/xen/call.h"

#define UNI_XEN_STATE_DIR "/run/uniscope"
#define UNI_XEN_HOLD_MS	  1000 /* longer than any sample: the profiler was stopped */

/* The state file. */
struct uni_xen_state {
	char magic[8]; /* UNI_XEN_STATE_MAGIC */
	uint32_t domid;
	uint8_t uuid[UNI_XEN_UUID_BYTES];
	uint32_t pad;
	_Atomic uint64_t since_ns; /* begin of a hold; 0: none; UINT64_MAX: the keeper ended it */
};

#define UNI_XEN_STATE_MAGIC "uniXen1\n"

struct uni_xen_keeper {
	int fd; /* state file, locked; -1 */
	int sock;
	pid_t pid;
	struct uni_xen_state *state;
	char path[128];
};

/*
 * Makes the file and the child; dir is UNI_XEN_STATE_DIR, except in tests. -UNI_EBUSY: another
 * uniscope pauses this domain. Call it before threads exist.
 */
int uni_xen_keeper_start(struct uni_xen_keeper *k, const struct uni_xen_module *m, const char *dir,
	const struct uni_xen_dominfo *d, struct uni_err *err);
/* Idempotent; { .fd = -1, .sock = -1 } is fine. */
void uni_xen_keeper_end(struct uni_xen_keeper *k);

/* Call these around a hold: from before the pause to after the unpause. */
static inline void uni_xen_keeper_hold(struct uni_xen_keeper *k, uint64_t now_ns)
{
	atomic_store(&k->state->since_ns, now_ns);
}

/*
 * False: the keeper has ended the hold. Ask before the unpause; call uni_xen_keeper_done() after
 * it.
 */
static inline bool uni_xen_keeper_holds(struct uni_xen_keeper *k)
{
	return atomic_load(&k->state->since_ns) != UINT64_MAX;
}

static inline void uni_xen_keeper_done(struct uni_xen_keeper *k)
{
	atomic_store_explicit(&k->state->since_ns, 0, memory_order_release);
}

/* With a dead keeper, nothing may be held. */
bool uni_xen_keeper_alive(const struct uni_xen_keeper *k);

/*
 * Searches dir for holds without an owner, and ends them. Returns how many domains run again;
 * *last_ret (may be NULL) is one of them.
 */
unsigned uni_xen_heal(struct uni_xen_call *x, const char *dir, uint32_t *last_ret);

#endif
