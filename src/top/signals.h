/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals as flags that the main thread looks at. */
#ifndef UNI_TOP_SIGNALS_H
#define UNI_TOP_SIGNALS_H

#include <stdbool.h>

/*
 * Ctrl-C, termination and a closed terminal ask for the end, Ctrl-Z for a stop. A closed pipe is an
 * error of write() and no signal. Valid until _restore(); call it again if a library has changed
 * them in the meantime.
 */
void uni_top_signals_take(void);
void uni_top_signals_restore(void);
bool uni_top_asked_to_end(void);
bool uni_top_asked_to_suspend(void); /* once for each time */

#endif
