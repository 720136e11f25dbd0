/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "recording/sjson_priv.h"

/* JSON readers, ours too, take integers up to 2^63 - 1. */
static void put_u64(struct uni_json *j, const char *key, uint64_t v)
{
	uni_json_kv(u64, j, key, uni_min(v, (uint64_t)INT64_MAX));
}

static const char *const kind_names[] = {
	[UNI_TRACE_KIND_NONE] = "none",
	[UNI_TRACE_KIND_ENTRY] = "entry",
	[UNI_TRACE_KIND_EXIT] = "exit",
	[UNI_TRACE_KIND_LEAF] = "leaf",
	[UNI_TRACE_KIND_SYNC] = "sync",
	[UNI_TRACE_KIND_EXT] = "extended",
	[UNI_TRACE_KIND_CALL] = "call",
};

static void put_clock(struct uni_json *j, const struct uni_record_clock *c)
{
	uni_json_key(j, "clock");
	uni_json_object(j);
	put_u64(j, "cycles", c->cycles);
	put_u64(j, "ns", c->ns);
	put_u64(j, "hz", c->hz);
	if (c->error_ns != UINT64_MAX)
		put_u64(j, "error_ns", c->error_ns);
	uni_json_kv(str, j, "source", c->source);
	uni_json_object_end(j);
}

static void put_cpu(struct uni_json *j, const struct uni_record_trace_cpu *c)
{
	uni_json_object(j);
	put_u64(j, "sub_buffers", c->nr_subs);
	put_u64(j, "packets", c->packets);
	put_u64(j, "words", c->words);
	put_u64(j, "events", c->events);
	put_u64(j, "other_events", c->others);
	put_u64(j, "lost", c->lost);
	put_u64(j, "lost_words", c->lost_words);
	put_u64(j, "lost_extra_words", c->lost_extra);
	if (c->after_freeze != 0)
		put_u64(j, "after_freeze", c->after_freeze);
	put_u64(j, "lapped", c->lapped);
	put_u64(j, "torn", c->torn);
	put_clock(j, &c->clock);
	uni_json_object_end(j);
}

static void put_on_cpu(struct uni_json *j, const struct uni_record_on_cpu *h)
{
	uni_json_key(j, "on_cpu");
	uni_json_array(j);
	for (uint32_t i = 0; i < h->nr; i++) {
		uni_json_array(j);
		uni_json_u64(j, uni_min(h->at[i].ns, (uint64_t)INT64_MAX));
		uni_json_u64(j, uni_min(h->at[i].on_ns, (uint64_t)INT64_MAX));
		uni_json_u64(j, uni_min(h->at[i].stolen_ns, (uint64_t)INT64_MAX));
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
}

void uni_session_put_trace(struct uni_json *j, const struct uni_record_trace *t)
{
	if (t->nr_cpus == 0)
		return;
	uni_json_key(j, "trace");
	uni_json_object(j);
	uni_json_kv(bool, j, "snapshot", t->snapshot);
	if (t->end_ns != 0)
		put_u64(j, "end_ns", t->end_ns);
	uni_json_kv(str, j, "mode", t->mode);
	uni_json_kv(str, j, "filter", t->filter);
	if (t->only[0] != '\0')
		uni_json_kv(str, j, "only", t->only);
	put_u64(j, "functions", t->nr_functions);
	put_u64(j, "sites", t->nr_sites);
	put_u64(j, "machine", t->info.machine);
	uni_json_kv(str, j, "ring", t->info.ring_mode == UNI_TRACE_STOP ? "stop" : "overwrite");
	uni_json_kv(hex, j, "text_window", t->info.text_window);
	put_u64(j, "tsc_hz", t->info.tsc_hz);
	uni_json_kv(bool, j, "lost_is_exact", t->info.counts);
	uni_json_key(j, "kinds");
	uni_json_array(j);
	for (size_t i = 0; i < sizeof(t->info.kinds); i++)
		uni_json_str(j, kind_names[t->info.kinds[i] < uni_array_len(kind_names)
						   ? t->info.kinds[i]
						   : UNI_TRACE_KIND_NONE]);
	uni_json_array_end(j);
	uni_json_key(j, "cpus");
	uni_json_array(j);
	for (uint32_t i = 0; i < t->nr_cpus; i++)
		put_cpu(j, &t->cpu[i]);
	uni_json_array_end(j);
	if (t->on_cpu.nr != 0)
		put_on_cpu(j, &t->on_cpu);
	if (t->host_on_ns != 0 || t->host_ready_ns != 0) {
		put_u64(j, "host_on_ns", t->host_on_ns);
		put_u64(j, "host_ready_ns", t->host_ready_ns);
	}
	uni_json_object_end(j);
}

/* Absent is 0, another type makes *ok false. */
static uint64_t get_u64(const json_t *obj, const char *key, bool *ok)
{
	const json_t *v = json_object_get(obj, key);

	if (v == NULL)
		return 0;
	*ok = *ok && json_is_integer(v) && json_integer_value(v) >= 0;
	return *ok ? (uint64_t)json_integer_value(v) : 0;
}

static void get_text(const json_t *obj, const char *key, char *ret, size_t cap, bool *ok)
{
	const json_t *v = json_object_get(obj, key);

	if (v == NULL)
		return;
	*ok = *ok && json_is_string(v);
	if (*ok)
		(void)uni_text_clean(ret, cap, json_string_value(v), json_string_length(v));
}

static void parse_clock(const json_t *obj, struct uni_record_clock *c, bool *ok)
{
	*ok = *ok && json_is_object(obj);
	c->cycles = get_u64(obj, "cycles", ok);
	c->ns = get_u64(obj, "ns", ok);
	c->hz = get_u64(obj, "hz", ok);
	c->error_ns = UINT64_MAX;
	if (json_object_get(obj, "error_ns") != NULL)
		c->error_ns = get_u64(obj, "error_ns", ok);
	get_text(obj, "source", c->source, sizeof(c->source), ok);
	*ok = *ok && c->hz != 0;
}

static void parse_cpu(const json_t *obj, struct uni_record_trace_cpu *c, bool *ok)
{
	*ok = *ok && json_is_object(obj);
	c->nr_subs = get_u64(obj, "sub_buffers", ok);
	c->packets = get_u64(obj, "packets", ok);
	c->words = get_u64(obj, "words", ok);
	c->events = get_u64(obj, "events", ok);
	c->others = get_u64(obj, "other_events", ok);
	c->lost = get_u64(obj, "lost", ok);
	c->lost_words = get_u64(obj, "lost_words", ok);
	c->lost_extra = get_u64(obj, "lost_extra_words", ok);
	c->after_freeze = get_u64(obj, "after_freeze", ok);
	c->lapped = get_u64(obj, "lapped", ok);
	c->torn = get_u64(obj, "torn", ok);
	parse_clock(json_object_get(obj, "clock"), &c->clock, ok);
}

static uint64_t item_u64(const json_t *list, size_t i, bool *ok)
{
	const json_t *v = json_array_get(list, i);

	*ok = *ok && json_is_integer(v) && json_integer_value(v) >= 0;
	return *ok ? (uint64_t)json_integer_value(v) : 0;
}

static void parse_on_cpu(const json_t *list, struct uni_record_on_cpu *ret, bool *ok)
{
	size_t nr = json_array_size(list);

	*ok = *ok && (list == NULL || json_is_array(list)) && nr <= UNI_RECORD_ON_CPU;
	for (size_t i = 0; *ok && i < nr; i++) {
		const json_t *look = json_array_get(list, i);

		ret->at[i].ns = item_u64(look, 0, ok);
		ret->at[i].on_ns = item_u64(look, 1, ok);
		ret->at[i].stolen_ns = item_u64(look, 2, ok);
	}
	ret->nr = *ok ? (uint32_t)nr : 0;
}

static void parse_kinds(const json_t *list, uint8_t kinds[16], bool *ok)
{
	*ok = *ok && json_is_array(list) && json_array_size(list) == 16;
	for (size_t i = 0; *ok && i < 16; i++) {
		const char *name = json_string_value(json_array_get(list, i));
		uint8_t k = 0;

		*ok = name != NULL;
		while (*ok && k < uni_array_len(kind_names) && strcmp(kind_names[k], name) != 0)
			k++;
		/* One that a later version has means nothing to this one. */
		kinds[i] = k < uni_array_len(kind_names) ? k : UNI_TRACE_KIND_NONE;
	}
}

static void parse_info(const json_t *obj, struct uni_ring_info *info, bool *ok)
{
	char ring[16] = "", window[32] = "0";

	info->machine = (uint32_t)uni_min(get_u64(obj, "machine", ok), (uint64_t)UINT32_MAX);
	get_text(obj, "ring", ring, sizeof(ring), ok);
	info->ring_mode = strcmp(ring, "stop") == 0 ? UNI_TRACE_STOP : UNI_TRACE_OVERWRITE;
	get_text(obj, "text_window", window, sizeof(window), ok);
	*ok = *ok && uni_parse_u64(window, &info->text_window) &&
	      (info->text_window & UINT32_MAX) == 0;
	info->tsc_hz = get_u64(obj, "tsc_hz", ok);
	info->counts = json_is_true(json_object_get(obj, "lost_is_exact"));
	parse_kinds(json_object_get(obj, "kinds"), info->kinds, ok);
}

const char *uni_session_parse_trace(const json_t *guest, struct uni_session_guest *ret)
{
	const json_t *obj = json_object_get(guest, "trace"), *cpus = json_object_get(obj, "cpus");
	struct uni_record_trace *t = &ret->meta.trace;
	size_t nr = json_array_size(cpus);
	bool ok = json_is_object(obj) && nr != 0 && nr <= UNI_VCPU_MAX &&
		  uni_record_trace_room(t, (uint32_t)nr);

	if (obj == NULL)
		return NULL;
	t->snapshot = json_is_true(json_object_get(obj, "snapshot"));
	t->end_ns = get_u64(obj, "end_ns", &ok);
	get_text(obj, "mode", t->mode, sizeof(t->mode), &ok);
	get_text(obj, "filter", t->filter, sizeof(t->filter), &ok);
	get_text(obj, "only", t->only, sizeof(t->only), &ok);
	t->nr_functions = (uint32_t)uni_min(get_u64(obj, "functions", &ok), (uint64_t)UINT32_MAX);
	t->nr_sites = (uint32_t)uni_min(get_u64(obj, "sites", &ok), (uint64_t)UINT32_MAX);
	parse_info(obj, &t->info, &ok);
	for (size_t i = 0; ok && i < nr; i++)
		parse_cpu(json_array_get(cpus, i), &t->cpu[i], &ok);
	parse_on_cpu(json_object_get(obj, "on_cpu"), &t->on_cpu, &ok);
	t->host_on_ns = get_u64(obj, "host_on_ns", &ok);
	t->host_ready_ns = get_u64(obj, "host_ready_ns", &ok);
	if (!ok)
		return "trace";
	t->info.nr_cpus = (uint32_t)nr;
	memcpy(t->info.uuid, ret->uuid, sizeof(t->info.uuid));
	return NULL;
}
