/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a guest that `run` has booted, as its VMM reports it by QMP. */
#ifndef UNI_APP_BOOT_H
#define UNI_APP_BOOT_H

#include "app/qemu.h"
#include "obj/image.h"
#include "backend/vmm/qmp.h"

enum uni_boot_end {
	UNI_BOOT_GOES_ON,
	UNI_BOOT_SHUTDOWN, /* it switched itself off */
	UNI_BOOT_RESET,	   /* by itself: a reboot, or a triple fault */
	UNI_BOOT_PANIC,	   /* it reported this to its panic device */
	UNI_BOOT_INTERNAL, /* KVM gave up: "internal error" */
	UNI_BOOT_OUTSIDE,  /* ended from outside: by a monitor, a signal */
	UNI_BOOT_EXITED,   /* QEMU's process ended */
	UNI_BOOT_HALTED,   /* all vCPUs in its image, or before their start: no interrupt wakes them
			    */
	UNI_BOOT_ASTRAY,   /* it executes where it has no memory */
	UNI_BOOT_STUCK,	   /* in its firmware, where nothing changes any more */
	UNI_BOOT_LATE,	   /* in its firmware for longer than was to be waited */
};

struct uni_boot {
	struct uni_qemu *q;
	const struct uni_image *image;	   /* borrowed, for names; NULL: not known (yet) */
	const struct uni_segment *segment; /* the image's, borrowed */
	size_t nr_segments;
	void (*read_image)(struct uni_boot *b); /* sets image, if it is NULL; may be NULL */
	const char *name;			/* of the image's file */
	const char *console;
	bool quiet;
	bool ran; /* the guest has executed the image, as far as is known */
	enum uni_boot_end end;
	uint64_t begin_ns, begin_wall_ns; /* when it was let go */
	uint64_t end_ns;		  /* after begin: when it ended */
	char reason[48];		  /* OUTSIDE: QEMU's word for it */
	int status;			  /* EXITED: QEMU's wait status */
	struct uni_qmp_cpu cpu;		  /* vCPU 0, when it was last looked at */
	bool has_cpu, watched, said_waiting;
	bool stopped; /* the VMM holds it, be it for a sample */
	bool held;    /* for another reason */
	bool frozen;  /* a signal (SIGSTOP) has stopped QEMU, which answers nothing then */
	uint64_t frozen_look_ns;
	/* A vCPU is about to stop for us: QEMU is asked nothing that this vCPU has to answer. */
	bool unsettled;
	uint64_t stop_ns;
	uint64_t look_ns, look_cpu_ns; /* when it was last looked whether it has halted for good */
	uint64_t halted_key;	       /* of the registers then, if it had; else 0 */
	unsigned nr_astray; /* looks in a row at which it executed where it has no memory */
	unsigned nr_same;   /* looks in a row at which no register had changed */
	uint64_t same_cpu_ns;
};

/* q was started and waits: lets the guest run. */
int uni_boot_begin(struct uni_boot *b, struct uni_err *err);
/* Waits until the guest executes its image: 0. Otherwise -UNI_EGONE (uni_boot_tell() describes the
 * end), -UNI_ETIMEDOUT after wait_ns, or -UNI_EAGAIN when the user ended it. */
int uni_boot_wait(struct uni_boot *b, uint64_t wait_ns, struct uni_err *err);
/* Takes the events since the last call. True: the guest has ended. */
bool uni_boot_ended(struct uni_boot *b);
/* Is it clear that it has ended, or does its VMM hold it, which uni_boot_ended() would look into?
 * Asks the VMM nothing: one of its vCPUs may be stopped. */
bool uni_boot_over(struct uni_boot *b);
/* Does it run? According to the last uni_boot_ended(). */
bool uni_boot_awake(const struct uni_boot *b);
/* Has it ended before its image ran? False, too, if QEMU is gone and nothing tells. */
bool uni_boot_never_ran(const struct uni_boot *b);
/* How it ended, as one line that begins with "the guest" or with "KVM". */
void uni_boot_tell(struct uni_boot *b, char *ret, size_t cap);

#endif
