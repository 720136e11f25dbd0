/* SPDX-License-Identifier: BSD-2-Clause */
/* Given by the image to a program that is loaded at run time: its entry point's argument. */
#ifndef LAB_PROGRAM_H
#define LAB_PROGRAM_H

#include <stdint.h>

struct lab_services {
	void (*work)(uint64_t n); /* in the image: lab_burn() below two frames */
};

typedef void lab_program_fn(const struct lab_services *services);

#endif
