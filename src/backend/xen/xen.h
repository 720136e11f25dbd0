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

/* Mappings are renewed after so long: a guest frame may be other memory by then. */
#define UNI_XEN_REMAP_NS 10000000000ull

/* Is it worth asking whether a vCPU waits where it stands? */
enum uni_xen_waits { UNI_XEN_WAITS_UNKNOWN, UNI_XEN_WAITS_NEVER, UNI_XEN_WAITS_MAYBE };

struct uni_xen_target {
	struct uni_target base;
	const struct uni_xen_arch *arch;
	struct uni_xen_lib lib;
	struct uni_xen_call *call;
	struct uni_xen_pages *pages;
	struct uni_gmem *gmem;
	struct uni_as *as;	      /* for what is looked up here */
	struct uni_xen_keeper keeper; /* where pause */
	struct uni_xen_dominfo dom;   /* at the last look */
	struct uni_target_info info;
	uint32_t nr_vcpus;
	bool pause;	   /* it may be held; else it runs on while it is looked at */
	bool dead;	   /* a preserved domain: nothing runs in it any more */
	bool found_paused; /* somebody's pause, from before we came: to be looked at, not sampled */
	bool others_pause; /* somebody's pause since then */
	bool may_hold;	   /* as of the last look */
	bool held;
	bool gone;
	uint64_t next_look_ns, next_drop_ns;
	/* Where each vCPU was last: one that is there again may wait for something. */
	struct {
		uint64_t pc, sp;
		enum uni_xen_waits waits;
	} last[UNI_VCPU_MAX];
};

extern const struct uni_target_ops uni_target_xen;

/* For tests: with a table of theirs in place of the loaded module. */
int uni_xen_attach_with(const struct uni_xen_module *m, const char *state_dir,
	const struct uni_spec *spec, struct uni_target **ret, struct uni_err *err);

/* Asks for the domain's state; where it ended, all that is mapped of it is dropped. */
void uni_xen_look(struct uni_xen_target *t, uint64_t now_ns);

/* attach.c: fills a zeroed t whose lib is there; on failure uni_xen_target_free() is due. */
int uni_xen_target_open(struct uni_xen_target *t, const struct uni_xen_module *m,
	const char *state_dir, const struct uni_spec *spec, struct uni_err *err);
void uni_xen_target_free(struct uni_xen_target *t);

int uni_xen_probe(const struct uni_spec *spec, struct uni_target_info *ret, struct uni_err *err);

/* write.c */
int uni_xen_write_text(struct uni_target *base, struct uni_patch_job *job);

/* granted.c */
int uni_xen_granted(struct uni_target *base, const char *what, uint8_t **ret, size_t *size_ret,
	struct uni_err *err);
/* Grant references as a guest writes them: decimal, joined by commas. Their number; for tests. */
int uni_xen_grant_refs(const char *text, uint32_t *ret, size_t cap);

/* describe.c */
void uni_xen_describe(
	struct uni_xen_call *x, const struct uni_xen_dominfo *d, struct uni_target_info *ret);
/* Domains of this host; *ret is owned by the caller. */
int uni_xen_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);
uint32_t uni_xen_host_ways(struct uni_host_way *ret, uint32_t cap);
/* One or two words: why does it stand still? "" if it does not. */
void uni_xen_say_rest(const struct uni_xen_dominfo *d, struct uni_target_info *ret);
/* What became of a domain that runs no more: "powered off", "was destroyed", ... */
const char *uni_xen_fate(const struct uni_xen_dominfo *d);

#endif
