/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/placer.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/vec.h"
#include "sampling/pages.h"

#define SEEN_MAX   4096u	  /* return addresses */
#define SLOTS	   (2 * SEEN_MAX) /* a power of two */
#define CALLS_MAX  (16u << 20)
#define VOTES_MAX  (4u << 20)
#define LEAST	   3	/* return addresses that have to agree */
#define MOST_WRONG 1e-2 /* expected number of wrong biases that are as good */
#define SHARE	   0.8	/* of those in the image, behind its calls: some frames are no frames */
#define OFFSET(at) ((at) & (UNI_PAGE_BYTES - 1))

struct uni_placer {
	const struct uni_image *img;
	UNI_VEC(uint64_t)
	call; /* linked return addresses, by their offset in a page, then by address */
	size_t first[UNI_PAGE_BYTES + 1]; /* of each offset: index in call[] */
	double density;			  /* calls per byte of code */
	size_t nr_seen, asked;		  /* asked: so many were seen when it was worth to ask */
	uint64_t seen[SEEN_MAX];
	uint16_t slot[SLOTS]; /* index in seen[] + 1; 0: free */
};

static int by_page_offset(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	if (OFFSET(x) != OFFSET(y))
		return OFFSET(x) < OFFSET(y) ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool is_code(const struct uni_image *img, uint64_t svma)
{
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *s = uni_image_segment(img, i);

		if (s->exec && uni_range_has(s->vaddr, s->mem_size, svma))
			return true;
	}
	return false;
}

/* Bytes in the middle of an instruction may look like a call. They make a bias less certain. */
static bool add_calls(struct uni_placer *p, const struct uni_segment *s)
{
	const struct uni_arch *arch = uni_image_arch(p->img);

	for (size_t k = UNI_CALL_BYTES; k <= s->file_size && p->call.nr < CALLS_MAX; k++) {
		uint64_t to;

		if (!arch->after_call(s->bytes + k - UNI_CALL_BYTES, s->vaddr + k, &to) ||
			(to != 0 && !is_code(p->img, to)))
			continue;
		if (!uni_vec_push(&p->call, s->vaddr + k))
			return false;
	}
	return true;
}

static bool find_calls(struct uni_placer *p)
{
	uint64_t code = 0;
	size_t at = 0;

	for (size_t i = 0; i < uni_image_nr_segments(p->img); i++) {
		const struct uni_segment *s = uni_image_segment(p->img, i);

		if (!s->exec)
			continue;
		code += s->file_size;
		if (!add_calls(p, s))
			return false;
	}
	p->density = code != 0 ? (double)p->call.nr / (double)code : 0;
	if (p->call.nr != 0)
		qsort(p->call.v, p->call.nr, sizeof(p->call.v[0]), by_page_offset);
	for (size_t offset = 0; offset < UNI_PAGE_BYTES; offset++) {
		p->first[offset] = at;
		while (at < p->call.nr && OFFSET(p->call.v[at]) == offset)
			at++;
	}
	p->first[UNI_PAGE_BYTES] = at;
	return true;
}

int uni_placer_create(const struct uni_image *img, struct uni_placer **ret, struct uni_err *err)
{
	const struct uni_arch *arch = uni_image_arch(img);
	struct uni_placer *p;

	if (arch == NULL || arch->after_call == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: calls of this machine are not known, so where it runs cannot be found",
			uni_image_path(img));
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return uni_err_nomem(err);
	p->img = img;
	if (!find_calls(p)) {
		uni_placer_destroy(p);
		return uni_err_nomem(err);
	}
	*ret = p;
	return 0;
}

void uni_placer_destroy(struct uni_placer *p)
{
	if (p == NULL)
		return;
	uni_vec_free(&p->call);
	free(p);
}

bool uni_placer_saw(struct uni_placer *p, uint64_t ret_addr)
{
	size_t at = (size_t)(ret_addr * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SLOTS;

	while (p->slot[at] != 0) {
		if (p->seen[p->slot[at] - 1] == ret_addr)
			return false;
		at = (at + 1) % SLOTS;
	}
	if (p->nr_seen == SEEN_MAX)
		return false;
	p->seen[p->nr_seen++] = ret_addr;
	p->slot[at] = (uint16_t)p->nr_seen;
	/* Each try takes as long as there are addresses. */
	if (p->nr_seen < LEAST || p->nr_seen - p->asked <= p->asked / 8)
		return false;
	p->asked = p->nr_seen;
	return true;
}

static bool is_behind_call(const struct uni_placer *p, uint64_t svma)
{
	size_t low = p->first[OFFSET(svma)], high = p->first[OFFSET(svma) + 1];

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->call.v[mid] == svma)
			return true;
		if (p->call.v[mid] < svma)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

void uni_placer_count(const struct uni_placer *p, uint64_t bias, struct uni_placed *ret)
{
	*ret = (struct uni_placed){ 0 };
	for (size_t i = 0; i < p->nr_seen; i++) {
		uint64_t svma = p->seen[i] - bias;

		if (!is_code(p->img, svma))
			continue;
		ret->inside++;
		ret->behind += is_behind_call(p, svma);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Each bias at which a return address would be behind a call, once for each address. */
static uint64_t *collect_votes(const struct uni_placer *p, size_t *nr_ret)
{
	uint64_t *vote;
	size_t nr = 0;

	for (size_t i = 0; i < p->nr_seen; i++) {
		uint64_t offset = OFFSET(p->seen[i]);

		nr += p->first[offset + 1] - p->first[offset];
	}
	nr = uni_min(nr, (size_t)VOTES_MAX);
	vote = reallocarray(NULL, uni_max(nr, (size_t)1), sizeof(*vote));
	*nr_ret = 0;
	for (size_t i = 0; vote != NULL && i < p->nr_seen; i++) {
		uint64_t offset = OFFSET(p->seen[i]);

		for (size_t k = p->first[offset]; k < p->first[offset + 1] && *nr_ret < nr; k++)
			vote[(*nr_ret)++] = p->seen[i] - p->call.v[k];
	}
	if (vote != NULL)
		qsort(vote, *nr_ret, sizeof(*vote), by_value);
	return vote;
}

/* A wrong bias got its first vote for nothing; each further one has the chance of any byte. */
static bool is_certain(const struct uni_placer *p, size_t votes, size_t nr_biases)
{
	double wrong = (double)nr_biases;

	for (size_t i = 1; i < votes && wrong >= MOST_WRONG; i++)
		wrong *= p->density;
	return votes >= LEAST && wrong < MOST_WRONG;
}

bool uni_placer_find(const struct uni_placer *p, uint64_t *bias_ret, struct uni_placed *ret)
{
	size_t nr, nr_biases = 0, best = 0, equal = 0;
	uint64_t bias = 0, *vote = collect_votes(p, &nr);
	struct uni_placed at;

	for (size_t i = 0, n; vote != NULL && i < nr; i += n) {
		for (n = 1; i + n < nr && vote[i + n] == vote[i]; n++)
			;
		nr_biases++;
		equal += n == best;
		if (n > best) {
			best = n;
			equal = 0;
			bias = vote[i];
		}
	}
	free(vote);
	if (equal != 0 || !is_certain(p, best, nr_biases))
		return false;
	uni_placer_count(p, bias, &at);
	if ((double)at.behind < SHARE * (double)at.inside)
		return false;
	*bias_ret = bias;
	*ret = at;
	return true;
}
