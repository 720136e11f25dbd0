/* SPDX-License-Identifier: BSD-2-Clause */
#include "syscalls/log.h"

#include <string.h>

#include "base/err.h"

int uni_sysc_log_init(struct uni_sysc_log *log, const struct uni_sysc_filter *filter)
{
	*log = (struct uni_sysc_log){ .text = uni_strtab_create(), .filter = filter };
	return log->text != NULL ? 0 : -UNI_ENOMEM;
}

void uni_sysc_log_deinit(struct uni_sysc_log *log)
{
	uni_vec_free(&log->all);
	uni_vec_free(&log->sums);
	uni_vec_free(&log->unused);
	uni_strtab_destroy(log->text);
	*log = (struct uni_sysc_log){ 0 };
}

uint32_t uni_sysc_log_text(struct uni_sysc_log *log, const char *s, size_t len)
{
	return uni_strtab_add(log->text, s, len);
}

/* Do calls of that name (a text of the log) pass the filter? */
static bool name_passes(struct uni_sysc_log *log, uint32_t name)
{
	__typeof__(&log->cache[0]) c = &log->cache[name % UNI_SYSC_CACHE];

	if (!c->known || c->name != name) {
		c->passes = uni_sysc_filter_name(log->filter, uni_strtab_get(log->text, name));
		c->name = name;
		c->known = true;
	}
	return c->passes;
}

int uni_sysc_log_put(struct uni_sysc_log *log, const struct uni_sysc_entry *e, uint32_t *index_ret)
{
	*index_ret = UINT32_MAX;
	if (e->name == UNI_STR_NONE || e->args == UNI_STR_NONE || e->thread == UNI_STR_NONE ||
		e->result == UNI_STR_NONE)
		return -UNI_ENOMEM;
	if (!name_passes(log, e->name))
		return 0;
	if (log->unused.nr != 0) {
		*index_ret = log->unused.v[--log->unused.nr];
		log->all.v[*index_ret] = *e;
		return 0;
	}
	if (log->all.nr == UNI_SYSC_LOG_MAX) {
		log->dropped++;
		return 0;
	}
	if (!uni_vec_push(&log->all, *e))
		return -UNI_ENOMEM;
	*index_ret = (uint32_t)log->all.nr - 1;
	return 0;
}

int uni_sysc_log_add(struct uni_sysc_log *log, const struct uni_sysc_entry *e)
{
	uint32_t index;

	return uni_sysc_log_put(log, e, &index);
}

int uni_sysc_log_forget(struct uni_sysc_log *log, uint32_t index)
{
	log->all.v[index] = (struct uni_sysc_entry){ 0 };
	return uni_vec_push(&log->unused, index) ? 0 : -UNI_ENOMEM;
}

static void move_text(struct uni_strtab *to, const struct uni_strtab *from, uint32_t *id)
{
	const char *s = uni_strtab_get(from, *id);

	*id = uni_strtab_add(to, s, strlen(s));
}

int uni_sysc_log_shrink(struct uni_sysc_log *log)
{
	struct uni_strtab *text = uni_strtab_create();

	if (text == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < log->all.nr; i++) {
		struct uni_sysc_entry *e = &log->all.v[i];

		move_text(text, log->text, &e->name);
		move_text(text, log->text, &e->args);
		move_text(text, log->text, &e->result);
		move_text(text, log->text, &e->thread);
		if (e->name == UNI_STR_NONE || e->args == UNI_STR_NONE ||
			e->result == UNI_STR_NONE || e->thread == UNI_STR_NONE) {
			uni_strtab_destroy(text);
			return -UNI_ENOMEM;
		}
	}
	uni_strtab_destroy(log->text);
	log->text = text;
	memset(log->cache, 0, sizeof(log->cache));
	return 0;
}
