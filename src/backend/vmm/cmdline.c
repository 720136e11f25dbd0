/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/cmdline.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "backend/vmm/vmms.h"
#include "uniscope/exact.h"

#define NR_ARGS_MAX	4096
#define NR_MONITORS_MAX 8

static void set_text(char *out, size_t cap, const char *s)
{
	(void)uni_text_clean(out, cap, s, strlen(s));
}

/*
 * The value of `key` in "first,key=value,...", in which ',,' stands for ','. The first part may
 * lack its key: then it belongs to `implied` (NULL: to none). The last one counts, as in the VMMs.
 */
static bool get_key(const char *s, const char *key, const char *implied, char *out, size_t cap)
{
	bool found = false, first = true;

	while (*s != '\0') {
		size_t len = strcspn(s, ",="), o = 0;
		bool has_key = s[len] == '=';
		bool hit = has_key ? strlen(key) == len && memcmp(s, key, len) == 0
				   : first && implied != NULL && strcmp(key, implied) == 0;

		if (has_key)
			s += len + 1;
		for (; *s != '\0' && (*s != ',' || s[1] == ','); s++) {
			if (*s == ',')
				s++;
			if (hit && o < cap - 1)
				out[o++] = *s;
		}
		if (hit)
			out[o] = '\0';
		found = found || hit;
		s += *s == ',';
		first = false;
	}
	return found;
}

static void set_mem(const char *value, bool mib, struct uni_vmm_cmdline *ret)
{
	char text[64];
	uint64_t v;
	size_t n;

	if (!get_key(value, "size", "size", text, sizeof(text)) || !uni_parse_size(text, &v))
		return;
	n = strlen(text);
	if (mib && text[n - 1] >= '0' && text[n - 1] <= '9' &&
		__builtin_mul_overflow(v, 1ull << 20, &v))
		return;
	ret->mem_bytes = v;
}

static void set_cpus(const char *value, struct uni_vmm_cmdline *ret)
{
	/* The first is the short form "4"; each VMM has its own word for the same. */
	static const char *const words[] = { "cpus", "boot", "num-cores" };
	static const char *const shape[] = { "sockets", "dies", "clusters", "cores", "threads" };
	char text[32];
	uint64_t v, product = 1;
	bool any = false;

	for (size_t i = 0; i < uni_array_len(words); i++) {
		if (get_key(value, words[i], "cpus", text, sizeof(text)) &&
			uni_parse_u64(text, &v) && v <= UINT32_MAX) {
			ret->nr_vcpus = (uint32_t)v;
			return;
		}
	}
	for (size_t i = 0; i < uni_array_len(shape); i++) {
		if (!get_key(value, shape[i], NULL, text, sizeof(text)))
			continue;
		if (!uni_parse_u64(text, &v) || __builtin_mul_overflow(product, v, &product))
			return;
		any = true;
	}
	if (any && product <= UINT32_MAX)
		ret->nr_vcpus = (uint32_t)product;
}

static void set_accel(const char *list, struct uni_vmm_cmdline *ret)
{
	/* -accel may be repeated, and accel= may have a list: the first one that works is used. */
	size_t n = strcspn(list, ":");

	ret->only_kvm = ret->accel[0] == '\0' && strcmp(list, "kvm") == 0;
	if (ret->accel[0] == '\0')
		(void)uni_text_clean(ret->accel, sizeof(ret->accel), list, n);
}

static void set_machine(const char *value, struct uni_vmm_cmdline *ret)
{
	char text[64];

	if (get_key(value, "type", "type", text, sizeof(text)))
		set_text(ret->machine, sizeof(ret->machine), text);
	if (get_key(value, "accel", NULL, text, sizeof(text)))
		set_accel(text, ret);
	if (get_key(value, "max-ram-below-4g", NULL, text, sizeof(text)))
		(void)uni_parse_size(text, &ret->max_below_4g);
}

static void set_name(const char *value, struct uni_vmm_cmdline *ret)
{
	char text[sizeof(ret->name)];

	if (get_key(value, "guest", "guest", text, sizeof(text)))
		set_text(ret->name, sizeof(ret->name), text);
}

/*
 * Converts a character device of QEMU, "unix:PATH,server=on" or "tcp:HOST:PORT,...", to keys of a
 * target. A path with a comma would need quoting twice: it stays unknown.
 */
static void set_socket(
	const char *value, char *unix_ret, size_t unix_cap, char *tcp_ret, size_t tcp_cap)
{
	size_t len = strcspn(value, ",");
	char text[256], host[200], address[256];
	const char *port;

	if (len >= sizeof(text) || (value[len] != '\0' && value[len + 1] == ','))
		return;
	memcpy(text, value, len);
	text[len] = '\0';
	if (strncmp(text, "unix:", 5) == 0) {
		set_text(unix_ret, unix_cap, text + 5);
	} else if (strncmp(text, "tcp:", 4) == 0) {
		port = strrchr(text + 4, ':');
		if (port == NULL)
			return;
		(void)snprintf(host, sizeof(host), "%.*s", (int)(port - text - 4), text + 4);
		(void)snprintf(address, sizeof(address), "%s:%.16s",
			host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : host,
			port + 1);
		set_text(tcp_ret, tcp_cap, address);
	}
}

/* "PATH", "path=PATH" or "fd=N" (the latter two are Cloud Hypervisor's). */
static void set_api(const char *value, struct uni_vmm_cmdline *ret)
{
	char text[sizeof(ret->api)];

	ret->api[0] = '\0';
	if (get_key(value, "path", "path", text, sizeof(text)))
		set_text(ret->api, sizeof(ret->api), text);
}

static void set_plugin(const char *value, struct uni_vmm_cmdline *ret)
{
	char file[UNI_VMM_PATH_MAX], out[UNI_VMM_PATH_MAX];
	const char *slash;

	if (!get_key(value, "file", "file", file, sizeof(file)) ||
		!get_key(value, "out", NULL, out, sizeof(out)))
		return;
	slash = strrchr(file, '/');
	if (strcmp(slash != NULL ? slash + 1 : file, UNI_EXACT_PLUGIN) == 0)
		set_text(ret->exact, sizeof(ret->exact), out);
}

static void apply_field(enum uni_vmm_field field, const char *value, struct uni_vmm_cmdline *ret)
{
	char text[64];

	switch (field) {
	case UNI_VMM_SKIP:
	case UNI_VMM_FLAG:
		break;
	case UNI_VMM_NAME:
		set_name(value, ret);
		break;
	case UNI_VMM_ID:
		set_text(ret->name, sizeof(ret->name), value);
		break;
	case UNI_VMM_IMAGE:
		set_text(ret->image, sizeof(ret->image), value);
		break;
	case UNI_VMM_FIRMWARE:
		if (ret->image[0] == '\0') /* a kernel that comes later goes first */
			set_text(ret->image, sizeof(ret->image), value);
		break;
	case UNI_VMM_CONFIG:
		set_text(ret->config, sizeof(ret->config), value);
		break;
	case UNI_VMM_OPAQUE:
		ret->opaque = true;
		break;
	case UNI_VMM_MEM_MIB:
	case UNI_VMM_MEM:
		set_mem(value, field == UNI_VMM_MEM_MIB, ret);
		break;
	case UNI_VMM_CPUS:
		set_cpus(value, ret);
		break;
	case UNI_VMM_ACCEL:
		if (get_key(value, "accel", "accel", text, sizeof(text)))
			set_accel(text, ret);
		break;
	case UNI_VMM_MACHINE:
		set_machine(value, ret);
		break;
	case UNI_VMM_PLATFORM:
		if (get_key(value, "tdx", NULL, text, sizeof(text)) ||
			get_key(value, "sev_snp", NULL, text, sizeof(text)))
			ret->confidential = ret->confidential || strcmp(text, "off") != 0;
		break;
	case UNI_VMM_GDB:
		set_socket(value, ret->gdb_unix, sizeof(ret->gdb_unix), ret->gdb_tcp,
			sizeof(ret->gdb_tcp));
		break;
	case UNI_VMM_FLAG_GDB:
		set_text(ret->gdb_tcp, sizeof(ret->gdb_tcp), "127.0.0.1:1234");
		break;
	case UNI_VMM_QMP:
		set_socket(value, ret->qmp, sizeof(ret->qmp), ret->qmp_tcp, sizeof(ret->qmp_tcp));
		break;
	case UNI_VMM_PLUGIN:
		set_plugin(value, ret);
		break;
	case UNI_VMM_API:
		set_api(value, ret);
		break;
	case UNI_VMM_FLAG_KVM:
		set_accel("kvm", ret);
		break;
	case UNI_VMM_FLAG_HIDDEN:
		ret->confidential = true;
		break;
	case UNI_VMM_FLAG_NO_API:
		ret->api[0] = '\0';
		break;
	}
}

/*
 * The words of every interface that makes a guest whose registers KVM hides. A file with such a
 * name counts, too: a wrong refusal does little harm, a killed guest does much.
 */
static bool names_confidential(const char *arg)
{
	static const char *const words[] = { "sev-guest", "sev-snp-guest", "tdx-guest",
		"confidential-guest-support", "memory-encryption", "igvm-cfg", "/dev/sev" };

	for (size_t i = 0; i < uni_array_len(words); i++) {
		if (strstr(arg, words[i]) != NULL)
			return true;
	}
	return false;
}

struct args {
	const char *data;
	size_t size, pos;
};

/* The next argument, NUL-terminated inside data, or NULL. */
static const char *next_arg(struct args *a)
{
	const char *s = a->data + a->pos, *end;

	if (a->pos >= a->size)
		return NULL;
	end = memchr(s, '\0', a->size - a->pos);
	if (end == NULL) { /* cut off: may be incomplete */
		a->pos = a->size;
		return NULL;
	}
	a->pos += (size_t)(end - s) + 1;
	return s;
}

static const struct uni_vmm_opt *find_opt(
	const struct uni_vmm_kind *v, const char *arg, const char **value_ret)
{
	const char *name = arg + 1 + (arg[1] == '-');
	size_t len = strcspn(name, "=");

	/* Only GNU style has --name=value: QEMU's -m size=1 is two arguments. */
	*value_ret = name[len] == '=' && arg[1] == '-' ? name + len + 1 : NULL;
	for (size_t i = 0; i < v->nr_opts; i++) {
		if (strlen(v->opts[i].name) == len && memcmp(v->opts[i].name, name, len) == 0)
			return &v->opts[i];
	}
	return NULL;
}

/* The value of the next option of that name; NULL: there is none. */
static const char *next_value(struct args *a, const char *option)
{
	const char *arg;

	while ((arg = next_arg(a)) != NULL) {
		if (arg[0] == '-' && strcmp(arg + 1 + (arg[1] == '-'), option) == 0)
			return next_arg(a);
	}
	return NULL;
}

/* The one who started it, as libvirt does, opened the socket: its path is not here. */
static bool take_passed(const char *dev, char *ret, size_t cap)
{
	char fd[16];

	if (!get_key(dev, "fd", NULL, fd, sizeof(fd)))
		return false;
	(void)snprintf(ret, cap, UNI_VMM_PASSED "%s", fd);
	return true;
}

/*
 * -chardev socket,id=ID,path=PATH,server=on and -mon chardev=ID,mode=control: the long form of
 * -qmp.
 */
static void find_monitor(const struct args *all, struct uni_vmm_cmdline *ret)
{
	struct args mons = { .data = all->data, .size = all->size };
	char id[64], other[64], mode[16], path[sizeof(ret->qmp)], host[64], port[16], tcp[96];
	const char *mon, *dev;

	for (unsigned n = 0; n < NR_MONITORS_MAX && ret->qmp[0] == '\0'; n++) {
		struct args devs = { .data = all->data, .size = all->size };

		mon = next_value(&mons, "mon");
		if (mon == NULL)
			return;
		path[0] = '\0';
		if (!get_key(mon, "mode", NULL, mode, sizeof(mode)) ||
			strcmp(mode, "control") != 0 ||
			!get_key(mon, "chardev", "chardev", id, sizeof(id)))
			continue;
		while ((dev = next_value(&devs, "chardev")) != NULL) {
			if (strncmp(dev, "socket,", 7) == 0 && strstr(dev, ",server") != NULL &&
				strstr(dev, ",server=off") == NULL && strstr(dev, ",,") == NULL &&
				get_key(dev, "id", NULL, other, sizeof(other)) &&
				strcmp(id, other) == 0 &&
				!get_key(dev, "path", NULL, path, sizeof(path)) &&
				!take_passed(dev, path, sizeof(path)) &&
				get_key(dev, "port", NULL, port, sizeof(port)) &&
				get_key(dev, "host", NULL, host, sizeof(host))) {
				(void)snprintf(tcp, sizeof(tcp), "tcp:%s:%s", host, port);
				set_socket(tcp, path, sizeof(path), ret->qmp_tcp,
					sizeof(ret->qmp_tcp));
			}
		}
		set_text(ret->qmp, sizeof(ret->qmp), path);
	}
}

struct words {
	const char *run;    /* the sub-command */
	const char *first;  /* the first argument behind it, or the first of all if there is none */
	const char *unsure; /* was taken for the value of an unknown option */
};

static void parse_option(const struct uni_vmm_kind *v, const char *arg, struct args *a,
	struct words *w, struct uni_vmm_cmdline *ret)
{
	const char *value;
	const struct uni_vmm_opt *o = find_opt(v, arg, &value);

	if (o == NULL) {
		struct args look = *a;
		const char *next = value == NULL && v->values ? next_arg(&look) : NULL;

		ret->confidential = ret->confidential || names_confidential(arg);
		if (next != NULL && next[0] != '-') {
			ret->confidential = ret->confidential || names_confidential(next);
			w->unsure = next;
			*a = look;
		}
		return;
	}
	if (o->field >= UNI_VMM_FLAG)
		value = "";
	if (value == NULL)
		value = next_arg(a);
	if (value == NULL)
		return;
	if (o->field == UNI_VMM_MACHINE && names_confidential(value))
		ret->confidential = true;
	apply_field(o->field, value, ret);
}

static void take_word(
	const struct uni_vmm_kind *v, const char *arg, struct words *w, struct uni_vmm_cmdline *ret)
{
	if (v->image != UNI_VMM_POS_FIRST && names_confidential(arg))
		ret->confidential = true;
	if (v->image == UNI_VMM_POS_BEHIND && w->run == NULL)
		w->run = arg;
	else if (w->first == NULL)
		w->first = arg;
}

static void parse_args(const struct uni_vmm_kind *v, struct args *a, struct uni_vmm_cmdline *ret)
{
	struct words w = { 0 };
	bool options = true;
	const char *arg;

	for (size_t n = 0; n < NR_ARGS_MAX && (arg = next_arg(a)) != NULL; n++) {
		if (options && strcmp(arg, "--") == 0)
			options = false;
		else if (options && arg[0] == '-' && arg[1] != '\0')
			parse_option(v, arg, a, &w, ret);
		else
			take_word(v, arg, &w, ret);
		/* After solo5's image come the guest's own arguments. */
		if (v->image == UNI_VMM_POS_FIRST && w.first != NULL)
			break;
	}
	if (v->image == UNI_VMM_POS_NONE)
		return;
	if (w.first == NULL)
		w.first = w.unsure;
	if (w.first != NULL && (v->image == UNI_VMM_POS_FIRST || ret->image[0] == '\0'))
		set_text(ret->image, sizeof(ret->image), w.first);
}

/* Sets the VMM's defaults, only if the command line is complete. */
static void set_defaults(const struct uni_vmm_kind *v, struct uni_vmm_cmdline *ret)
{
	bool told = strcmp(v->name, "qemu") == 0 || ret->image[0] != '\0';

	if (ret->opaque || ret->config[0] != '\0' || !told)
		return;
	ret->default_mem_bytes = (uint64_t)v->mem_mib << 20;
	ret->default_vcpus = v->cpus;
}

void uni_vmm_cmdline_parse(
	const void *data, size_t size, const char *exe, struct uni_vmm_cmdline *ret)
{
	struct args a = { .data = data, .size = size };
	const struct uni_vmm_kind *v = uni_vmm_kind_of(exe);
	const char *argv0 = next_arg(&a);

	memset(ret, 0, sizeof(*ret));
	if (v == NULL && exe[0] == '\0' && argv0 != NULL)
		v = uni_vmm_kind_of(argv0);
	if (v == NULL)
		return;
	set_text(ret->vmm, sizeof(ret->vmm), v->name);
	if (v->api != NULL)
		set_text(ret->api, sizeof(ret->api), v->api);
	ret->only_kvm = strcmp(v->accel, "kvm") == 0 && strcmp(v->name, "qemu") != 0;
	parse_args(v, &a, ret);
	if (ret->qmp[0] == '\0' && strcmp(v->name, "qemu") == 0)
		find_monitor(&a, ret);
	set_defaults(v, ret);
	if (ret->accel[0] == '\0')
		set_text(ret->accel, sizeof(ret->accel), v->accel);
}
