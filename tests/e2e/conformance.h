/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of the conformance suite (conformance.c says what it is). */
#ifndef UNI_TESTS_CONFORMANCE_H
#define UNI_TESTS_CONFORMANCE_H

#include "observe.h"

struct suite {
	struct uni_spec spec;
	struct uni_attach_opts opts;
	struct observer obs;
	const char *tell;   /* file that is made when a victim has reached its state, or NULL */
	int vmm;	    /* pid, 0 unknown */
	const char *domain; /* of Xen, to be destroyed in place of the VMM, or NULL */
	unsigned nr, failed;
};

/* One TAP line. */
bool check(struct suite *s, bool ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void skip(struct suite *s, const char *what, const char *why);

/* A guest from a file: it never runs. */
bool is_file(const struct suite *s);
/* One that holds only what was once looked at, moment after moment. */
bool is_recording(const struct suite *s);

/* Which of HOLD and SYSREGS such a target has in the lab, whatever it says itself. */
unsigned caps_wanted(const struct suite *s);

/* NULL (and a failed check) when it cannot attach. */
struct uni_target *attach(struct suite *s);

/* A guardian that is about to take over may take as long on a busy host. */
#define HOLD_NS (60 * UNI_NSEC_PER_SEC)

/* Registers of vCPU 0, held. */
int hold(struct uni_target *t, struct uni_regs *regs);

/* The groups of tests. */
void test_basics(struct suite *s);
void test_memory(struct suite *s);
void test_kill(struct suite *s);
void test_guardian_kill(struct suite *s);
void test_sleep(struct suite *s);

/* kill -9 in n holds; the number after which the guest ran on. */
unsigned kill_in_hold(struct suite *s, unsigned n);
/* Says "held" when it holds the guest, and stays there; false if it cannot. */
bool hold_for_ever(struct suite *s);
/* kill -9 at n random instants; the number after which the guest ran on. */
unsigned kill_at_random(struct suite *s, unsigned n);

/* The VMM is killed (or the domain destroyed) while the target is in the named state. */
bool vm_gone_in(struct suite *s, const char *state);
extern const char *const gone_states; /* words */

/* An operator at the monitor, and a second debugger (for targets that share the guest with them).
 */
bool operator_at(struct suite *s, const char *qmp);

/* Pauses of n samples at hz: percentiles on stdout. */
bool bench_pauses(struct suite *s, unsigned n, unsigned hz);

#endif
