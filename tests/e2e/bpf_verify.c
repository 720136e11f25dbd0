/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the programs for the kernel as uniscope does, and prints what the verifier says of each. It
 * must look at less than half as many instructions as its limit. It also says how deep each
 * function's frame is. TAP; lines "stack PROGRAM DEPTH..." are for tests/unit/bpf_frames.py.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "backend/kvm/bpf/exit_progs.h"
#include "backend/kvm/bpf/object.h"
#include "tap.h"

#define LOG_SIZE 65536u
#define PROGS	 16u

struct logs {
	size_t nr;
	char text[PROGS][LOG_SIZE];
};

static int set_logs(struct bpf_object *obj, void *ctx)
{
	struct bpf_program *p;
	struct logs *l = ctx;

	l->nr = 0;
	bpf_object__for_each_program(p, obj)
	{
		if (l->nr == PROGS || bpf_program__set_log_buf(p, l->text[l->nr], LOG_SIZE) != 0 ||
			bpf_program__set_log_level(p, 4) != 0)
			return -1;
		l->nr++;
	}
	return 0;
}

/* "stack depth 16+97+0+88" */
static void print_depths(const char *name, const char *log)
{
	const char *s = strstr(log, "stack depth ");

	(void)check(s != NULL, "%s: the depths of its frames are told", name);
	if (s == NULL)
		return;
	s += strlen("stack depth ");
	(void)printf("stack %s ", name);
	for (; *s != '\n' && *s != '\0'; s++)
		(void)putchar(*s == '+' ? ' ' : *s);
	(void)putchar('\n');
}

/* The number behind a word; 0: there is none. */
static unsigned long number_after(const char *log, const char *word)
{
	const char *s = strstr(log, word);
	unsigned long n;
	char *end;

	if (s == NULL)
		return 0;
	s += strlen(word);
	errno = 0;
	n = strtoul(s, &end, 10);
	return end != s && errno == 0 ? n : 0;
}

/* "processed 1008 insns (limit 1000000) ..." */
static void print_program(const char *name, const char *log)
{
	unsigned long nr = number_after(log, "processed "), limit = number_after(log, "(limit ");

	(void)check(
		nr != 0 && nr < limit / 2, "%s: processed %lu insns, limit %lu", name, nr, limit);
	print_depths(name, log);
}

static void verify(const void *object, size_t size, const char *name)
{
	struct logs *l = calloc(1, sizeof(*l));
	struct uni_err err = { 0 };
	struct bpf_object *obj;
	struct bpf_program *p;
	size_t i = 0;

	if (l == NULL)
		exit(1);
	obj = uni_kvm_bpf_open(object, size, name, set_logs, l, &err);
	(void)check(obj != NULL, "%s: loaded %s", name, err.msg);
	if (obj != NULL) {
		bpf_object__for_each_program(p, obj)
			print_program(bpf_program__name(p), l->text[i++]);
	}
	bpf_object__close(obj);
	free(l);
}

/* bpf_verify [plain]: the programs with casts, or those without. */
int main(int argc, char **argv)
{
	if (argc > 1) {
		verify(uni_bpf_plain_object, uni_bpf_plain_object_size, "sampler_plain");
		verify(uni_bpf_plain_exit_object, uni_bpf_plain_exit_object_size, "exit_plain");
	} else {
		verify(uni_bpf_object, uni_bpf_object_size, "sampler");
		verify(uni_bpf_exit_object, uni_bpf_exit_object_size, "exit");
	}
	printf("1..%u\n", nr_checks);
	return nr_failed != 0;
}
