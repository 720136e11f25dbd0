/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts for the conformance suite from outside the target under test: the image's code and symbols,
 * and whether the guest makes progress. They are read out of the VMM's process. If there is none, a
 * second attachment reads them, which never stops the guest.
 */
#ifndef UNI_TESTS_OBSERVE_H
#define UNI_TESTS_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/as.h"
#include "mem/gmem.h"
#include "backend/target.h"

#define OBSERVE_TEXT_MAX 8

struct observer {
	uint8_t *file; /* the image */
	size_t file_size;
	struct uni_text_hint text[OBSERVE_TEXT_MAX];
	size_t nr_text;
	uint64_t text_gva, text_size; /* hull of the code */
	uint64_t heartbeat_gva;	      /* 0: the image has no lab_truth */
	uint64_t heartbeat_gpa;
	int pid;
	struct uni_gmem *ram;	  /* of the VMM, or NULL */
	struct uni_target *other; /* the second attachment, or NULL */
	struct uni_as *as;	  /* of that one */
	struct uni_pt_root root;  /* that the guest runs on */
};

/* False (and a message on stderr) when the image cannot be read. */
bool observer_load(struct observer *o, const char *path);
/* Finds the guest's RAM in the VMM; false when it cannot be found. */
bool observer_attach(struct observer *o, int pid);
/* Attaches a second time. False, and a message on stderr, when that does not work. */
bool observer_attach_beside(struct observer *o, const char *target);
void observer_deinit(struct observer *o);
/* Can it tell whether the guest runs? */
bool observer_sees(const struct observer *o);

/* The guest's own count of progress. */
bool observer_heartbeat(struct observer *o, uint64_t *ret);
/* Does it rise within the time? */
bool observer_runs(struct observer *o, unsigned timeout_ms);
/* Does it stay the same for that time? */
bool observer_stands(struct observer *o, unsigned ms);

#endif
