/* SPDX-License-Identifier: BSD-2-Clause */
/* uniscope-opener (base/opener.h). uniscope starts it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/opener.h"

static int take_number(char **at)
{
	return (int)strtol(*at, at, 10);
}

int main(int argc, char **argv)
{
	struct uni_opener_job job;
	char *at;

	if (argc != 2) {
		(void)fputs("uniscope-opener: only uniscope starts this program\n", stderr);
		return 2;
	}
	at = argv[1];
	if ((size_t)take_number(&at) != UNI_OPENER_VERSION) {
		(void)fputs("uniscope-opener: this is of another version than uniscope: start it "
			    "again\n",
			stderr);
		return 2;
	}
	job.kind = (enum uni_opener_kind)take_number(&at);
	job.caps = strtoull(at, &at, 10);
	job.pid = take_number(&at);
	job.rules = take_number(&at);
	job.socket = take_number(&at);
	job.ready = take_number(&at);
	job.parent = take_number(&at);
	uni_opener_run(&job);
}
