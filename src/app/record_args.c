/* SPDX-License-Identifier: BSD-2-Clause */
/* Do the options of a recording make sense? */
#include "base/text.h"
#include "app/record.h"
#include "app/watches.h"
#include "backend/method.h"

static int check_exits(struct uni_record_args *args, struct uni_err *err)
{
	enum uni_asked asked;
	uint64_t n = 1;

	args->exits_every = 0;
	if (args->exits == NULL)
		return 0;
	if (args->exits[0] != '\0' && (!uni_parse_u64(args->exits, &n) || n == 0 || n > UINT32_MAX))
		return uni_err_set(err, UNI_EUSAGE,
			"--exits=%s: give a whole number above 0: N examines one "
			"exit in N",
			args->exits);
	(void)uni_asked_parse(args->method, &asked);
	if (asked == UNI_ASKED_PAUSE)
		return uni_err_set(err, UNI_EUSAGE,
			"--exits needs the host's kernel (--method bpf), not pauses");
	args->exits_every = (uint32_t)n;
	return 0;
}

static int check_threads(const struct uni_record_args *args, struct uni_err *err)
{
	enum uni_asked asked;

	if (!args->threads)
		return 0;
	(void)uni_asked_parse(args->method, &asked);
	if (args->exits != NULL || args->aggregate || asked == UNI_ASKED_KERNEL)
		return uni_err_set(err, UNI_EUSAGE,
			"--threads stops the guest for each sample: leave out "
			"--exits, --aggregate and --method bpf");
	return 0;
}

int uni_record_check_args(struct uni_record_args *args, struct uni_err *err)
{
	enum uni_asked asked;
	bool known = uni_asked_parse(args->method, &asked);
	int rc = check_exits(args, err);

	if (rc == 0)
		rc = check_threads(args, err);
	if (rc == 0)
		rc = uni_pace_check(&args->pace, err);
	if (rc != 0)
		return rc;
	if (args->frequency == 0 && args->exits_every == 0)
		return uni_err_set(err, UNI_EUSAGE, "%s",
			args->never_exits
				? "--frequency 0 takes no samples: give up to 100000 Hz"
				: "--frequency 0 takes no samples: that needs --exits, else give "
				  "up to 100000 Hz");
	if (!(args->frequency >= 0) || args->frequency > 100000)
		return uni_err_set(
			err, UNI_EUSAGE, "--frequency must be above 0 and at most 100000 Hz");
	if (args->duration < 0 || args->duration > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--duration must be between 0 and 10000000 s");
	if (args->watch.items.nr > UNI_WATCHES_MAX)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --watch", UNI_WATCHES_MAX);
	if (args->aggregate && asked == UNI_ASKED_PAUSE)
		return uni_err_set(err, UNI_EUSAGE,
			"--aggregate needs the host's kernel (--method bpf), not pauses");
	if (!known)
		return uni_err_set(
			err, UNI_EUSAGE, "--method is auto, bpf or pause, not '%s'", args->method);
	return 0;
}
