/* SPDX-License-Identifier: BSD-2-Clause */
/* `run` of an image that is linked for one of Solo5's tenders: starts it, or tells the command. */
#ifndef UNI_APP_TENDER_H
#define UNI_APP_TENDER_H

#include "app/record.h"
#include "obj/solo5.h"

struct uni_tender_args {
	const struct uni_solo5 *notes;
	const char *image;
	const char *append;  /* the guest's command line, or NULL */
	const char *console; /* file for what the guest and its tender write */
	uint64_t mem_bytes;
	char *const *extra;	       /* options of the tender, or NULL */
	struct uni_attach_args attach; /* target, ended and ended_ctx are set here */
	struct uni_record_args *rec;   /* ended, judge and ctx are set here */
};

/* "solo5-hvt", "solo5-spt"; NULL: images of this binding have no tender that runs as a process. */
const char *uni_tender_of(uint32_t binding);
int uni_tender_run(const struct uni_tender_args *args, struct uni_err *err);

#endif
