/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#define __unused		      __attribute__((unused))
#define __containerof(p, type, field) ((type *)((char *)(p)-offsetof(type, field)))
typedef size_t __sz;
