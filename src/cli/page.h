/* SPDX-License-Identifier: BSD-2-Clause */
/* `report --html`: whatever FILE is, as one page. */
#ifndef UNI_CLI_PAGE_H
#define UNI_CLI_PAGE_H

#include "cli/source.h"

/*
 * output "-": standard output. before: a file to compare with, without times; or NULL. What FILE
 * lacks is said on stderr.
 */
int uni_page_report(
	struct uni_source_args *args, const char *before, const char *output, struct uni_err *err);

#endif
