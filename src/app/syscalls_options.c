/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/syscalls_options.h"

#include "base/checked.h"

static const char *source_name(unsigned sources)
{
	switch (sources) {
	case UNI_SYSCALLS_GUEST:
		return "a guest that runs";
	case UNI_SYSCALLS_SESSION:
		return "a session";
	case UNI_SYSCALLS_FILE:
		return "a file";
	case UNI_SYSCALLS_COUNTS:
		return "a session of exact counts";
	default:
		return "a session or a guest with calls";
	}
}

int uni_syscalls_check(const struct uni_syscalls_args *a, const char *what,
	enum uni_syscalls_source source, struct uni_err *err)
{
	const struct {
		const char *name;
		bool given;
		unsigned of; /* enum uni_syscalls_source */
	} known[] = {
		{ "--duration", a->duration_given, UNI_SYSCALLS_GUEST },
		{ "--save", a->save != NULL, UNI_SYSCALLS_GUEST },
		{ "--pieces", a->pieces, UNI_SYSCALLS_GUEST },
		{ "--stops", a->stops, UNI_SYSCALLS_GUEST },
		{ "--qmp", a->qmp != NULL, UNI_SYSCALLS_GUEST },
		{ "--wait", a->wait != 0, UNI_SYSCALLS_GUEST },
		{ "--prefix", a->prefixes.items.nr != 0,
			UNI_SYSCALLS_GUEST | UNI_SYSCALLS_SESSION | UNI_SYSCALLS_COUNTS },
		{ "--string-limit", a->string_max_given,
			UNI_SYSCALLS_GUEST | UNI_SYSCALLS_SESSION },
		{ "--guest", a->guest != NULL, UNI_SYSCALLS_SESSION },
		{ "--symbols", a->symbols != NULL, UNI_SYSCALLS_SESSION | UNI_SYSCALLS_COUNTS },
		{ "--thread", a->threads.items.nr != 0, UNI_SYSCALLS_SESSION },
		{ "--from", a->part.from != 0, UNI_SYSCALLS_SESSION },
		{ "--to", a->part.to_given, UNI_SYSCALLS_SESSION },
		{ "--vcpu", a->part.vcpu_given, UNI_SYSCALLS_SESSION },
		{ "--arch", a->arch != NULL, UNI_SYSCALLS_FILE },
	};

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (known[i].given && (known[i].of & source) == 0)
			return uni_err_set(err, UNI_EUSAGE,
				"%s is %s: leave out %s, which is for %s", what,
				source_name(source), known[i].name, source_name(known[i].of));
	}
	return source != UNI_SYSCALLS_COUNTS || a->filter->ends == 0
		       ? 0
		       : uni_err_set(err, UNI_EUSAGE,
				 "%s is %s, which does not say how calls ended: leave out -z, -Z "
				 "and "
				 "status=",
				 what, source_name(source));
}
