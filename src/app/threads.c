/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "obj/debug.h"
#include "sampling/sampler.h"

int uni_guest_model(const struct uni_guest *g, const struct uni_image_search *search,
	struct uni_model **ret, struct uni_err *err)
{
	struct uni_model_from from = { .img = g->image, .bias = g->bias };
	int rc;

	if (g->image == NULL)
		return uni_err_set(err, UNI_ENOENT,
			"threads: they can be found only with the guest's image: "
			"give it with -e");
	if (g->stale[0] != '\0' && g->differ.id != UNI_ID_SAME && !g->accept_image)
		return uni_err_set(err, UNI_EMISMATCH,
			"threads: the image tells where they are, and the guest runs another "
			"build: give the file that was booted (-e)");
	/* None, or none that can be read: the model may do without. */
	if (uni_model_wants_debug(g->image))
		(void)uni_debug_of_image(g->image, search, &from.debug, NULL);
	rc = uni_model_open(&from, ret, err);
	uni_debug_destroy(from.debug);
	return rc;
}

int uni_guest_threads(const struct uni_guest *g, const struct uni_image_search *search, bool all,
	struct uni_model **ret, struct uni_err *err)
{
	bool streams = uni_sampler_streams(g->t);
	int rc = 0;

	*ret = NULL;
	if (streams && all)
		return uni_err_set(err, UNI_ENOTSUP,
			"threads: %s is sampled without a stop, and then only vCPUs are seen",
			g->spec.text);
	if (!streams)
		rc = uni_guest_model(g, search, ret, err);
	/* Promises have no stacks, and are on no vCPU. */
	if (rc == 0 && !all && *ret != NULL && !uni_model_has_stacks(*ret)) {
		uni_model_close(*ret);
		*ret = NULL;
	}
	if (rc == 0 || all)
		return rc;
	*err = (struct uni_err){ 0 };
	return 0;
}

void uni_guest_say_threads(const struct uni_guest *g, const struct uni_model *model, bool all,
	struct uni_record_meta *meta)
{
	meta->threads = model != NULL && all;
	(void)snprintf(meta->model, sizeof(meta->model), "%s",
		model != NULL ? uni_model_name(g->image) : "");
}

void uni_thread_waits_for(
	const struct uni_guest *g, const struct uni_guest_thread *t, char *ret, size_t cap)
{
	const char *name = NULL;
	uint64_t off = 0;

	ret[0] = '\0';
	if (t->wait_on != 0 && g->image != NULL)
		name = uni_image_name_at(g->image, t->wait_on - g->bias, &off);
	if (t->wait_name[0] != '\0')
		(void)snprintf(ret, cap, "%s", t->wait_name);
	else if (name != NULL && off == 0)
		(void)snprintf(ret, cap, "%s", name);
	else if (name != NULL)
		(void)snprintf(ret, cap, "%s+0x%" PRIx64, name, off);
	else if (t->wait_on != 0)
		(void)snprintf(ret, cap, "0x%" PRIx64, t->wait_on);
}

void uni_thread_say(
	const struct uni_guest *g, const struct uni_guest_thread *t, char *ret, size_t cap)
{
	const char *state = uni_thread_state_name(t->state),
		   *limit = t->state == UNI_THREAD_WAITING ? ", with a time limit" : "";
	char what[160];

	uni_thread_waits_for(g, t, what, sizeof(what));
	if (t->state == UNI_THREAD_RUNNING && t->vcpu >= 0)
		(void)snprintf(ret, cap, "%s on vCPU %" PRId32, state, t->vcpu);
	else if (t->vcpu >= 0)
		(void)snprintf(ret, cap, "%s%s%s%s; vCPU %" PRId32 " has nothing to run", state,
			what[0] != '\0' ? " on " : "", what, limit, t->vcpu);
	else
		(void)snprintf(
			ret, cap, "%s%s%s%s", state, what[0] != '\0' ? " on " : "", what, limit);
}
