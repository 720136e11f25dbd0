/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#include <stdio.h>
#define uk_pr_err(...) (void)fprintf(stderr, __VA_ARGS__)
