/* SPDX-License-Identifier: BSD-2-Clause */
/* VM exits in words. */
#ifndef UNI_BACKEND_EXIT_H
#define UNI_BACKEND_EXIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/stream.h"

#define UNI_EXIT_LABEL_MAX 96

/* "KVM", "VMX", "SVM", "ARM"; "?" for any other number. */
const char *uni_exit_isa_name(uint8_t isa);
/* "none", "port", "mmio", "hypercall", "msr"; "?". */
const char *uni_exit_info_name(uint8_t kind);
/* "", "read", "write"; "?". */
const char *uni_exit_access_name(uint8_t access);
/*
 * "io", "hlt", "ept-violation"; NULL: the number is not in this list. Equal reasons have equal
 * names in all of these.
 */
const char *uni_exit_reason_name(uint8_t isa, uint32_t reason);
/* The guest waits for an interrupt. Then the sleep of its thread is idle time, not handling. */
bool uni_exit_is_halt(uint8_t isa, uint32_t reason);

/*
 * The label of an exit in reports and graphs: "io out 0x3f8", "ept-misconfig 0xd0000010",
 * "hypercall 1", "svm-0x123". If the vmm's ports are hypercalls (solo5-hvt), it also has their
 * name: "io out 0x502 (puts)". vmm may be "".
 */
void uni_exit_label(const struct uni_stream_exit *e, const char *vmm, char ret[UNI_EXIT_LABEL_MAX]);

/*
 * Is it valid, that is: are all numbers within their enums, and is a chain there if one is stated?
 */
bool uni_exit_is_sound(const struct uni_stream_exit *e, size_t max_chain);

#endif
