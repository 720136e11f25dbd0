/* SPDX-License-Identifier: BSD-2-Clause */
/* In which way a guest is sampled: by the host's kernel, or by stopping it; with which rights. */
#ifndef UNI_APP_WAY_H
#define UNI_APP_WAY_H

#include "app/attach.h"

/* g->spec, g->info and g->hints, as far as they are known by then. */
int uni_guest_use_unwinder(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);
int uni_guest_check_method(
	const struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);
/* Backends that have a choice have a key for it; others pause, or need not. */
int uni_guest_choose_method(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);

/* For ls and doctor: would record stop this guest for each sample because of its image, though the
 * kernel could sample it? Returns why; NULL: no, or not known. It reads the image in a process
 * without rights. */
const char *uni_guest_image_stops(const struct uni_spec *spec);

/* A part of uni_guest_open(): sets g->image and g->symtab. */
int uni_guest_load_image(
	struct uni_guest *g, const struct uni_attach_args *args, struct uni_err *err);

#endif
