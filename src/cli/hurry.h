/* SPDX-License-Identifier: BSD-2-Clause */
/* Going before others while guests stand still for us. */
#ifndef UNI_CLI_HURRY_H
#define UNI_CLI_HURRY_H

#include <stdbool.h>

/*
 * A guest stands still for as long as the sampling thread waits for a CPU, so that thread goes
 * before all others: it sleeps nearly always and each pause is bounded. Without the right to that,
 * pauses are longer on a busy host, and the report says so. For the calling thread.
 */
void uni_hurry(bool on);

#endif
