/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters and the return value of a function, from an image's debug data. */
#ifndef UNI_OBJ_PARAMS_H
#define UNI_OBJ_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/debug.h"

#define UNI_PARAMS_MAX	 16
#define UNI_PARAM_NAME	 40
#define UNI_PARAM_NO_REG (-1)

enum uni_param_form {
	UNI_PARAM_OTHER, /* floating point, structures: not in a general register */
	UNI_PARAM_SIGNED,
	UNI_PARAM_UNSIGNED,
	UNI_PARAM_BOOL,
	UNI_PARAM_POINTER,
};

struct uni_param {
	char name[UNI_PARAM_NAME]; /* clean; "" if it has none */
	uint8_t form;		   /* enum uni_param_form */
	uint8_t size;		   /* bytes */
	int8_t reg;		   /* 0: the first general argument register; or UNI_PARAM_NO_REG */
};

struct uni_params {
	size_t nr;
	struct uni_param param[UNI_PARAMS_MAX];
	bool returns;		/* false: void */
	struct uni_param value; /* reg 0: the register of return values */
};

/*
 * Describes the function at this address, for calling conventions that use general registers in
 * order (System V x86_64, AAPCS64). A small structure passed by value may take no register, one or
 * two. So the registers of the parameters after it are not known. -UNI_ENOENT: nothing is known of
 * the function.
 */
int uni_debug_params(struct uni_debug *d, uint64_t svma, struct uni_params *ret);

#endif
