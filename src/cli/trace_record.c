/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/confine.h"
#include "app/cmd.h"
#include "app/tracing_session.h"

static struct {
	struct uni_tracing_args a;
	struct uni_tracing_session s;
	bool as_is;
} o;

static const struct uni_opt *list_trace_record_options(void)
{
	static const struct uni_opt table[] = {
		{ 'd', "duration", UNI_OPT_DOUBLE, &o.s.duration, "SECONDS",
			"how long; 0 records until Ctrl-C (default 10)", NULL, NULL },
		UNI_TRACING_OUTPUT_OPTIONS(o.s),
		UNI_CHOICE_OPTIONS(o.a),
		{ 0, "as-is", UNI_OPT_FLAG, &o.as_is, NULL,
			"switch nothing on or off: record what is traced already", NULL, NULL },
		{ 0, "keep", UNI_OPT_FLAG, &o.s.keep, NULL,
			"leave the functions switched on at the end", NULL, NULL },
		{ 0, "names", UNI_OPT_DOUBLE, &o.s.names, "SECONDS",
			"also look for new threads at this interval, for readers "
			"of the growing session. The guest is held each time, as "
			"at the beginning and at the end (default 0: only then)",
			NULL, NULL },
		UNI_TRACING_OPTIONS(o.a),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.s.quiet, NULL, "no progress and no summary", NULL,
			NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .s = { .duration = 10 } };
	return table;
}

static int check_trace_record(struct uni_err *err)
{
	if (o.as_is && uni_choice_given(&o.a))
		return uni_err_set(err, UNI_EUSAGE,
			"--as-is switches nothing on: leave out the options that "
			"choose functions");
	if (o.s.duration < 0 || o.s.duration > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--duration must be between 0 and 10000000 s");
	if (o.s.names < 0 || o.s.names > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--names must be between 0 and 10000000 s");
	return 0;
}

static int run_trace_record(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_choice choice;
	struct uni_tracing t;
	int rc = check_trace_record(err);

	if (rc == 0)
		rc = uni_choice_make(&choice, &o.a, err);
	if (rc != 0)
		return uni_exit_of(rc);
	o.s.choice = o.as_is ? NULL : &choice;
	o.a.await_run = o.a.may_give_up = true;
	o.a.owns = !o.as_is;
	o.a.reads_only = o.as_is;
	o.a.guarded = !o.as_is && !o.s.keep;
	uni_confine_output(o.s.write);
	uni_confine_output(o.s.output != NULL ? o.s.output : "session"); /* in this folder */
	rc = uni_tracing_open(&t, ctx->operands[0], &o.a, err);
	if (rc == 0) {
		rc = uni_tracing_write(&t, &o.s, err);
		uni_tracing_close(&t);
	}
	uni_choice_free(&choice);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_record = {
	.name = "record",
	.operands = "TARGET",
	.summary = "record the calls of a running guest into a session",
	.details = "Switches the chosen functions on, reads the guest's rings while "
		   "the guest writes them,\n"
		   "and switches the functions off at the end. Data that the guest "
		   "overwrites before it could\n"
		   "be read counts as lost, in words of 8 bytes. A call or a return "
		   "takes one word.",
	.examples = "  uniscope trace record web1 --filter 'tcp_*' -d 5\n"
		    "  uniscope trace record kvm:pid=4121 --mode lite -o calls.uniscope",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_record_options,
	.run = run_trace_record,
};
