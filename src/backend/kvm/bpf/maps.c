/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts a guest's own maps into the arrays in which the programs look for them. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/observer.h"
#include "backend/kvm/bpf/stream.h"

#define MAX_CHAINS 16384
#define RING_BYTES (2u << 20)
#define COUNTS_LEN (MAX_CHAINS * UNI_BPF_STATES * sizeof(uint64_t))

/* linux/bpf.h */
#define F_MMAPABLE  (1u << 10)
#define F_INNER_MAP (1u << 12)

static int make_inner_map(
	const struct uni_observer_map *m, int outer, int guest, int *ret, struct uni_err *err)
{
	uint32_t key = (uint32_t)guest, fd;

	*ret = uni_observer_map_create(m);
	if (*ret < 0)
		return uni_err_set(err, errno == EPERM ? UNI_EPERM : UNI_ENOMEM,
			"cannot make the kernel-side sampler's %s: %s", m->name, strerror(errno));
	fd = (uint32_t)*ret;
	if (bpf_map_update_elem(outer, &key, &fd, 0) != 0)
		return uni_err_set(err, UNI_EIO, "cannot set up the kernel-side sampler's %s: %s",
			m->name, strerror(errno));
	return 0;
}

/* A map filled with nr elements of size bytes. */
static int make_filled(const struct uni_observer_map *m, int outer, int guest, const void *data,
	int *ret, struct uni_err *err)
{
	size_t bytes = (size_t)m->nr * m->value;
	int rc = make_inner_map(m, outer, guest, ret, err);
	void *p;

	if (rc != 0)
		return rc;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *ret, 0);
	if (p == MAP_FAILED)
		return uni_err_set(
			err, UNI_ENOMEM, "cannot map the kernel-side sampler's %s", m->name);
	memcpy(p, data, bytes);
	(void)munmap(p, bytes);
	return 0;
}

static int make_text(
	struct uni_kvm_stream *s, const struct uni_kvm_stream_opts *opts, struct uni_err *err)
{
	struct uni_observer_map text = { "uni_text", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
		sizeof(struct uni_bpf_text), 0, F_MMAPABLE | F_INNER_MAP };
	struct uni_observer_map cfi = { "uni_cfi", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
		sizeof(struct uni_bpf_cfi), 0, F_MMAPABLE | F_INNER_MAP };
	struct uni_kvm_text t;
	int rc;

	if (opts->hints == NULL || opts->hints->text_size == 0)
		return 0;
	rc = uni_kvm_text_make(opts->arch, opts->hints, &opts->code, &t, err);
	if (rc != 0)
		return rc;
	text.nr = (uint32_t)t.nr;
	cfi.nr = (uint32_t)t.nr_cfi;
	rc = make_filled(&text, s->bpf->texts_fd, s->guest, t.text, &s->text_fd, err);
	if (rc == 0 && t.nr_cfi != 0) {
		rc = make_filled(&cfi, s->bpf->cfis_fd, s->guest, t.cfi, &s->cfi_fd, err);
		s->bpf->guest[s->guest].flags |= UNI_BPF_CFI;
	}
	s->taken = t.taken;
	t.taken = (struct uni_kvm_taken){ 0 };
	uni_kvm_text_free(&t);
	return rc;
}

int uni_kvm_stream_make_maps(
	struct uni_kvm_stream *s, const struct uni_kvm_stream_opts *opts, struct uni_err *err)
{
	const struct uni_observer_map chains = { "uni_chains", BPF_MAP_TYPE_HASH,
		sizeof(struct uni_bpf_chain_key), sizeof(uint32_t), MAX_CHAINS, 0 };
	const struct uni_observer_map counts = { "uni_counts", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t),
		UNI_BPF_STATES * sizeof(uint64_t), MAX_CHAINS, F_MMAPABLE | F_INNER_MAP };
	const struct uni_observer_map ring = { "uni_ring", BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES,
		0 };
	void *p;
	int rc = make_text(s, opts, err);

	if (rc == 0)
		rc = make_inner_map(&chains, s->bpf->chains_fd, s->guest, &s->chains_fd, err);
	if (rc == 0)
		rc = make_inner_map(&counts, s->bpf->counts_fd, s->guest, &s->counts_fd, err);
	if (rc == 0)
		rc = make_inner_map(&ring, s->bpf->rings_fd, s->guest, &s->ring_fd, err);
	if (rc != 0)
		return rc;
	p = mmap(NULL, COUNTS_LEN, PROT_READ, MAP_SHARED, s->counts_fd, 0);
	if (p == MAP_FAILED)
		return uni_err_set(
			err, UNI_ENOMEM, "cannot map the kernel-side sampler's counters");
	s->counts = p;
	s->ring = ring_buffer__new(s->ring_fd, uni_kvm_stream_record, s, NULL);
	if (s->ring == NULL)
		return uni_err_set(err, UNI_ENOMEM, "cannot map the kernel-side sampler's ring");
	s->bpf->guest[s->guest].max_chains = MAX_CHAINS;
	return 0;
}

static void drop_inner_map(int outer, int guest, int fd)
{
	uint32_t key = (uint32_t)guest;

	if (fd < 0)
		return;
	(void)bpf_map_delete_elem(outer, &key);
	(void)close(fd);
}

void uni_kvm_stream_free_maps(struct uni_kvm_stream *s)
{
	ring_buffer__free(s->ring);
	if (s->counts != NULL)
		(void)munmap((void *)(uintptr_t)s->counts, COUNTS_LEN);
	drop_inner_map(s->bpf->texts_fd, s->guest, s->text_fd);
	drop_inner_map(s->bpf->cfis_fd, s->guest, s->cfi_fd);
	drop_inner_map(s->bpf->chains_fd, s->guest, s->chains_fd);
	drop_inner_map(s->bpf->counts_fd, s->guest, s->counts_fd);
	drop_inner_map(s->bpf->rings_fd, s->guest, s->ring_fd);
}
