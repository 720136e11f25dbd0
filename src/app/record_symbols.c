/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of its guests' images that a session keeps: symbols, and the places of its addresses. */
#include "app/record.h"

#include "app/inside.h"
#include "app/term.h"
#include "recording/places.h"
#include "recording/recording.h"

int uni_record_add_symbols(
	struct uni_recorder *rec, uint32_t number, const struct uni_guest *g, struct uni_err *err)
{
	int rc = 0;

	if (g->symtab != NULL)
		rc = uni_recorder_add_symtab(rec, number, g->symtab, err);
	else if (g->image != NULL)
		rc = uni_recorder_add_image(rec, number, g->image, err);
	for (size_t i = 0; rc == 0 && i < g->nr_more; i++)
		rc = uni_recorder_add_more(rec, number, g->more[i].image, g->more[i].bias, err);
	if (rc == 0 && g->kernel != NULL)
		rc = uni_recorder_add_more_symtab(rec, number, g->kernel, 0, err);
	return rc;
}

static void places_of(
	const struct uni_image *img, const struct uni_record_args *args, const char *path)
{
	const struct uni_image_search search = uni_search_of(&args->debug_dirs);
	struct uni_err err = { 0 };
	const char *note = NULL;
	int rc = uni_session_add_places(path, img, &search, &note, &err);

	if (rc != 0 && rc != -UNI_ENOENT)
		uni_note("no lines and inlined functions in %s: %s", path, err.msg);
	else if (note != NULL)
		uni_note("%s: %s", uni_image_path(img), note);
}

void uni_record_add_places(
	const struct uni_guest *g, const struct uni_record_args *args, const char *path)
{
	struct uni_err err = { 0 };

	uni_guest_judge_inside(g);
	if (g->image != NULL && g->symtab == NULL)
		places_of(g->image, args, path);
	for (size_t k = 0; k < g->nr_more; k++)
		places_of(g->more[k].image, args, path);
	/* The kernel has 100,000 of them. */
	if (g->kernel != NULL && uni_session_keep_symbols(path, g->kernel, &err) != 0)
		uni_note("all symbols of the kernel stay in %s: %s", path, err.msg);
}
