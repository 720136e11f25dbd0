/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/method.h"

#include <string.h>

#include "base/checked.h"

static const struct uni_method methods[] = {
	{ "bpf", "samples made by the host's kernel (bpf)",
		UNI_METHOD_STREAMED | UNI_METHOD_KERNEL | UNI_METHOD_UNPAUSED },
	{ "perf", "samples made by the host's kernel (perf)",
		UNI_METHOD_STREAMED | UNI_METHOD_UNPAUSED | UNI_METHOD_ON_CPU },
	{ "guest", "samples made by the guest itself (guest)",
		UNI_METHOD_STREAMED | UNI_METHOD_INSIDE | UNI_METHOD_UNPAUSED },
	{ "pause", "the guest is stopped for each sample (pause)", 0 },
	{ "read", "registers and memory are read while the guest runs (read)",
		UNI_METHOD_UNPAUSED },
	{ "replay", "saved snapshots are read (replay)", 0 },
	{ "exact", "QEMU counts every instruction (exact)", UNI_METHOD_COUNTED },
};

static const char *const asked_names[] = {
	[UNI_ASKED_AUTO] = "auto",
	[UNI_ASKED_KERNEL] = "bpf",
	[UNI_ASKED_PAUSE] = "pause",
};

const struct uni_method *uni_method_by_name(const char *name)
{
	for (size_t i = 0; name != NULL && i < uni_array_len(methods); i++) {
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}

unsigned uni_method_flags(const char *name)
{
	const struct uni_method *m = uni_method_by_name(name);

	return m != NULL ? m->flags : 0;
}

bool uni_asked_parse(const char *method, enum uni_asked *ret)
{
	*ret = UNI_ASKED_AUTO;
	for (size_t i = 0; method != NULL && i < uni_array_len(asked_names); i++) {
		if (strcmp(asked_names[i], method) == 0) {
			*ret = (enum uni_asked)i;
			return true;
		}
	}
	return method == NULL;
}

int uni_way_needs_stop(
	const struct uni_spec *spec, const struct uni_way_wish *wish, struct uni_err *err)
{
	if (wish->no_pause && wish->once)
		return uni_err_set(err, UNI_ENOTSUP,
			"--no-pause: registers of %s are had only by stopping it for a moment; "
			"`uniscope record` can do without",
			spec->text);
	return 0;
}
