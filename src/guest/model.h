/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a model of a guest's threads; for the files of this folder. */
#ifndef UNI_GUEST_MODEL_H
#define UNI_GUEST_MODEL_H

#include "guest/guest.h"
#include "obj/members.h"

#define UNI_MODEL_SYMS 4 /* symbols of one model */

/* A structure of the guest and its members that are read; an entry with tag NULL ends the table. */
struct uni_model_struct {
	const char *tag; /* "?" in front: the guest may be built without it */
	size_t nr;
	const char *const *paths; /* "?" in front: may be missing */
};

struct uni_model {
	const struct uni_guest_ops *ops;
	const struct uni_arch *arch;
	uint64_t bias;
	uint64_t sym[UNI_MODEL_SYMS]; /* addresses in the guest */
	uint64_t sym_size[UNI_MODEL_SYMS];
	struct uni_member *member; /* of all structures, one after the other */
	void *own; /* of the model itself, ops->own_size bytes; walks may change it */
};

/* The state of a walk: the space, the vCPUs, and the threads found so far. */
struct uni_look {
	const struct uni_model *m;
	struct uni_as *as;
	const struct uni_regs *regs; /* of nr_vcpus */
	uint32_t nr_vcpus;
	struct uni_thread_list *list; /* NULL: only one thread is looked at */
	unsigned steps;		      /* left */
};

struct uni_guest_ops {
	const char *name;
	const char *title;		  /* for messages: "Unikraft" */
	bool no_stacks;			  /* its threads have none, and are on no vCPU */
	bool goes_on;			  /* but it is known where each will go on */
	const char *syms[UNI_MODEL_SYMS]; /* an image that has the first two symbols is of this
					     guest; it must have the others as well, but for
					     those with "?" in front (sym: 0) */
	const struct uni_model_struct *structs;
	/* Layouts of the published structures, for images without debug data; NULL: none. */
	const struct uni_member *known;
	/* For models that need more: room of their own, zeroed, and what fills it. The image
	 * outlives the model. */
	size_t own_size;
	void (*prepare)(struct uni_model *m, const struct uni_image *img);
	/* Calls uni_look_add() for each thread. */
	void (*each)(struct uni_look *look);
	/*
	 * Reads the structure at t->object; false: it cannot be read. Without a list, t->regs is
	 * not needed.
	 */
	bool (*read)(struct uni_look *look, struct uni_guest_thread *t);
	/* The thread that a vCPU runs; 0: none, or not known. */
	uint64_t (*current)(struct uni_look *look, uint32_t vcpu);
};

/* In the order in which they are tried on an image; ends with NULL. */
extern const struct uni_guest_ops *const uni_guest_models[];

/* Reads 8 bytes, or as many as the member has (at most 8), little endian. */
bool uni_look_u64(struct uni_look *look, uint64_t at, uint64_t *ret);
/* Reads member number `member` of the structure at `at`; false: not there, or not readable. */
bool uni_look_member(struct uni_look *look, uint64_t at, unsigned member, uint64_t *ret);
/* The member's address; 0 if that wraps. */
uint64_t uni_look_at(const struct uni_look *look, uint64_t at, unsigned member);
/* Reads text of at most max bytes, up to the first NUL, and cleans it. */
void uni_look_text(struct uni_look *look, uint64_t at, size_t max, char *ret, size_t cap);
/* Adds a thread; false: the walk ends here (a loop, no room, too many steps, or not readable). */
bool uni_look_add(struct uni_look *look, uint64_t object);
/* The list may lack threads: notes the first reason. Returns false. */
bool uni_look_cut(struct uni_look *look, enum uni_threads_cut why);
/* Walks a list whose member `next` has the address of the next object; 0 or `end` ends it. */
void uni_look_list(struct uni_look *look, uint64_t first, unsigned next);
/*
 * Fills t->regs with the saved pc and sp and the registers that the code at pc restores from the
 * stack.
 */
void uni_look_saved(struct uni_look *look, uint64_t pc, uint64_t sp, struct uni_guest_thread *t);
/* Makes t->regs empty, but of this guest's address space. */
void uni_look_blank(const struct uni_look *look, struct uni_guest_thread *t);

#endif
