/* SPDX-License-Identifier: BSD-2-Clause */
/* From the words of a command line to an attached, checked guest that can be unwound. */
#ifndef UNI_APP_ATTACH_H
#define UNI_APP_ATTACH_H

#include "base/err.h"
#include "base/privilege.h"
#include "base/vec.h"
#include "app/options.h"
#include "mem/as.h"
#include "obj/image.h"
#include "obj/sites.h"
#include "obj/skid.h"
#include "obj/usym.h"
#include "sampling/check.h"
#include "sampling/locate.h"
#include "backend/guard.h"
#include "backend/target.h"
#include "unwind/unwind.h"

struct uni_attach_args {
	const char *target; /* spec, pid or name */
	const char *image;  /* -e: ELF or table of symbols; NULL: from the VMM's command line */
	const char *table;  /* of symbols, besides the image; NULL: none */
	const char *qmp;    /* QMP socket, or NULL */
	bool exits;	    /* VM exits are wanted: only the kernel sees them */
	bool threads;	    /* all threads are wanted: only a stopped guest's are a whole list */
	const char *method; /* "bpf", "pause"; "auto" or NULL: the best there is */
	bool no_pause;	    /* the guest may not be stopped at all */
	bool once;	    /* registers are read once, now: no kernel can do that for us */
	bool stopped;	    /* registers and memory of a moment are wanted, again and again */
	struct uni_target_shared *shared; /* with other guests of this run, or NULL */
	uint64_t wait_ns; /* how long to try again while the guest still boots; 0 = one try */
	/* CPU time of the VMM for which a booting guest's image must stay where it is; 0: two looks
	 */
	uint64_t settle_ns;
	bool await_run; /* a guest that does not run yet is waited for, however long that takes */
	bool (*ended)(void *ctx); /* the guest is gone, and waiting is useless; NULL: not known */
	/* The same without a question to the VMM, while the guest is being attached; NULL: not
	 * known. */
	bool (*over)(void *ctx);
	void *ended_ctx;   /* for both */
	bool may_give_up;  /* it is only sampled: rights may be given up before its image is read */
	bool exits_too;	   /* VM exits are counted if that is possible */
	bool rest_ok;	   /* a guest that its VMM has paused will do */
	bool no_samples;   /* nothing is sampled */
	bool writes;	   /* into the guest, besides */
	bool inside_ok;	   /* the guest's own recording is enough: no registers, no memory */
	bool accept_image; /* of another build, too */
	bool no_image_ok;  /* go on without an image (addresses stay unnamed) */
	struct uni_image_search search;
	const struct uni_opt_list *sysroot; /* --sysroot; NULL: none */
	const char *unwind;		    /* "cfi,fp,scan", or NULL: all of them */
};

struct uni_finder;
struct uni_inside;

struct uni_guest {
	struct uni_spec spec;
	struct uni_target *t;
	struct uni_target_info info;
	struct uni_image *image;   /* NULL: none */
	struct uni_symtab *symtab; /* -e was a table of symbols; NULL: they are the image's */
	struct uni_symtab *kernel; /* of the kernel below a process, at their places; NULL: none */
	struct uni_sites *sites; /* of the image, where its code may be patched; NULL: not asked */
	uint64_t bias;
	bool accept_image; /* of another build, too */
	bool awaited;	   /* it did not run at first (await_run) */
	bool searched;	   /* the user was told that all of its memory is read for the image */
	bool saved;	   /* all that is read of it is saved: little is compared */
	char checked[256]; /* how its image was compared with its memory; "" it was not */
	/* why it runs another build, so that names are not used; "" it does not */
	char stale[512];
	struct uni_difference differ;		 /* of the image, while the guest is attached */
	struct uni_located more[UNI_IMAGES_MAX]; /* other images that were found in its memory */
	size_t nr_more;
	size_t other_ids; /* files in its memory that have another build-id than its image, which
			     was looked for; 0: one has that */
	struct uni_finder *finder; /* where images may come from (images.c); NULL: nowhere */
	struct uni_inside *inside; /* of a guest whose memory is not read: inside.h; NULL: none */
	struct uni_unwind_hints chain[UNI_IMAGES_MAX]; /* of all images, if there are several */
	const struct uni_unwind_hints *hints;	       /* NULL: none */
	struct uni_skid skid;			       /* of QEMU's TCG, of all images at once */
	UNI_VEC(struct uni_skid_code) skid_code;       /* that it was read from */
	struct uni_unwinder unwinder;
	char why[128]; /* it is not sampled in the best way that the target has, "" it is */
	struct uni_target_shared *shared; /* owned; NULL: none, or somebody else's */
};

#define UNI_NO_PAUSE_OPTION(v)                                                                   \
	{                                                                                        \
		0, "no-pause", UNI_OPT_FLAG, &(v), NULL,                                         \
			"never stop the guest: xen: reads its stack while it runs (a chain may " \
			"break, and is marked then), kvm: needs method bpf, gdb: cannot",        \
			NULL, NULL                                                               \
	}

#define UNI_ACCEPT_IMAGE_OPTION(v)                                                            \
	{                                                                                     \
		0, "accept-image", UNI_OPT_FLAG, &(v), NULL,                                  \
			"take the image (-e) although the guest runs other code, as after a " \
			"rebuild: its names and callers may be wrong",                        \
			NULL, NULL                                                            \
	}

#define UNI_UNWIND_OPTION(v)                                                                     \
	{                                                                                        \
		0, "unwind", UNI_OPT_STR, &(v), "LIST",                                          \
			"how callers are found, tried in this order: cfi (call frame "           \
			"information), fp (frame pointers), scan (guesses, marked so); default " \
			"cfi,fp,scan",                                                           \
			NULL, NULL                                                               \
	}

/* Resolves, loads, attaches, checks the image against guest memory. g may not move afterwards. */
int uni_guest_open(struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);
bool uni_guest_is_tcg(const struct uni_guest *g); /* does QEMU's TCG run it? skids.c */
/* On stderr: how many of its vCPUs (a process: threads) are not among those that are reached. */
void uni_note_left_off(const char *spec, unsigned left_off, unsigned all);
void uni_guest_close(struct uni_guest *g); /* detaches; fine on a zeroed struct */

/* Does the guest run its image (g->differ)? uni_guest_open() has asked this. */
int uni_guest_check_image(struct uni_guest *g, struct uni_err *err);
/* Drops names of code that differs from its images, with a message. After this they do not
 * change. */
int uni_guest_settle_images(struct uni_guest *g, struct uni_err *err);

/* With which rights a guest can be opened and sampled. */
enum uni_guest_rights {
	UNI_GUEST_ALL,	 /* those of this process */
	UNI_GUEST_NONE,	 /* base/privilege.h */
	UNI_GUEST_OWNER, /* those of its VMM's user; for a single guest */
};
struct uni_guest_plan {
	enum uni_guest_rights rights;
	struct uni_watched watched; /* with none */
	int pid;		    /* of the VMM with an owner */
};

/*
 * Finds that out, and makes what has to be made with rights. An error: the guest cannot be opened,
 * and must not be with rights.
 */
int uni_guest_plan_rights(const struct uni_spec *spec, const struct uni_attach_args *args,
	struct uni_guest_plan *ret, struct uni_err *err);
/*
 * Gives up all rights of this process for good, if all of these guests can be opened and sampled
 * without (base/privilege.h). Otherwise does nothing. Returns an error only if giving up has
 * failed.
 */
int uni_guests_give_up_rights(const struct uni_guest_plan *plan, size_t nr, struct uni_err *err);
/* Both, for one guest. */
int uni_guest_give_up_rights(
	const struct uni_spec *spec, const struct uni_attach_args *args, struct uni_err *err);
/*
 * For the one guest of a command: finds it, gives up what is not needed for it, and opens it. Call
 * it before there are threads. args->shared is left alone.
 */
int uni_guest_open_only(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);

/*
 * Registers of these vCPUs for a look at memory. If memory can only be read, or registers be had,
 * from a guest that stands, it is held; the caller ends the pause either way.
 */
int uni_guest_look(struct uni_guest *g, struct uni_pause *p, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret, struct uni_err *err);

/* uni_pause_begin() for a single look. Tries for up to two seconds while vCPUs cannot be read, or
 * another tool holds them. err may be NULL. */
int uni_guest_hold(struct uni_guest *g, struct uni_pause *p, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret, struct uni_err *err);

#endif
