/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which function an address belongs to. uniscope writes the image's functions into a file
 * (struct uni_exact_table): start and end of each, sorted by start. There may be a byte for each
 * then: 1 keeps its calls out of the trace. The image's code follows: start and size of each piece,
 * then the bytes of all. Starts that are called and are not in it (firmware, loaded code) are added
 * as they come.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/plugin.h"

#define SLOTS (UNI_EXACT_FOUND * 2)

static bool read_all(int fd, void *to, size_t size)
{
	for (size_t have = 0; have < size;) {
		ssize_t n = read(fd, (char *)to + have, size - have);

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

static bool load_hidden(int fd, const struct uni_exact_table *t)
{
	if (t->nr_hidden == 0)
		return true;
	plugin.hidden = malloc(t->nr_hidden + 1);
	return plugin.hidden != NULL && read_all(fd, plugin.hidden + 1, t->nr_hidden);
}

static bool load_code(int fd, uint64_t nr, uint64_t nr_own)
{
	struct code_piece *piece = calloc(nr + 1, sizeof(*piece));
	uint64_t size = 0;
	uint8_t *bytes;

	if (piece == NULL)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t range[2];

		if (!read_all(fd, range, sizeof(range)) || range[1] == 0 ||
			range[1] > UNI_EXACT_CODE - size || range[0] > UINT64_MAX - range[1]) {
			free(piece);
			return false;
		}
		piece[i] = (struct code_piece){ range[0], range[1], size };
		size += range[1];
	}
	bytes = malloc(size + 1);
	if (bytes == NULL || !read_all(fd, bytes, size)) {
		free(bytes);
		free(piece);
		return false;
	}
	places_init(piece, nr, nr_own, bytes);
	return true;
}

static int load_from(struct functions *f, struct area *a, int fd, const char **why_ret)
{
	struct uni_exact_table t;

	*why_ret = "it is not a table of functions that uniscope wrote";
	if (!read_all(fd, &t, sizeof(t)) || t.magic != UNI_EXACT_TABLE || t.nr == 0 ||
		t.nr > UNI_EXACT_FUNCTIONS || (t.nr_hidden != 0 && t.nr_hidden != t.nr) ||
		t.nr_pieces > UNI_EXACT_PIECES)
		return -1;
	f->nr_known = (uint32_t)t.nr;
	f->known = area_add(a, UNI_EXACT_PART_FUNCTIONS, t.nr + 1, NULL);
	f->found = calloc(SLOTS, sizeof(*f->found));
	f->found_start = calloc(UNI_EXACT_FOUND, sizeof(*f->found_start));
	if (f->known == NULL || f->found == NULL || f->found_start == NULL) {
		*why_ret = "too many functions, or no room on the disk";
		return -1;
	}
	if (!read_all(fd, f->known + 1, t.nr * sizeof(*f->known)) || !load_hidden(fd, &t) ||
		!load_code(fd, t.nr_pieces, t.nr_own))
		return -1;
	for (uint32_t i = 1; i <= f->nr_known; i++) {
		if (f->known[i].end <= f->known[i].start ||
			(i > 1 && f->known[i].start < f->known[i - 1].end))
			return -1;
	}
	return 0;
}

int functions_load(struct functions *f, struct area *a, const char *path, const char **why_ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	struct uni_exact_function *own;

	*why_ret = "it cannot be opened";
	if (fd < 0)
		return -1;
	rc = load_from(f, a, fd, why_ret);
	(void)close(fd);
	if (rc != 0)
		return rc;
	/* Our own copy: nobody else can change it while the guest runs. */
	own = malloc((f->nr_known + 1ull) * sizeof(*own));
	if (own == NULL)
		return -1;
	memcpy(own, f->known, (f->nr_known + 1ull) * sizeof(*own));
	f->known = own;
	return 0;
}

uint32_t functions_find(const struct functions *f, uint64_t pc)
{
	uint32_t low = 1, high = f->nr_known + 1;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (f->known[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 1 && pc < f->known[low - 1].end ? low - 1 : 0;
}

uint32_t functions_called(struct functions *f, struct area *a, uint64_t pc)
{
	uint32_t slot = (uint32_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % SLOTS;
	struct uni_exact_function *out;

	while (f->found[slot] != 0) {
		if (f->found_start[f->found[slot] - 1] == pc)
			return f->nr_known + f->found[slot];
		slot = (slot + 1) % SLOTS;
	}
	if (f->nr_found == UNI_EXACT_FOUND)
		return 0;
	out = area_add(a, UNI_EXACT_PART_FUNCTIONS, 1, NULL);
	if (out == NULL)
		return 0;
	out->start = pc;
	f->found_start[f->nr_found++] = pc;
	f->found[slot] = f->nr_found;
	return f->nr_known + f->nr_found;
}
