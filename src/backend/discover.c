/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/vmm/proc.h"

void uni_guest_name(const struct uni_target_info *info, char ret[UNI_GUEST_NAME_MAX])
{
	const char *slash = strrchr(info->image, '/');
	const char *base = slash != NULL ? slash + 1 : info->image;
	size_t len = strlen(base);
	uint64_t number;

	(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%s", info->name);
	if (ret[0] != '\0')
		return;
	if (len > 4 && strcmp(base + len - 4, ".elf") == 0)
		len -= 4;
	if (len >= UNI_GUEST_NAME_MAX)
		return;
	(void)snprintf(ret, UNI_GUEST_NAME_MAX, "%.*s", (int)len, base);
	/* These names would be taken for a pid or for a target. */
	if (uni_parse_u64(ret, &number) || strchr(ret, ':') != NULL)
		ret[0] = '\0';
}

#define NR_WAYS 2 /* those that choose() may take */

/* A backend and its state on this host: asked once, and only if a guest needs it. */
struct reach {
	const struct uni_target_ops *ops;
	struct uni_host_way way[NR_WAYS];
	uint32_t nr; /* 0: not asked yet */
};

/* This may take long: kvm: loads its programs into the kernel. */
static void ask_host(struct reach *r)
{
	const struct uni_target_ops *ops = r->ops;
	struct uni_err err = { 0 };

	if (r->nr != 0)
		return;
	if (ops->host_ways != NULL) {
		r->nr = ops->host_ways(r->way, NR_WAYS);
		return;
	}
	r->nr = 1;
	r->way[0] = (struct uni_host_way){ .name = ops->scheme, .summary = ops->summary };
	r->way[0].ok = ops->host_check == NULL || ops->host_check(&err) == 0;
	(void)snprintf(r->way[0].advice, sizeof(r->way[0].advice), "%s", err.msg);
}

/* Would this backend reach the guest? why_ret has the reason in both cases. */
static bool try_backend(
	struct reach *r, const char *keys, struct uni_found *f, char *why_ret, size_t cap)
{
	int n = 0;

	ask_host(r);
	if (!r->way[0].ok) {
		(void)snprintf(why_ret, cap, "%s", r->way[0].advice);
		return false;
	}
	(void)snprintf(why_ret, cap, "%s", r->ops->summary);
	if (r->ops->choose != NULL)
		n = r->ops->choose(&f->info, r->way, r->nr, why_ret, cap);
	if (n < 0)
		return false;
	(void)snprintf(f->way, sizeof(f->way), "%s", r->way[n].name);
	(void)snprintf(f->spec, sizeof(f->spec), "%s:%s", r->ops->scheme, keys);
	return true;
}

/* No backend claims it. */
static void advise_start(const struct uni_target_info *in, char *ret, size_t cap)
{
	if (in->qmp_tcp[0] != '\0')
		(void)snprintf(ret, cap,
			"its monitor is at TCP, %s: the monitor's command `gdbserver "
			"tcp:127.0.0.1:1234` gives gdb:tcp=127.0.0.1:1234; uniscope itself needs "
			"-qmp unix:PATH,server=on,wait=off",
			in->qmp_tcp);
	else
		(void)snprintf(ret, cap, "no backend of this build reaches it%s",
			strcmp(in->vmm, "qemu") == 0
				? ": start QEMU with -gdb unix:PATH,server=on,wait=off, or with "
				  "-qmp"
				: "");
}

/* `record` takes exact counts without any backend. */
static void prefer_counts(struct uni_found *f)
{
	char samples[sizeof(f->why)];

	if (f->info.counts[0] == '\0')
		return;
	(void)snprintf(samples, sizeof(samples), "%s", f->why);
	(void)snprintf(f->way, sizeof(f->way), "exact");
	(void)snprintf(f->why, sizeof(f->why),
		"QEMU counts every instruction with our plugin, and `uniscope record %d` takes the "
		"counts; for samples: %.800s",
		f->info.pid, samples);
}

static void choose_backend(struct reach *reach, size_t nr, struct uni_found *f)
{
	char keys[300], why[640];
	size_t len = 0;

	advise_start(&f->info, f->why, sizeof(f->why));
	for (size_t i = 0; i < nr; i++) {
		const struct uni_target_ops *ops = reach[i].ops;
		int n;

		if (ops->complete != NULL)
			ops->complete(&f->info);
		if (ops->claims == NULL || !ops->claims(&f->info, keys, sizeof(keys)))
			continue;
		if (try_backend(&reach[i], keys, f, why, sizeof(why))) {
			(void)snprintf(f->why, sizeof(f->why), "%s", why);
			return;
		}
		n = snprintf(f->why + len, sizeof(f->why) - len, "%s%s: %s", len != 0 ? "; " : "",
			ops->scheme, why);
		if (n > 0 && (size_t)n < sizeof(f->why) - len)
			len += (size_t)n;
	}
}

static int list_backends(struct reach **ret, size_t *nr_ret, struct uni_err *err)
{
	size_t nr = 0;

	while (uni_target_backends[nr] != NULL)
		nr++;
	*ret = calloc(nr + 1, sizeof(**ret));
	if (*ret == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < nr; i++)
		(*ret)[i].ops = uni_target_backends[i];
	*nr_ret = nr;
	return 0;
}

/* Adds the guests that a backend finds by itself. */
static int add_listed(const struct uni_target_ops *ops, struct uni_target_info **all, size_t *nr,
	struct uni_err *err)
{
	_cleanup_free_ struct uni_target_info *info = NULL;
	struct uni_target_info *grown;
	size_t more = 0;
	int rc = ops->list(&info, &more, err);

	if (rc != 0 || more == 0)
		return rc;
	grown = reallocarray(*all, *nr + more, sizeof(*grown));
	if (grown == NULL)
		return uni_err_nomem(err);
	memcpy(grown + *nr, info, more * sizeof(*info));
	*all = grown;
	*nr += more;
	return 0;
}

int uni_target_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_target_info *info = NULL;
	size_t nr = 0;
	int rc = uni_vmm_list(&info, &nr, err);

	for (size_t i = 0; rc == 0 && uni_target_backends[i] != NULL; i++) {
		if (uni_target_backends[i]->list != NULL)
			rc = add_listed(uni_target_backends[i], &info, &nr, err);
	}
	if (rc != 0)
		return rc;
	*ret = uni_take(info);
	*nr_ret = nr;
	return 0;
}

int uni_target_discover_if(bool (*wanted)(const void *ctx, const struct uni_target_info *info),
	const void *ctx, struct uni_found **ret, size_t *nr_ret, struct uni_err *err)
{
	_cleanup_free_ struct uni_target_info *info = NULL;
	_cleanup_free_ struct reach *reach = NULL;
	struct uni_found *found;
	size_t nr = 0, nr_reach = 0;
	int rc = uni_target_list(&info, &nr, err);

	if (rc == 0)
		rc = list_backends(&reach, &nr_reach, err);
	if (rc != 0)
		return rc;
	found = calloc(nr + 1, sizeof(*found));
	if (found == NULL)
		return uni_err_nomem(err);
	*nr_ret = 0;
	for (size_t i = 0; i < nr; i++) {
		struct uni_found *f = &found[*nr_ret];

		if (wanted != NULL && !wanted(ctx, &info[i]))
			continue;
		*f = (struct uni_found){ .info = info[i] };
		choose_backend(reach, nr_reach, f);
		prefer_counts(f);
		/* On its way out a process loses its files, and with them its VM, before it is
		 * gone. */
		if (f->info.pid <= 0 || !uni_process_is_ending(f->info.pid))
			++*nr_ret;
	}
	*ret = found;
	return 0;
}

int uni_target_discover(struct uni_found **ret, size_t *nr_ret, struct uni_err *err)
{
	return uni_target_discover_if(NULL, NULL, ret, nr_ret, err);
}
