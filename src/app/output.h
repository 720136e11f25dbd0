/* SPDX-License-Identifier: BSD-2-Clause */
/* Prevents output from replacing its own input. */
#ifndef UNI_APP_OUTPUT_H
#define UNI_APP_OUTPUT_H

#include "app/options.h"

/*
 * Is a file of an UNI_OPT_OUTPUT one of the inputs (operands, and options whose words are "FILE")?
 * Links and other names of an input count, too, and files in an input folder (a session). Then
 * returns -UNI_EUSAGE. "-" is no input, and neither are devices and pipes.
 */
int uni_output_check(const struct uni_opt *opts, const char *const *operands, size_t nr_operands,
	struct uni_err *err);

#endif
