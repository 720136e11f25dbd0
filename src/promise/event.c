/* SPDX-License-Identifier: BSD-2-Clause */
#include "promise/event.h"

bool uni_promise_names_lock(const struct uni_promise_event *e)
{
	return e->type == UNI_PROMISE_TYPE_LOCK &&
	       (e->kind == UNI_PE_READ || e->kind == UNI_PE_TRY_READ || e->kind == UNI_PE_NOTIFY);
}

const char *uni_promise_kind_name(unsigned kind)
{
	static const char *const names[UNI_PE_NR] = {
		[UNI_PE_CREATE] = "create",
		[UNI_PE_READ] = "read",
		[UNI_PE_RESOLVE] = "resolve",
		[UNI_PE_FAIL] = "fail",
		[UNI_PE_BECOME] = "become",
		[UNI_PE_LABEL] = "label",
		[UNI_PE_INCREASE] = "increase",
		[UNI_PE_SWITCH] = "switch",
		[UNI_PE_GC] = "gc",
		[UNI_PE_SIGNAL] = "signal",
		[UNI_PE_TRY_READ] = "try_read",
		[UNI_PE_COUNTER] = "counter",
		[UNI_PE_READ_LATER] = "read_later",
		[UNI_PE_NOTIFY] = "notify",
		[UNI_PE_SHOULD_RESOLVE] = "should_resolve",
		[UNI_PE_HIATUS] = "hiatus",
		[UNI_PE_RESUME] = "resume",
		[UNI_PE_WAITS_NOW] = "waits_now",
		[UNI_PE_LOST] = "lost",
	};

	return kind < UNI_PE_NR && names[kind] != NULL ? names[kind] : "?";
}

const char *uni_promise_type_name(unsigned type)
{
	/* MirageOS' numbers; from 18 on ours. */
	static const char *const names[] = { "wait", "task", "bind", "try", "choose", "pick",
		"join", "map", "condition", "on_success", "on_failure", "on_termination", "on_any",
		"ignore_result", "async", "promise", "semaphore", "switch", "mvar", "thread",
		"lock" };

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}
