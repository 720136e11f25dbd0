/* SPDX-License-Identifier: BSD-2-Clause */
/* Boots an image under QEMU for `run`, and makes sure that it ends with us. */
#ifndef UNI_APP_QEMU_H
#define UNI_APP_QEMU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "app/child.h"
#include "app/scratch.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "backend/vmm/qmp.h"

struct uni_qemu_args {
	const char *image;     /* booted by QEMU's loader, unless there is a disk */
	const char *disk;      /* raw image that the firmware boots, and with it `image`; or NULL */
	const char *accel;     /* "kvm", "tcg", "auto" */
	const char *accel_why; /* reason if it was chosen; NULL: the user asked for it */
	const char *machine;   /* "q35", ...; NULL: by the image */
	const char *cpu;       /* NULL: host for KVM, max for TCG */
	const char *append;    /* guest command line, or NULL */
	const char *console;   /* file for the serial console */
	const char *program;   /* NULL: by the image, qemu-system-x86_64 or its like */
	uint64_t mem_bytes;
	uint64_t vcpus;
	char **extra;	    /* more QEMU arguments, or NULL */
	const char *plugin; /* TCG plugin with its options, or NULL */
	bool disk_replays;  /* its answers go through QEMU's record and replay (-icount rr=) */
};

struct uni_qemu_kind;

struct uni_qemu {
	pid_t pid;
	char dir[64];		 /* private folder with the sockets of gdb stub and monitor */
	struct uni_scratch keep; /* removes it if we are killed */
	char target[128];	 /* spec that reaches it */
	const struct uni_qemu_kind *kind;
	const char *accel; /* what auto became */
	const char *accel_why;
	const char *machine;
	struct uni_qmp *qmp;
	const struct uni_child_fate *fate; /* borrowed; NULL: this process started it */
};

/* On success the guest waits for uni_qmp_cont(). */
int uni_qemu_start(const struct uni_qemu_args *args, struct uni_qemu *ret, struct uni_err *err);
/* As uni_child_ended() and uni_child_ending(), in either process. */
bool uni_qemu_ended(struct uni_qemu *q, int *status_ret);
bool uni_qemu_ending(struct uni_qemu *q, int *status_ret);
void uni_qemu_stop(struct uni_qemu *q); /* ends it and removes its folder; idempotent */

/* The program that boots this host's own images, and the package that has it. */
const char *uni_qemu_native(const char **package_ret);
/* May this user boot guests with KVM? why_ret: the reason in both cases. */
bool uni_qemu_has_kvm(const char **why_ret);

/* Adds a value to one of QEMU's options, which end at commas that are not doubled. */
void uni_qemu_add_value(struct uni_strbuf *b, const char *value);

/* Did it end by isa-debug-exit, which only a guest does? */
bool uni_qemu_was_debug_exit(const struct uni_qemu *q, int status);

#endif
