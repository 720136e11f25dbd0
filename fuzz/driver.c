/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz harness without libFuzzer, so that any compiler's test run exercises the parsers. The
 * inputs are each seed, each seed cut at every length (up to a limit), and random mutations from a
 * fixed start. The sum of all that the harness told is compared with fuzz/said.txt.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_SEED  (1u << 20)
#define MUTATIONS 1500
#define MAX_CUTS  400

#define START 0x9e3779b97f4a7c15ull

static uint64_t state;

static uint32_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

/* A copy of exactly the size, so that a sanitizer sees any byte read beyond it. */
static void feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size != 0 ? size : 1);

	if (copy == NULL)
		exit(1);
	memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void mutate(const uint8_t *seed, size_t size, uint8_t *work)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xff, '\n', ' ', ';' };
	size_t n = size;

	memcpy(work, seed, size);
	for (unsigned k = rnd() % 8 + 1; k != 0 && n != 0; k--) {
		size_t at = rnd() % n;

		switch (rnd() % 5) {
		case 0:
			work[at] ^= (uint8_t)(1u << rnd() % 8);
			break;
		case 1:
			work[at] = edges[rnd() % sizeof(edges)];
			break;
		case 2:
			n = at;
			break;
		case 3:
			memset(work + at, (int)(rnd() & 1) * 0xff, n - at < 8 ? n - at : 8);
			break;
		default:
			memmove(work + at, work + rnd() % n, 1);
			break;
		}
	}
	feed(work, n);
}

/* 1 if it was fed; ends the test if a seed that is there cannot be read whole. */
static int run_seed(const char *path)
{
	static uint8_t seed[MAX_SEED], work[MAX_SEED];
	FILE *f = fopen(path, "rb");
	size_t size, step;

	if (f == NULL) {
		perror(path);
		exit(1);
	}
	size = fread(seed, 1, sizeof(seed), f);
	if (ferror(f) || (size == sizeof(seed) && fgetc(f) != EOF)) {
		(void)fprintf(
			stderr, "%s: cannot be read, or is longer than %u bytes\n", path, MAX_SEED);
		exit(1);
	}
	(void)fclose(f);
	state = START;
	told_sum = 0;
	feed(seed, size);
	step = size / MAX_CUTS + 1;
	for (size_t n = 0; n < size; n += step)
		feed(seed, n);
	for (unsigned i = 0; i < MUTATIONS; i++)
		mutate(seed, size, work);
	return 1;
}

/* Prints the line of a seed; true if the file has it too. */
static bool compare(const char *said, const char *folder, const char *seed)
{
	char line[300], known[300];
	const char *name = strrchr(folder, '/');
	FILE *f = said != NULL ? fopen(said, "r") : NULL;
	bool same = said == NULL;

	(void)snprintf(line, sizeof(line), "%s/%s %016" PRIx64 "\n",
		name != NULL ? name + 1 : folder, seed, told_sum);
	(void)fputs(line, stdout);
	while (f != NULL && !same && fgets(known, sizeof(known), f) != NULL)
		same = strcmp(known, line) == 0;
	if (f != NULL)
		(void)fclose(f);
	if (!same)
		(void)fprintf(stderr,
			"%s/%s: something else was read than before: `fuzz/run said` writes %s "
			"anew\n",
			folder, seed, said);
	return same;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 || argc == 3 ? opendir(argv[1]) : NULL;
	struct dirent *e;
	bool same = true;
	int seeds = 0;
	char path[4096];

	if (dir == NULL) {
		(void)fprintf(stderr, "usage: %s CORPUS_DIR [SAID]\n", argv[0]);
		return 2;
	}
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		seeds += run_seed(path);
		same &= compare(argv[2], argv[1], e->d_name);
	}
	(void)closedir(dir);
	(void)printf("%d seeds, %d mutations each\n", seeds, MUTATIONS);
	return seeds > 0 && same ? 0 : 1;
}
