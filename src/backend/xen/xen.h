/* SPDX-License-Identifier: BSD-2-Clause */
/* The xen: target's own struct, shared by its parts. */
#ifndef UNI_BACKEND_XEN_XEN_H
#define UNI_BACKEND_XEN_XEN_H

#include "backend/target.h"
#include "backend/xen/call.h"
#include "backend/xen/keeper.h"
#include "backend/xen/load.h"
#include "backend/xen/pages.h"
#include "backend/xen/vcpu.h"

/* Time after which mappings are renewed, as a guest frame may be other memory by then. */
#define UNI_XEN_REMAP_NS 10000000000ull

/* May a vCPU wait at this place, so that asking is worth it? */
enum uni_xen_waits { UNI_XEN_WAITS_UNKNOWN, UNI_XEN_WAITS_NEVER, UNI_XEN_WAITS_MAYBE };

/* Is it opened before the rights go? Then it stays open, for the next attach. */
enum uni_xen_keep { UNI_XEN_OWN, UNI_XEN_KEPT, UNI_XEN_KEPT_USED };

struct uni_xen_target {
	struct uni_target base;
	const struct uni_xen_arch *arch;
	struct uni_xen_lib lib;
	struct uni_xen_call *call;
	struct uni_xen_pages *pages;
	struct uni_gmem *gmem;
	struct uni_as *as;	      /* for translations that are needed here */
	struct uni_xen_keeper keeper; /* used if pause */
	struct uni_xen_dominfo dom;   /* at the last look */
	struct uni_target_info info;
	uint32_t nr_vcpus;
	bool pause;	   /* it may be held; otherwise it runs while it is read */
	bool dead;	   /* a preserved domain: nothing runs in it any more */
	bool found_paused; /* somebody's pause, from before we attached: it is looked at, not
			      sampled */
	bool others_pause; /* somebody's pause since then */
	bool suspended;	   /* such a one: it is saved, or migrated */
	bool may_hold;	   /* as of the last look */
	bool held;
	bool gone;
	uint8_t keep; /* enum uni_xen_keep */
	uint64_t next_look_ns, next_drop_ns;
	/* The last place of each vCPU: a vCPU that is at the same place again may be waiting. */
	struct {
		uint64_t pc, sp;
		enum uni_xen_waits waits;
	} last[UNI_VCPU_MAX];
};

extern const struct uni_target_ops uni_target_xen;

/* For tests, which pass their own table instead of the loaded module. */
int uni_xen_attach_with(const struct uni_xen_module *m, const char *state_dir,
	const struct uni_spec *spec, struct uni_target **ret, struct uni_err *err);

/* Reads the domain's state; if the domain has ended, drops all mappings. */
void uni_xen_look(struct uni_xen_target *t, uint64_t now_ns);

/*
 * attach.c: fills a zeroed t whose lib is loaded; on failure call uni_xen_target_free(). Reads
 * nothing of the domain's memory before uni_xen_target_begin().
 */
int uni_xen_target_open(struct uni_xen_target *t, const struct uni_xen_module *m,
	const char *state_dir, const struct uni_spec *spec, struct uni_err *err);
/* The same for a new one, with the module of this host. */
int uni_xen_target_make(
	const struct uni_spec *spec, struct uni_xen_target **ret, struct uni_err *err);
void uni_xen_target_begin(struct uni_xen_target *t);
/* One that is kept stays open, until its next begin. */
void uni_xen_target_end(struct uni_xen_target *t);
void uni_xen_target_free(struct uni_xen_target *t);

/* kept.c: as in struct uni_target_ops; and what it has opened for that target, or NULL. */
int uni_xen_hand_line(const struct uni_spec *spec, struct uni_target_shared *shared, int *pid_ret,
	struct uni_err *err);
struct uni_xen_target *uni_xen_kept(const struct uni_spec *spec);

int uni_xen_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err);

/* write.c */
int uni_xen_write_text(struct uni_target *base, struct uni_patch_job *job);

/* granted.c */
int uni_xen_granted(struct uni_target *base, const char *what, uint8_t **ret, size_t *size_ret,
	struct uni_err *err);
/*
 * Parses grant references as guests write them: decimal, joined by commas. Returns their number;
 * for tests.
 */
int uni_xen_grant_refs(const char *text, uint32_t *ret, size_t cap);

/* describe.c */
void uni_xen_describe(
	struct uni_xen_call *x, const struct uni_xen_dominfo *d, struct uni_target_info *ret);
/* Lists the domains of this host; the caller owns *ret. */
int uni_xen_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);
uint32_t uni_xen_host_ways(struct uni_host_way *ret, uint32_t cap);
/* Says in one or two words why the domain is stopped; "" if it is not. */
void uni_xen_say_rest(const struct uni_xen_dominfo *d, struct uni_target_info *ret);
/* It was paused by a uniscope that was killed, and runs again. */
void uni_xen_say_healed(uint32_t domid, struct uni_target_info *ret);
/* Is it saved or migrated now? It goes on if that was a checkpoint, or failed. */
bool uni_xen_is_suspended(const struct uni_xen_dominfo *d);
/* The end of a domain that does not run any more: "powered off", "was destroyed", ... */
const char *uni_xen_fate(const struct uni_xen_dominfo *d);

#endif
