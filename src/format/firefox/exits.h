/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the exporter for Firefox: VM exits as markers, in a thread for each vCPU. */
#ifndef UNI_FORMAT_FIREFOX_EXITS_H
#define UNI_FORMAT_FIREFOX_EXITS_H

#include "base/json.h"
#include "base/strtab.h"
#include "format/exits.h"

struct uni_firefox_exits {
	struct uni_exit_rows rows;
	uint32_t *name_of; /* by frame: its place in the string table */
};

/* Adds their names to strings. Deinit in any case. */
int uni_firefox_exits_init(struct uni_firefox_exits *x, const struct uni_view *v,
	struct uni_strtab *strings, struct uni_err *err);
void uni_firefox_exits_deinit(struct uni_firefox_exits *x);
/* "markerSchema": how they are shown. */
void uni_firefox_exits_schema(struct uni_json *j);
/* "markers" of a lane; UINT32_MAX: none. */
void uni_firefox_exits_markers(const struct uni_firefox_exits *x, struct uni_json *j, uint32_t lane,
	uint64_t begin_ns, unsigned category);

#endif
