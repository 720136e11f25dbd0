/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals while a guest is sampled. A signal that ends a process ends the run cleanly, a second
 * Ctrl-C ends it at once, and Ctrl-Z waits until no guest is held. The only process-wide state. */
#ifndef UNI_APP_SIGNALS_H
#define UNI_APP_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define UNI_SIGNALS 5

struct uni_signals {
	struct sigaction old[UNI_SIGNALS];
};

/* Forgets earlier requests, unless it is called within another begin and end. */
void uni_signals_begin(struct uni_signals *s);
void uni_signals_end(struct uni_signals *s);
/* Set once the run was asked to end; for uni_sampler_cfg.stop. */
const atomic_bool *uni_signals_stop(void);
/* As if a signal had asked for it. */
void uni_signals_ask_to_stop(void);
/* Takes that back for another try. False: the user asked for it, too, and so it stays. */
bool uni_signals_go_on(void);
/* Ctrl-Z was pressed: uni_signals_suspend() would stop the process. */
bool uni_signals_is_suspending(void);
/* Stops the process if that was asked for, with the gate (uni_sampler_cfg.gate) closed. */
void uni_signals_suspend(pthread_rwlock_t *gate);

/* A gate for stopping the process: its writer does not wait forever for guests that are held in
 * turn. */
void uni_signals_init_gate(pthread_rwlock_t *gate);

#endif
