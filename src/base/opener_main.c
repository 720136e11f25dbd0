/* SPDX-License-Identifier: BSD-2-Clause */
/* uniscope-opener (base/opener.h). uniscope starts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opener.h"

static int take_number(char **at)
{
	return (int)strtol(*at, at, 10);
}

int main(int argc, char **argv)
{
	struct uni_opener_job job;
	size_t len;
	char *at;

	if (argc != 2) {
		(void)fputs("uniscope-opener: only uniscope starts this program\n", stderr);
		return 2;
	}
	len = strcspn(argv[1], " ");
	at = argv[1] + len;
	if (len != strlen(uni_opener_id) || memcmp(argv[1], uni_opener_id, len) != 0)
		return UNI_OPENER_OTHER; /* uniscope says it */
	job.kind = (enum uni_opener_kind)take_number(&at);
	job.caps = strtoull(at, &at, 10);
	job.pid = take_number(&at);
	job.rules = take_number(&at);
	job.socket = take_number(&at);
	job.ready = take_number(&at);
	job.parent = take_number(&at);
	uni_opener_run(&job);
}
