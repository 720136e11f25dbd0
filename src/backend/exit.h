/* SPDX-License-Identifier: BSD-2-Clause */
/* VM exits in words. */
#ifndef UNI_BACKEND_EXIT_H
#define UNI_BACKEND_EXIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/stream.h"

#define UNI_EXIT_LABEL_MAX 96

/* "KVM", "VMX", "SVM", "ARM"; "?" for none of them. */
const char *uni_exit_isa_name(uint8_t isa);
/* "none", "port", "mmio", "hypercall", "msr"; "?". */
const char *uni_exit_info_name(uint8_t kind);
/* "", "read", "write"; "?". */
const char *uni_exit_access_name(uint8_t access);
/* "io", "hlt", "ept-violation"; NULL: a number that this list does not have. The same thing has the
 * same name with all of them. */
const char *uni_exit_reason_name(uint8_t isa, uint32_t reason);
/* The guest waits for an interrupt: what its thread sleeps then is idle time, not handling. */
bool uni_exit_is_halt(uint8_t isa, uint32_t reason);

/*
 * "io out 0x3f8", "ept-misconfig 0xd0000010", "hypercall 1", "svm-0x123": what tells an exit from
 * others in reports and graphs. With a vmm whose ports are hypercalls (solo5-hvt) also what it is
 * called: "io out 0x502 (puts)". vmm may be "".
 */
void uni_exit_label(const struct uni_stream_exit *e, const char *vmm, char ret[UNI_EXIT_LABEL_MAX]);

/* Can it be believed: all numbers within their enums, a chain where one is promised? */
bool uni_exit_is_sound(const struct uni_stream_exit *e, size_t max_chain);

#endif
