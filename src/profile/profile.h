/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An aggregate: frames, and a call tree of them with self and total values. Recordings and imports
 * make it; reports and exporters read it. It is compact, because 1,000,000 distinct stacks are
 * usual: a node has 32 bytes (16 more with a second column). A child is found by looking at the
 * first one, then in a hash of (parent, frame) that holds only children with siblings.
 */
#ifndef UNI_PROFILE_PROFILE_H
#define UNI_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memo.h"
#include "base/strtab.h"

#define UNI_NODE_NONE UINT32_MAX
#define UNI_NODE_ROOT 0u

enum uni_frame_kind {
	UNI_FK_GUEST,	  /* a function of the guest */
	UNI_FK_UNKNOWN,	  /* an address without a name */
	UNI_FK_SYNTHETIC, /* ours: [kvm], [vmm], [truncated] */
	UNI_FK_INLINED,
	UNI_FK_KERNEL, /* of the kernel below a process: its name ends in UNI_KERNEL_MARK */
};

#define UNI_KERNEL_MARK	 "_[k]"
#define UNI_KERNEL_IMAGE "[kernel.kallsyms]"

/* The kind according to a bare name: bracketed ones ("[truncated]") are not functions. */
enum uni_frame_kind uni_frame_kind_of(const char *name);

struct uni_frame {
	uint32_t name;	/* string: cleaned, without offset */
	uint32_t image; /* string: short image name, 0 = none */
	uint32_t file;	/* string, 0 = none */
	uint32_t line;	/* 0 = none */
	uint32_t plain; /* string: the name without the line or mark in it; 0 = it is the name */
	uint64_t addr;	/* for UNI_FK_UNKNOWN, else function start, 0 = none */
	uint8_t kind;	/* enum uni_frame_kind */
	bool guess;	/* it was guessed, and may be wrong: its name ends in " ?" */
	double own;	/* value of the samples that ended in it; 0: nobody counted */
	double unsure;	/* of these, that may be its caller's or callee's (UNI_FRAME_UNSURE) */
};

struct uni_node {
	uint32_t frame; /* index into frames; the root's is UNI_NODE_NONE */
	uint32_t parent;
	uint32_t child; /* first child, UNI_NODE_NONE */
	uint32_t next;	/* next sibling, UNI_NODE_NONE */
	double self;	/* value that ended here */
	double total;	/* self and all below: after uni_profile_finish() */
};

struct uni_profile;

struct uni_profile *uni_profile_create(void); /* NULL: out of memory */
void uni_profile_destroy(struct uni_profile *p);

/* Interns; UNI_NODE_NONE when out of memory. */
uint32_t uni_profile_frame(struct uni_profile *p, const struct uni_frame *f);
/* Shorthand for a frame with only a name. */
uint32_t uni_profile_frame_named(
	struct uni_profile *p, const char *name, size_t len, enum uni_frame_kind kind);
void uni_profile_add_own(struct uni_profile *p, uint32_t frame, double own, double unsure);
struct uni_strtab *uni_profile_strings(struct uni_profile *p);
/* For importers: frames that are nothing but a name, by texts that are in the strings. */
struct uni_memo *uni_profile_names(struct uni_profile *p);
size_t uni_profile_nr_strings(const struct uni_profile *p);

/* frames root first. Adds value to the leaf's self; value2 is the second column of a diff. A stack
 * that shares a prefix with the one before is cheapest. */
int uni_profile_add(
	struct uni_profile *p, const uint32_t *frames, size_t nr, double value, double value2);
/*
 * From now on stacks are only kept, and uni_profile_finish() makes the tree of them at once, with
 * less work where most are distinct. The numbers of nodes are in the order of the tree then, not in
 * that of coming. Called before anything is added; nothing but whole stacks may be.
 */
void uni_profile_pile_up(struct uni_profile *p);
bool uni_profile_piles_up(const struct uni_profile *p);
/* The last node of the stack added last; its number never changes. */
uint32_t uni_profile_last(const struct uni_profile *p);
/* The child of `parent` with that frame, made if it is not there; UNI_NODE_NONE: out of memory. */
uint32_t uni_profile_child(struct uni_profile *p, uint32_t parent, uint32_t frame);
void uni_profile_add_self(struct uni_profile *p, uint32_t node, double value, double value2);

/* Computes totals, orders children by frame name (byte order). Call once, before any reading;
 * nothing may be added afterwards. */
int uni_profile_finish(struct uni_profile *p);

size_t uni_profile_nr_nodes(const struct uni_profile *p);
size_t uni_profile_nr_frames(const struct uni_profile *p);
const struct uni_node *uni_profile_node(const struct uni_profile *p, uint32_t i);
const struct uni_frame *uni_profile_get_frame(const struct uni_profile *p, uint32_t i);

/*
 * Every output marks a function that is unsure. The mark is the same wherever it stands, and is
 * that of all its samples, also if some of them are left out below.
 */
#define UNI_UNSURE_PERCENT 10.0 /* fewer bend no share by much */
#define UNI_UNSURE_MARK	   " ~"
#define UNI_UNSURE_MEANS                                                                          \
	"over 10 % of its own samples may be of its caller, its callee, or code that leads into " \
	"it"
bool uni_frame_is_unsure(const struct uni_frame *f);
/* UNI_UNSURE_MARK or ""; of UNI_NODE_NONE, too. */
const char *uni_profile_mark(const struct uni_profile *p, uint32_t frame);

const char *uni_profile_str(const struct uni_profile *p, uint32_t str);
const char *uni_profile_str_len(const struct uni_profile *p, uint32_t str, size_t *len_ret);
const char *uni_profile_node_name(
	const struct uni_profile *p, uint32_t node); /* "all" for the root */
/*
 * Second column (differential): "before" is the first, "after" the second. On from the first
 * value2 that is not 0, or at once by uni_profile_enable_second(). Getters give 0 without one.
 */
int uni_profile_enable_second(struct uni_profile *p);
/* Everything added so far becomes the second column; later values are the first. For a difference
 * of two inputs in one tree. */
int uni_profile_to_second(struct uni_profile *p);
/* Before the end: scales the first column's total to the second's, if neither is 0. */
void uni_profile_scale_first(struct uni_profile *p);
bool uni_profile_has_second(const struct uni_profile *p);
double uni_profile_self2(const struct uni_profile *p, uint32_t node);
double uni_profile_total2(const struct uni_profile *p, uint32_t node);
double uni_profile_total(const struct uni_profile *p);
/* The sum of both columns that uni_profile_hide() left out. */
double uni_profile_hidden(const struct uni_profile *p);
/* Frames from the root to the node, the root itself not counted; O(depth). */
size_t uni_profile_depth(const struct uni_profile *p, uint32_t node);

/* A finished copy with each stack turned over: callees at the root. */
int uni_profile_reversed(const struct uni_profile *p, struct uni_profile **ret);

/*
 * For trees in which siblings may have the same frame, in an order of their own. Adds a new last
 * child; `before` is its left neighbour or UNI_NODE_NONE. Such a tree is finished as it is, and no
 * other function makes children in it.
 */
uint32_t uni_profile_append(
	struct uni_profile *p, uint32_t parent, uint32_t before, uint32_t frame);
void uni_profile_finish_as_is(struct uni_profile *p);

/* The added stacks, one by one and in order: for flame charts. */
struct uni_profile_entry {
	uint32_t node;
	double value, value2;
};
/* To be kept from now on. */
void uni_profile_keep_log(struct uni_profile *p);
/* Borrowed; *nr_ret 0 if it was not kept. */
const struct uni_profile_entry *uni_profile_log(const struct uni_profile *p, size_t *nr_ret);
/* A finished copy with children in the order of these entries of p, left to right. Only neighbours
 * with the same callers are merged. A child with the name "" is its caller's self time. */
int uni_profile_chart(const struct uni_profile *p, const struct uni_profile_entry *entry, size_t nr,
	struct uni_profile **ret);

/* The unit of the values: "samples", "us". */
void uni_profile_set_unit(struct uni_profile *p, const char *unit);
const char *uni_profile_unit(const struct uni_profile *p);

/* Per function, over the whole tree; recursion counts once in total. */
struct uni_func_row {
	uint32_t frame;
	double self, total;
	double self2, total2;
};
/* Sorted by self, then total, then name. Owned by the caller. */
int uni_profile_functions(const struct uni_profile *p, struct uni_func_row **ret, size_t *nr_ret);
/* The same over the nodes at and below `node` only. */
int uni_profile_functions_below(
	const struct uni_profile *p, uint32_t node, struct uni_func_row **ret, size_t *nr_ret);

#endif
