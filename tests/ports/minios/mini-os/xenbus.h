/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Mini-OS: what the port uses. */
#include <mini-os/os.h>
