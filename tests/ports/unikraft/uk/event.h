/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#define UK_EVENT_NOT_HANDLED	   0
#define UK_EVENT_HANDLED	   1
#define UK_EVENT_HANDLER(event, f) int (*const handles_##f)(void *) = (f)
