/* SPDX-License-Identifier: BSD-2-Clause */
/* What a model of a guest's threads is made of; for the files of this folder. */
#ifndef UNI_GUEST_MODEL_H
#define UNI_GUEST_MODEL_H

#include "guest/guest.h"
#include "obj/members.h"

#define UNI_MODEL_SYMS 4 /* of one model */

/* A structure of the guest and what of it is looked at; a terminating tag is NULL. */
struct uni_model_struct {
	const char *tag;
	size_t nr;
	const char *const *paths; /* "?" in front: may be missing */
};

struct uni_model {
	const struct uni_guest_ops *ops;
	const struct uni_arch *arch;
	uint64_t bias;
	uint64_t sym[UNI_MODEL_SYMS]; /* addresses in the guest */
	uint64_t sym_size[UNI_MODEL_SYMS];
	struct uni_member *member; /* of all structures, one behind the other */
};

/* Where a walk is: the space, the vCPUs, and what was found so far. */
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
	const char *syms[UNI_MODEL_SYMS]; /* symbols; an image that has the first two is of this
					     guest, and the others must be there as well */
	const struct uni_model_struct *structs;
	/* Structures as they were published, for images without debug data; NULL: none. */
	const struct uni_member *known;
	/* Each thread by uni_look_add(). */
	void (*each)(struct uni_look *look);
	/* What is at t->object; false: it cannot be read. Without a list, no regs are wanted. */
	bool (*read)(struct uni_look *look, struct uni_guest_thread *t);
	/* The thread that a vCPU runs; 0: none, or not known. */
	uint64_t (*current)(struct uni_look *look, uint32_t vcpu);
};

/* In the order in which an image is asked for them; ends with NULL. */
extern const struct uni_guest_ops *const uni_guest_models[];

/* Reads are of 8 bytes, or as many as the member has (at most 8), little endian. */
bool uni_look_u64(struct uni_look *look, uint64_t at, uint64_t *ret);
/* Member number `member` of the model, of the structure at `at`; false: not there, or not read. */
bool uni_look_member(struct uni_look *look, uint64_t at, unsigned member, uint64_t *ret);
/* Its address; 0 if that wraps. */
uint64_t uni_look_at(const struct uni_look *look, uint64_t at, unsigned member);
/* Text of at most max bytes, ended by a NUL if there is one before, cleaned. */
void uni_look_text(struct uni_look *look, uint64_t at, size_t max, char *ret, size_t cap);
/*
 * Adds a thread; false: the walk ends here (a loop, no room, too many steps, or it cannot be read).
 */
bool uni_look_add(struct uni_look *look, uint64_t object);
/* A list linked by a member that has the address of the next object; 0 or `end` ends it. */
void uni_look_list(struct uni_look *look, uint64_t first, unsigned next);
/* For t->regs: pc and sp as the guest saved them, and what the code there takes off the stack. */
void uni_look_saved(struct uni_look *look, uint64_t pc, uint64_t sp, struct uni_guest_thread *t);
/* t->regs is a blank of this guest's address space. */
void uni_look_blank(const struct uni_look *look, struct uni_guest_thread *t);

#endif
