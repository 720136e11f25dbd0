/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: the set of the vCPUs below 64 whose bits these are. */
#ifndef UNI_TESTS_VCPUS_H
#define UNI_TESTS_VCPUS_H

#include "backend/vcpuset.h"

#define VCPUS(bits) (&(const struct uni_vcpuset){ .word = { (bits) } })

#endif
