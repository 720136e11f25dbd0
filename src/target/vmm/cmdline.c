/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/vmm/cmdline.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define NR_ARGS_MAX 4096

/* What the value of an option means. */
enum field {
	F_SKIP, /* takes a value that must not be mistaken for an option */
	F_NAME,
	F_ID, /* the guest's name, whole */
	F_IMAGE,
	F_CONFIG,
	F_OPAQUE,
	F_MEM_MIB, /* a number without a suffix is MiB */
	F_MEM,	   /* ... is bytes */
	F_CPUS,
	F_ACCEL,
	F_MACHINE,
	F_PLATFORM,
	F_GDB,
	F_QMP,
	F_KVM,	/* no value */
	F_GDB1, /* no value: the stub's usual port */
};

struct opt {
	const char *name; /* without dashes */
	enum field field;
};

/* Where the image stands when it is no option's value. */
enum positional { POS_NONE, POS_FIRST, POS_LAST };

struct vmm {
	const char *name;
	const char *exe; /* start of the executable's name */
	const char *accel;
	const struct opt *opts;
	size_t nr_opts;
	enum positional image;
};

static const struct opt qemu_opts[] = {
	{ "name", F_NAME },
	{ "kernel", F_IMAGE },
	{ "m", F_MEM_MIB },
	{ "smp", F_CPUS },
	{ "accel", F_ACCEL },
	{ "machine", F_MACHINE },
	{ "M", F_MACHINE },
	{ "enable-kvm", F_KVM },
	{ "append", F_SKIP },
	{ "initrd", F_SKIP },
	{ "readconfig", F_OPAQUE },
	{ "gdb", F_GDB },
	{ "s", F_GDB1 },
	{ "qmp", F_QMP },
	{ "qmp-pretty", F_QMP },
};
static const struct opt firecracker_opts[] = {
	{ "config-file", F_CONFIG },
	{ "id", F_ID },
	{ "api-sock", F_SKIP },
};
static const struct opt ch_opts[] = {
	{ "kernel", F_IMAGE },
	{ "firmware", F_SKIP },
	{ "memory", F_MEM },
	{ "cpus", F_CPUS },
	{ "platform", F_PLATFORM },
	{ "cmdline", F_SKIP },
};
static const struct opt crosvm_opts[] = {
	{ "m", F_MEM_MIB },
	{ "mem", F_MEM_MIB },
	{ "c", F_CPUS },
	{ "cpus", F_CPUS },
	{ "name", F_ID },
	{ "p", F_SKIP },
	{ "params", F_SKIP },
};
static const struct opt kvmtool_opts[] = {
	{ "k", F_IMAGE },
	{ "kernel", F_IMAGE },
	{ "m", F_MEM_MIB },
	{ "mem", F_MEM_MIB },
	{ "c", F_CPUS },
	{ "cpus", F_CPUS },
	{ "name", F_ID },
	{ "n", F_SKIP },
	{ "p", F_SKIP },
	{ "params", F_SKIP },
};
static const struct opt solo5_opts[] = {
	{ "mem", F_MEM_MIB },
};

#define OPTS(t) .opts = (t), .nr_opts = uni_array_len(t)
static const struct vmm vmms[] = {
	{ "qemu", "qemu-system-", "", OPTS(qemu_opts), POS_NONE },
	{ "qemu", "qemu-kvm", "kvm", OPTS(qemu_opts), POS_NONE },
	{ "firecracker", "firecracker", "kvm", OPTS(firecracker_opts), POS_NONE },
	{ "cloud-hypervisor", "cloud-hypervisor", "kvm", OPTS(ch_opts), POS_NONE },
	{ "crosvm", "crosvm", "kvm", OPTS(crosvm_opts), POS_LAST },
	{ "kvmtool", "lkvm", "kvm", OPTS(kvmtool_opts), POS_NONE },
	{ "kvmtool", "kvmtool", "kvm", OPTS(kvmtool_opts), POS_NONE },
	{ "solo5-hvt", "solo5-hvt", "kvm", OPTS(solo5_opts), POS_FIRST },
};

static const struct vmm *find_vmm(const char *exe)
{
	const char *slash = strrchr(exe, '/');
	const char *base = slash != NULL ? slash + 1 : exe;

	for (size_t i = 0; i < uni_array_len(vmms); i++) {
		if (strncmp(base, vmms[i].exe, strlen(vmms[i].exe)) == 0)
			return &vmms[i];
	}
	return NULL;
}

const char *uni_vmm_of_exe(const char *exe)
{
	const struct vmm *v = find_vmm(exe);

	return v != NULL ? v->name : NULL;
}

static void set_text(char *out, size_t cap, const char *s)
{
	(void)uni_text_clean(out, cap, s, strlen(s));
}

/*
 * Value of `key` in "first,key=value,..." where ',,' stands for ','. The first part may lack its
 * key: it then belongs to `implied` (NULL: to none). The last one wins, as with the VMMs.
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
	/* -accel may be repeated and accel= may hold a list: the first that works is taken. */
	size_t n = strcspn(list, ":");

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
 * A character device of QEMU, "unix:PATH,server=on" or "tcp:HOST:PORT,...", as keys of a target.
 * A path with a comma would need quoting twice: such a one stays unknown.
 */
static void set_socket(
	const char *value, char *unix_ret, size_t unix_cap, char *tcp_ret, size_t tcp_cap)
{
	size_t len = strcspn(value, ",");
	char text[256], host[200];
	const char *port;

	if (len >= sizeof(text) || (value[len] != '\0' && value[len + 1] == ','))
		return;
	memcpy(text, value, len);
	text[len] = '\0';
	if (strncmp(text, "unix:", 5) == 0) {
		set_text(unix_ret, unix_cap, text + 5);
	} else if (strncmp(text, "tcp:", 4) == 0 && tcp_ret != NULL) {
		port = strrchr(text + 4, ':');
		if (port == NULL)
			return;
		(void)snprintf(host, sizeof(host), "%.*s", (int)(port - text - 4), text + 4);
		(void)snprintf(text, sizeof(text), "%s:%.16s",
			host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : host,
			port + 1);
		set_text(tcp_ret, tcp_cap, text);
	}
}

static void apply(enum field field, const char *value, struct uni_vmm_cmdline *ret)
{
	char text[64];

	switch (field) {
	case F_SKIP:
		break;
	case F_NAME:
		set_name(value, ret);
		break;
	case F_ID:
		set_text(ret->name, sizeof(ret->name), value);
		break;
	case F_IMAGE:
		set_text(ret->image, sizeof(ret->image), value);
		break;
	case F_CONFIG:
		set_text(ret->config, sizeof(ret->config), value);
		break;
	case F_OPAQUE:
		ret->opaque = true;
		break;
	case F_MEM_MIB:
	case F_MEM:
		set_mem(value, field == F_MEM_MIB, ret);
		break;
	case F_CPUS:
		set_cpus(value, ret);
		break;
	case F_ACCEL:
		if (get_key(value, "accel", "accel", text, sizeof(text)))
			set_accel(text, ret);
		break;
	case F_MACHINE:
		set_machine(value, ret);
		break;
	case F_PLATFORM:
		if (get_key(value, "tdx", NULL, text, sizeof(text)) ||
			get_key(value, "sev_snp", NULL, text, sizeof(text)))
			ret->confidential = ret->confidential || strcmp(text, "off") != 0;
		break;
	case F_GDB:
		set_socket(value, ret->gdb_unix, sizeof(ret->gdb_unix), ret->gdb_tcp,
			sizeof(ret->gdb_tcp));
		break;
	case F_GDB1:
		set_text(ret->gdb_tcp, sizeof(ret->gdb_tcp), "127.0.0.1:1234");
		break;
	case F_QMP:
		set_socket(value, ret->qmp, sizeof(ret->qmp), NULL, 0);
		break;
	case F_KVM:
		set_accel("kvm", ret);
		break;
	}
}

/* The words of every interface that makes a guest whose registers KVM hides. A file that merely
 * has such a name counts too: a wrong refusal is cheap, a killed guest is not. */
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
	if (end == NULL) { /* cut off: not known to be whole */
		a->pos = a->size;
		return NULL;
	}
	a->pos += (size_t)(end - s) + 1;
	return s;
}

static const struct opt *find_opt(const struct vmm *v, const char *arg, const char **value_ret)
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

static void parse_option(
	const struct vmm *v, const char *arg, struct args *a, struct uni_vmm_cmdline *ret)
{
	const char *value;
	const struct opt *o = find_opt(v, arg, &value);

	if (o == NULL) {
		ret->confidential = ret->confidential || names_confidential(arg);
		return;
	}
	if (o->field == F_KVM || o->field == F_GDB1)
		value = "";
	if (value == NULL)
		value = next_arg(a);
	if (value == NULL)
		return;
	if (o->field == F_MACHINE && names_confidential(value))
		ret->confidential = true;
	apply(o->field, value, ret);
}

static void parse_args(const struct vmm *v, struct args *a, struct uni_vmm_cmdline *ret)
{
	const char *arg, *first = NULL, *last = NULL;
	bool options = true;

	for (size_t n = 0; n < NR_ARGS_MAX && (arg = next_arg(a)) != NULL; n++) {
		if (options && strcmp(arg, "--") == 0) {
			options = false;
		} else if (options && arg[0] == '-' && arg[1] != '\0') {
			parse_option(v, arg, a, ret);
		} else {
			if (v->image != POS_FIRST && names_confidential(arg))
				ret->confidential = true;
			if (first == NULL)
				first = arg;
			last = arg;
		}
		/* Behind solo5's image stand the guest's own arguments. */
		if (v->image == POS_FIRST && first != NULL)
			break;
	}
	if (v->image == POS_FIRST && first != NULL)
		set_text(ret->image, sizeof(ret->image), first);
	if (v->image == POS_LAST && last != NULL && last != first) /* first is "run" */
		set_text(ret->image, sizeof(ret->image), last);
}

void uni_vmm_cmdline_parse(
	const void *data, size_t size, const char *exe, struct uni_vmm_cmdline *ret)
{
	struct args a = { .data = data, .size = size };
	const struct vmm *v = find_vmm(exe);
	const char *argv0 = next_arg(&a);

	memset(ret, 0, sizeof(*ret));
	if (v == NULL && exe[0] == '\0' && argv0 != NULL)
		v = find_vmm(argv0);
	if (v == NULL)
		return;
	set_text(ret->vmm, sizeof(ret->vmm), v->name);
	parse_args(v, &a, ret);
	if (ret->accel[0] == '\0')
		set_text(ret->accel, sizeof(ret->accel), v->accel);
}

bool uni_vmm_config_parse(const void *data, size_t size, struct uni_vmm_cmdline *ret)
{
	json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL);
	const char *image = json_string_value(
		json_object_get(json_object_get(root, "boot-source"), "kernel_image_path"));
	const json_t *machine = json_object_get(root, "machine-config");
	json_int_t cpus = json_integer_value(json_object_get(machine, "vcpu_count"));
	json_int_t mib = json_integer_value(json_object_get(machine, "mem_size_mib"));
	uint64_t bytes;
	bool ok = image != NULL;

	if (image != NULL && ret->image[0] == '\0')
		set_text(ret->image, sizeof(ret->image), image);
	if (cpus > 0 && cpus <= UINT32_MAX && ret->nr_vcpus == 0)
		ret->nr_vcpus = (uint32_t)cpus;
	if (mib > 0 && ret->mem_bytes == 0 &&
		!__builtin_mul_overflow((uint64_t)mib, 1ull << 20, &bytes))
		ret->mem_bytes = bytes;
	json_decref(root);
	return ok;
}
