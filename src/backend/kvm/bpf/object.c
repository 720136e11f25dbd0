/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/bpf/object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "backend/kvm/bpf/btf.h"
#include "backend/kvm/bpf/exit_progs.h"
#include "backend/kvm/bpfcheck.h"

static size_t map_bytes(size_t elems, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (elems * size + page - 1) / page * page;
}

static int map_fd(const struct bpf_object *obj, const char *name)
{
	return bpf_map__fd(bpf_object__find_map_by_name(obj, name));
}

static void *map_values(int fd, size_t elems, size_t size)
{
	void *p = mmap(NULL, map_bytes(elems, size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The verifier's log of one program: level 4 has only the reason of a refusal, and totals. */
#define LOG_LEVEL 4
#define LOG_SIZE  4096u
/* libbpf's name for a field that the kernel does not have. */
#define NO_FIELD "195896080"

static size_t count_programs(struct bpf_object *obj)
{
	struct bpf_program *p;
	size_t n = 0;

	bpf_object__for_each_program(p, obj) n++;
	return n;
}

/* Gives each program without a log a part of logs, or (NULL) takes it away. */
static void give_logs(struct bpf_object *obj, char *logs)
{
	struct bpf_program *p;
	size_t n = 0, size;

	bpf_object__for_each_program(p, obj)
	{
		if (logs != NULL && bpf_program__log_buf(p, &size) != NULL)
			continue;
		(void)bpf_program__set_log_buf(p, logs != NULL ? logs + n++ * LOG_SIZE : NULL,
			logs != NULL ? LOG_SIZE : 0);
		(void)bpf_program__set_log_level(p, logs != NULL ? LOG_LEVEL : 0);
	}
}

/* The last line that is no total; cuts the log into lines. "": there is none. */
static const char *log_last_line(char *log)
{
	static const char *const sums[] = { "processed ", "verification time ", "stack depth " };
	const char *ret = "";
	char *rest = log;

	while (rest != NULL) {
		const char *line = strsep(&rest, "\n");
		bool sum = *line == '\0';

		for (size_t i = 0; i < uni_array_len(sums); i++)
			sum = sum || strncmp(line, sums[i], strlen(sums[i])) == 0;
		if (!sum)
			ret = line;
	}
	return strstr(ret, NO_FIELD) != NULL
		       ? "it needs a field that this kernel's types do not have"
		       : ret;
}

/* Programs are loaded one after the other: the last one with a log was refused. */
static void say_refusal(struct bpf_object *obj, char *logs, int r, struct uni_err *err)
{
	const char *name = NULL, *line = "";
	struct bpf_program *p;
	size_t n = 0;

	bpf_object__for_each_program(p, obj)
	{
		char *log = logs + n++ * LOG_SIZE;

		if (log[0] == '\0')
			continue;
		log[LOG_SIZE - 1] = '\0';
		name = bpf_program__name(p);
		line = log_last_line(log);
	}
	if (name == NULL || line[0] == '\0')
		(void)uni_err_set(err, UNI_ENOTSUP, "the kernel refuses uniscope's programs: %s",
			strerror(-r));
	else
		(void)uni_err_set(err, UNI_ENOTSUP,
			"the kernel's verifier refuses the program %s: %.160s", name, line);
}

/* Returns 0, or -errno with the reason in err. */
static int load_programs(struct bpf_object *obj, struct uni_err *err)
{
	_cleanup_free_ char *logs = calloc(count_programs(obj) + 1, LOG_SIZE);
	int r;

	if (logs == NULL)
		return uni_err_nomem(err);
	give_logs(obj, logs);
	r = bpf_object__load(obj);
	if (r != 0)
		say_refusal(obj, logs, r, err);
	give_logs(obj, NULL);
	return r;
}

/* types: a file with types of the kernel; -1: the library looks for all of them. */
static struct bpf_object *open_bytes(const void *data, size_t size, const char *name, int types)
{
	struct bpf_object_open_opts opts;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", types);
	memset(&opts, 0, sizeof(opts)); /* also the padding, which the library checks */
	opts.sz = sizeof(opts);
	opts.object_name = name;
	opts.btf_custom_path = types >= 0 ? path : NULL;
	return bpf_object__open_mem(data, size, &opts);
}

struct bpf_object *uni_kvm_bpf_open(const void *data, size_t size, const char *name,
	int (*set_up)(struct bpf_object *obj, void *ctx), void *ctx, struct uni_err *err)
{
	_cleanup_close_ int types = memfd_create("uniscope-btf", MFD_CLOEXEC);
	struct bpf_object *obj;
	int r = 0;

	(void)libbpf_set_print(NULL); /* a library must not print */
	obj = open_bytes(data, size, name, types);
	if (obj != NULL && types >= 0 && uni_kvm_btf_write(types, bpf_object__btf(obj)) != 0) {
		bpf_object__close(obj);
		obj = open_bytes(data, size, name, -1);
	}
	if (obj == NULL)
		r = -errno;
	if (obj != NULL && set_up != NULL)
		r = set_up(obj, ctx);
	if (r != 0)
		(void)uni_err_set(
			err, UNI_ENOTSUP, "libbpf refuses uniscope's programs: %s", strerror(-r));
	else
		r = load_programs(obj, err);
	if (r == 0)
		return obj;
	bpf_object__close(obj);
	return NULL;
}

/* A missing right or feature, if known, says more than the error that a program then met. */
static int open_object(struct uni_kvm_bpf *b, struct uni_err *err)
{
	struct uni_err why = { 0 };
	int rc;

	b->obj =
		uni_kvm_bpf_open(uni_bpf_object, uni_bpf_object_size, "uniscope", NULL, NULL, &why);
	if (b->obj == NULL) {
		rc = uni_kvm_bpf_check(err);
		if (rc != 0)
			return rc;
		b->plain = true;
		b->obj = uni_kvm_bpf_open(uni_bpf_plain_object, uni_bpf_plain_object_size,
			"uniscope", NULL, NULL, NULL);
	}
	if (b->obj == NULL)
		return uni_err_set(err, why.code, "%s", why.msg);
	b->event = bpf_object__find_program_by_name(b->obj, "uni_event");
	b->files = bpf_object__find_program_by_name(b->obj, "uni_files");
	b->texts_fd = map_fd(b->obj, "texts");
	b->cfis_fd = map_fd(b->obj, "cfis");
	b->chains_fd = map_fd(b->obj, "chains");
	b->counts_fd = map_fd(b->obj, "counts");
	b->rings_fd = map_fd(b->obj, "rings");
	b->guest = map_values(map_fd(b->obj, "guests"), UNI_BPF_GUESTS, sizeof(*b->guest));
	b->vcpu = map_values(map_fd(b->obj, "vcpus"), UNI_BPF_VCPUS, sizeof(*b->vcpu));
	if (b->guest == NULL || b->vcpu == NULL)
		return uni_err_set(err, UNI_ENOMEM, "cannot map the kernel-side sampler's memory");
	return 0;
}

int uni_kvm_bpf_load(struct uni_kvm_bpf **ret, struct uni_err *err)
{
	struct uni_kvm_bpf *b = calloc(1, sizeof(*b));
	int rc;

	if (b == NULL)
		return uni_err_nomem(err);
	(void)pthread_mutex_init(&b->lock, NULL);
	b->stats_fd = -1;
	rc = open_object(b, err);
	if (rc != 0) {
		uni_kvm_bpf_unload(b);
		return rc;
	}
	b->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	*ret = b;
	return 0;
}

void uni_kvm_bpf_unload(struct uni_kvm_bpf *b)
{
	if (b == NULL)
		return;
	if (b->stats_fd >= 0)
		(void)close(b->stats_fd);
	uni_kvm_exit_progs_unload(b->exits);
	if (b->guest != NULL)
		(void)munmap(b->guest, map_bytes(UNI_BPF_GUESTS, sizeof(*b->guest)));
	if (b->vcpu != NULL)
		(void)munmap(b->vcpu, map_bytes(UNI_BPF_VCPUS, sizeof(*b->vcpu)));
	bpf_object__close(b->obj);
	(void)pthread_mutex_destroy(&b->lock);
	free(b);
}

static int take_slot(struct uni_kvm_bpf *b, bool *used, int nr)
{
	int found = -1;

	(void)pthread_mutex_lock(&b->lock);
	for (int i = 0; found < 0 && i < nr; i++)
		found = used[i] ? -1 : i;
	if (found >= 0)
		used[found] = true;
	(void)pthread_mutex_unlock(&b->lock);
	return found;
}

int uni_kvm_bpf_take_guest(struct uni_kvm_bpf *b)
{
	return take_slot(b, b->guest_used, UNI_BPF_GUESTS);
}

int uni_kvm_bpf_take_vcpu(struct uni_kvm_bpf *b)
{
	return take_slot(b, b->vcpu_used, UNI_BPF_VCPUS);
}

void uni_kvm_bpf_put_guest(struct uni_kvm_bpf *b, int guest)
{
	(void)pthread_mutex_lock(&b->lock);
	memset(&b->guest[guest], 0, sizeof(b->guest[guest]));
	b->guest_used[guest] = false;
	(void)pthread_mutex_unlock(&b->lock);
}

void uni_kvm_bpf_put_vcpu(struct uni_kvm_bpf *b, int vcpu)
{
	(void)pthread_mutex_lock(&b->lock);
	memset(&b->vcpu[vcpu], 0, sizeof(b->vcpu[vcpu]));
	b->vcpu_used[vcpu] = false;
	(void)pthread_mutex_unlock(&b->lock);
}

void uni_kvm_bpf_cost(const struct uni_kvm_bpf *b, uint64_t *ns_ret, uint64_t *runs_ret)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	*ns_ret = *runs_ret = 0;
	if (bpf_obj_get_info_by_fd(bpf_program__fd(b->event), &info, &len) != 0)
		return;
	*ns_ret = info.run_time_ns;
	*runs_ret = info.run_cnt;
}
