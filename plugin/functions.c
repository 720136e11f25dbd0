/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which function an address belongs to. uniscope writes the image's functions into a file: a magic
 * number, their number, then start and end of each, sorted by start. A byte for each may follow: 1
 * keeps its calls out of the trace. Starts that are called and are not in it (firmware, loaded
 * code) are added as they come.
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

static int load_from(struct functions *f, struct area *a, int fd, const char **why_ret)
{
	uint64_t head[2];

	*why_ret = "it is not a table of functions that uniscope wrote";
	if (!read_all(fd, head, sizeof(head)) || head[0] != UNI_EXACT_TABLE || head[1] == 0 ||
		head[1] > UNI_EXACT_FUNCTIONS)
		return -1;
	f->nr_known = (uint32_t)head[1];
	f->known = area_add(a, UNI_EXACT_PART_FUNCTIONS, head[1] + 1, NULL);
	f->found = calloc(SLOTS, sizeof(*f->found));
	f->found_start = calloc(UNI_EXACT_FOUND, sizeof(*f->found_start));
	if (f->known == NULL || f->found == NULL || f->found_start == NULL) {
		*why_ret = "there is no room for the functions";
		return -1;
	}
	if (!read_all(fd, f->known + 1, head[1] * sizeof(*f->known)))
		return -1;
	plugin.hidden = malloc(head[1] + 1);
	if (plugin.hidden == NULL || !read_all(fd, plugin.hidden + 1, head[1])) {
		free(plugin.hidden);
		plugin.hidden = NULL;
	}
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
