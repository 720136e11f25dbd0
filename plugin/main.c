/* SPDX-License-Identifier: BSD-2-Clause */
/* The plugin that QEMU loads: -plugin FILE,out=FILE,functions=FILE. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/plugin.h"

struct plugin plugin;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int qemu_plugin_version = 1;

/* QEMU looks at the version before it calls us: what it has tells which QEMU it is. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_register_vcpu_insn_exec_inline == NULL)
		qemu_plugin_version = qemu_plugin_read_memory_vaddr != NULL ? 4 : 3;
}

void plugin_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

void plugin_unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

static int refuse(const char *what, const char *why)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "uniscope's plugin: %s: %s\n", what, why);
	(void)fputs(line, stderr);
	return -1;
}

void plugin_end(enum uni_exact_state state)
{
	if (plugin.mode == UNI_EXACT_COUNTS)
		counts_end();
	else
		follow_end();
	__atomic_store_n(&plugin.area.header->state, state, __ATOMIC_RELEASE);
}

static void at_exit(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	plugin_lock();
	plugin_end(UNI_EXACT_ENDED);
	plugin_unlock();
}

static const char *value_of(const char *arg, const char *name)
{
	size_t len = strlen(name);

	return strncmp(arg, name, len) == 0 && arg[len] == '=' ? arg + len + 1 : NULL;
}

static bool address_of(const char *arg, const char *name, uint64_t *ret)
{
	const char *value = value_of(arg, name);
	char *end = NULL;

	if (value == NULL || value[0] < '0' || value[0] > '9')
		return false;
	*ret = strtoull(value, &end, 0);
	return *end == '\0';
}

/* Files, and what is wanted of the calls. */
struct options {
	const char *out, *functions, *calls;
	bool no_host_times;
};

static bool mode_of(const char *arg)
{
	static const char *const names[] = {
		[UNI_EXACT_COUNTS] = "counts",
		[UNI_EXACT_TREE] = "tree",
		[UNI_EXACT_TRACE] = "calls",
	};
	const char *value = value_of(arg, "mode");

	for (unsigned i = UNI_EXACT_COUNTS; value != NULL && i <= UNI_EXACT_TRACE; i++) {
		if (strcmp(value, names[i]) == 0) {
			plugin.mode = (enum uni_exact_mode)i;
			return true;
		}
	}
	return false;
}

static bool take_option(struct options *o, const char *arg)
{
	const char *value;
	uint64_t depth;

	if ((value = value_of(arg, "out")) != NULL)
		o->out = value;
	else if ((value = value_of(arg, "functions")) != NULL)
		o->functions = value;
	else if ((value = value_of(arg, "calls")) != NULL)
		o->calls = value;
	else if ((value = value_of(arg, "times")) != NULL)
		o->no_host_times = strcmp(value, "guest") == 0;
	else if (address_of(arg, "depth", &depth))
		plugin.max_depth = depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX;
	else
		return mode_of(arg) || address_of(arg, "begin", &plugin.begin_at) ||
		       address_of(arg, "end", &plugin.end_at);
	return true;
}

/* QEMU does not say how it was started, so its command line has to. */
static char line[1u << 17];
static size_t line_size;

static void line_read(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof(line)) : -1;

	if (fd >= 0)
		(void)close(fd);
	line_size = n > 0 ? (size_t)n : 0;
}

static bool has_icount(void)
{
	return memmem(line, line_size, "\0-icount", 9) != NULL ||
	       memmem(line, line_size, "\0--icount", 10) != NULL;
}

/*
 * Version 1 adds to one number for all vCPUs, so they must share a thread. With -icount they always
 * share one.
 */
static bool adds_are_lost(const qemu_info_t *info)
{
	if (plugin.mode != UNI_EXACT_COUNTS || info->system.max_vcpus <= 1 ||
		qemu_plugin_scoreboard_new != NULL)
		return false;
	return memmem(line, line_size, "thread=single", 13) == NULL && !has_icount();
}

static const struct arch *arch_of(const char *target)
{
	static const struct arch *const all[] = { &arch_x86_64, &arch_aarch64 };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i]->target, target) == 0)
			return all[i];
	}
	return NULL;
}

static int prepare(const struct options *o, const qemu_info_t *info)
{
	const char *out = o->out, *functions = o->functions, *why = "";
	int rc;

	if (area_open(&plugin.area, out, &why) != 0)
		return refuse(out, why);
	plugin.stat = plugin.area.header->stat;
	if (functions_load(&plugin.functions, &plugin.area, functions, &why) != 0)
		return refuse(functions, why);
	if (qemu_plugin_scoreboard_new != NULL)
		plugin.score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	rc = blocks_init();
	if (rc == 0)
		rc = plugin.mode == UNI_EXACT_COUNTS
			     ? counts_init()
			     : tree_init(&plugin.tree, &plugin.area, plugin.functions.nr_known);
	if (rc != 0)
		return refuse(out, "out of memory, or no room on the disk");
	follow_init();
	if (plugin.mode == UNI_EXACT_TRACE &&
		calls_open(o->calls, plugin.arch->machine, (uint32_t)info->system.max_vcpus,
			!o->no_host_times, &why) != 0)
		return refuse(o->calls, why);
	plugin.area.header->mode = plugin.mode;
	plugin.area.header->machine = plugin.arch->machine;
	plugin.area.header->nr_vcpus = (uint32_t)info->system.smp_vcpus;
	plugin.area.header->state = UNI_EXACT_RUNS;
	__atomic_store_n(&plugin.area.header->magic, UNI_EXACT_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	struct options o = { 0 };

	plugin.mode = UNI_EXACT_TREE;
	plugin.begin_at = plugin.end_at = NOWHERE;
	plugin.max_depth = UINT32_MAX;
	plugin.one_thread = info->system.max_vcpus <= 1;
	line_read();
	/* Version 1 is of QEMU before 9. If the command line cannot be read, it may have -icount.
	 */
	plugin.restarts = qemu_plugin_scoreboard_new != NULL || line_size == 0 || has_icount();
	for (int i = 0; i < argc; i++) {
		if (!take_option(&o, argv[i]))
			return refuse(argv[i],
				"options are out=, functions=, calls=, times=host|guest, depth=, "
				"mode=counts|tree|calls, begin= and end=");
	}
	if (o.out == NULL || o.functions == NULL)
		return refuse("options", "out=FILE and functions=FILE are needed");
	if (plugin.mode == UNI_EXACT_TRACE && o.calls == NULL)
		return refuse("options", "mode=calls needs calls=FILE");
	plugin.arch = arch_of(info->target_name);
	if (!info->system_emulation || plugin.arch == NULL)
		return refuse(
			info->target_name, "only guests of x86_64 and aarch64 can be followed");
	if (info->system.max_vcpus > VCPU_MAX)
		return refuse("-smp", "too many vCPUs");
	if (adds_are_lost(info))
		return refuse("mode=counts",
			"several vCPUs have to share a thread, or additions are lost: give QEMU "
			"-accel tcg,thread=single");
	if (prepare(&o, info) != 0)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translate);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
