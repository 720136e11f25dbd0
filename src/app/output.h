/* SPDX-License-Identifier: BSD-2-Clause */
/* No output over what it is made of. */
#ifndef UNI_APP_OUTPUT_H
#define UNI_APP_OUTPUT_H

#include "app/options.h"

/*
 * Is a file that an UNI_OPT_OUTPUT names one of the inputs (operands, and options whose words are
 * "FILE"), by whatever name or link, or a file that lies in one of them, a session's folder? Then
 * -UNI_EUSAGE. "-" is none, and neither are devices and pipes.
 */
int uni_output_check(const struct uni_opt *opts, const char *const *operands, size_t nr_operands,
	struct uni_err *err);

#endif
