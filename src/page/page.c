/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/json/recording.h"
#include "format/xml.h"
#include "page/assets.h"
#include "page/parts.h"
#include "page/store.h"

struct page {
	const struct uni_page_input *in;
	struct uni_blob blob;
	struct uni_part_samples samples;
	struct uni_part_calls calls;
	struct uni_part_promises promises;
	struct uni_column *self, *self2;
};

/* As text: numbers of JavaScript lose the last digits. */
static void put_number(struct uni_json *j, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	uni_json_str(j, text);
}

static void put_time(struct uni_json *j, const char *key, uint64_t ns)
{
	uni_json_key(j, key);
	put_number(j, ns);
}

static void put_guest(struct uni_json *j, const struct uni_recording *rec, uint32_t i)
{
	struct uni_recorded_guest g = uni_recording_guest(rec, i);
	char name[UNI_GUEST_NAME_MAX];

	uni_json_object(j);
	uni_recording_guest_name(rec, i, name);
	uni_json_kv(str, j, "name", name);
	uni_json_kv(u64, j, "vcpus", g.meta->nr_vcpus);
	uni_json_key(j, "threads");
	uni_json_array(j);
	for (uint32_t id = 0; id <= g.nr_thread; id++) {
		uni_record_thread_name(g.thread, g.nr_thread, id, name);
		uni_json_str(j, name);
	}
	uni_json_array_end(j);
	uni_json_object_end(j);
}

static void describe_recording(struct uni_json *j, const struct page *p)
{
	const struct uni_recording *rec = p->in->rec;
	const struct uni_record_stats *st = uni_recording_stats(rec);

	uni_json_recording(j, rec, &p->in->opts->filter);
	put_time(j, "begin", st->begin_ns);
	put_time(j, "end", st->end_ns);
	put_time(j, "realtime_offset", uni_recording_meta(rec)->realtime_offset_ns);
	uni_json_kv(bool, j, "aggregate", uni_recording_meta(rec)->aggregate);
	uni_json_key(j, "guests");
	uni_json_array(j);
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++)
		put_guest(j, rec, i);
	uni_json_array_end(j);
}

static void describe_tree(
	struct uni_json *j, const char *name, const struct uni_part_tree_info *info)
{
	if (info->tree == NULL)
		return;
	uni_json_key(j, name);
	uni_json_object(j);
	put_time(j, "begin", info->first_ns);
	uni_part_frames(j, info->tree);
	uni_json_kv(u64, j, "near_ns", info->near_ns);
	uni_json_kv(u64, j, "flat", info->flat);
	uni_json_object_end(j);
}

static void describe_calls(struct uni_json *j, const struct uni_part_calls *c)
{
	if (c->tree == NULL || c->nr == 0)
		return;
	uni_json_key(j, "calls");
	uni_json_object(j);
	put_time(j, "begin", c->first_ns);
	uni_part_frames(j, c->tree);
	uni_json_kv(u64, j, "nr", c->nr);
	uni_json_kv(u64, j, "lost", c->lost);
	uni_json_kv(u64, j, "left_out", c->left_out);
	uni_json_kv(bool, j, "outline", c->store != NULL);
	if (c->store != NULL)
		put_time(j, "end", uni_page_store_end(c->store));
	uni_json_kv(u64, j, "flat", c->flat);
	uni_json_key(j, "threads");
	uni_json_array(j);
	for (size_t i = 0; i < c->threads.nr; i++) {
		const struct uni_part_thread *t = &c->threads.v[i];

		uni_json_array(j);
		uni_json_str(j, t->name);
		put_number(j, t->number);
		uni_json_array_end(j);
	}
	uni_json_array_end(j);
	uni_json_object_end(j);
}

static void put_strings(struct uni_json *j, const char *key, const char *const *string, size_t nr)
{
	uni_json_key(j, key);
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++)
		uni_json_str(j, string[i]);
	uni_json_array_end(j);
}

static void describe_diff(struct uni_json *j, const struct page *p)
{
	const struct uni_page_diff *d = p->in->diff;

	uni_json_key(j, "diff");
	uni_json_object(j);
	uni_json_kv(str, j, "before", d->before);
	uni_json_kv(str, j, "after", d->after);
	put_strings(j, "before_files", d->before_file, d->nr_before);
	put_strings(j, "after_files", d->after_file, d->nr_after);
	uni_json_kv(str, j, "verdict", d->verdict);
	uni_json_key(j, "sure");
	uni_json_array(j);
	for (size_t i = 0; i < uni_profile_nr_frames(p->in->profile); i++)
		uni_json_i64(j, d->sure[i]);
	uni_json_array_end(j);
	uni_json_object_end(j);
}

static bool describe_code(struct uni_json *j, const struct page *p)
{
	bool ok = true;

	uni_json_key(j, "code");
	uni_json_array(j);
	for (size_t i = 0; ok && i < p->in->nr_code; i++)
		ok = uni_annotation_drawn(&p->in->code[i], p->in->lines, j);
	uni_json_array_end(j);
	return ok;
}

/* False: out of memory. */
static bool describe_page(struct uni_json *j, const struct page *p)
{
	struct uni_part_tree_info samples = p->samples.samples;
	bool ok = true;

	/* A profile without times, which the caller owns. */
	if (p->in->profile != NULL)
		samples.tree = (struct uni_profile *)(uintptr_t)p->in->profile;
	uni_json_object(j);
	uni_json_kv(str, j, "format", "uniscope-page");
	uni_json_kv(u64, j, "version", 1);
	uni_json_kv(str, j, "title", p->in->title != NULL ? p->in->title : "");
	uni_json_kv(str, j, "uniscope", p->in->version != NULL ? p->in->version : "");
	uni_json_kv(str, j, "quality", p->in->quality != NULL ? p->in->quality : "");
	if (p->in->nr_hide != 0) {
		uni_json_key(j, "hide");
		uni_json_array(j);
		for (size_t i = 0; i < p->in->nr_hide; i++)
			uni_json_str(j, p->in->hide[i]);
		uni_json_array_end(j);
	}
	if (p->in->rec != NULL)
		describe_recording(j, p);
	uni_json_kv(u64, j, "left_out", p->samples.left_out);
	uni_json_kv(u64, j, "missing", p->samples.missing);
	uni_json_kv(u64, j, "torn", p->samples.torn);
	uni_json_kv(u64, j, "damaged", p->calls.damaged);
	describe_tree(j, "samples", &samples);
	if (p->in->diff != NULL)
		describe_diff(j, p);
	describe_tree(j, "exits", &p->samples.exits);
	describe_calls(j, &p->calls);
	if (p->in->promises != NULL)
		uni_part_promises_describe(j, p->in->promises, &p->promises);
	if (p->in->nr_code != 0)
		ok = describe_code(j, p);
	uni_blob_describe(&p->blob, j);
	uni_json_object_end(j);
	return ok;
}

/* For a profile without single samples: the value that ended at each node. */
static void put_aggregate(struct page *p)
{
	const struct uni_profile *profile = p->in->profile;
	struct uni_column *self = uni_blob_column(&p->blob, "s.self"), *self2 = NULL;

	if (uni_profile_has_second(profile))
		self2 = uni_blob_column(&p->blob, "s.self2");
	for (uint32_t i = 0; i < uni_profile_nr_nodes(profile); i++) {
		uni_column_put_double(self, uni_profile_node(profile, i)->self);
		uni_column_put_double(self2, uni_profile_self2(profile, i));
	}
	uni_part_tree(&p->blob, "s", profile);
}

static int gather_parts(struct page *p, struct uni_err *err)
{
	const struct uni_page_input *in = p->in;
	int rc = 0;

	if (in->profile != NULL)
		put_aggregate(p);
	else if (in->growing != NULL)
		rc = uni_part_growing(&p->blob, in->growing, &p->samples);
	else if (in->rec != NULL)
		rc = uni_part_samples(&p->blob, in, &p->samples, err);
	if (rc == 0 && in->calls != NULL)
		rc = uni_part_calls_growing(&p->blob, in->calls, &p->calls);
	else if (rc == 0 && in->timeline != NULL)
		rc = uni_part_calls(&p->blob, in->timeline, &in->whole, &p->calls, err);
	if (rc == 0 && in->promises != NULL)
		rc = uni_part_promises(&p->blob, in->promises, in->max_promises, &p->promises);
	if (rc == -UNI_ENOMEM || (rc == 0 && uni_blob_failed(&p->blob)))
		rc = uni_err_nomem(err);
	return rc;
}

/* Writes magic, length of the header, header, columns. */
static int put_data(const struct page *p, char id, struct uni_sink *out, struct uni_err *err)
{
	struct uni_strbuf head;
	struct uni_sink *mem = NULL;
	struct uni_pack *pack;
	struct uni_json j;
	unsigned char size[4];
	int rc;

	uni_strbuf_init(&head);
	rc = uni_sink_open_strbuf(&head, &mem);
	if (rc == 0) {
		uni_json_init(&j, mem, false);
		rc = describe_page(&j, p) ? 0 : -UNI_ENOMEM;
	}
	if (mem != NULL && uni_sink_close(mem, NULL) != 0)
		rc = -UNI_ENOMEM;
	if (rc != 0 || head.len > UINT32_MAX) {
		uni_strbuf_deinit(&head);
		return uni_err_nomem(err);
	}
	for (size_t i = 0; i < sizeof(size); i++)
		size[i] = (unsigned char)(head.len >> 8 * i);
	rc = uni_pack_begin(out, id, &pack, err);
	if (rc == 0) {
		uni_pack_put(pack, "UPG1", 4);
		uni_pack_put(pack, size, sizeof(size));
		uni_pack_put(pack, head.s, head.len);
		for (size_t i = 0; i < p->blob.columns.nr; i++)
			uni_pack_column(pack, p->blob.columns.v[i]);
		rc = uni_pack_end(pack, err);
	}
	uni_strbuf_deinit(&head);
	return rc;
}

/* Nothing is loaded, and no other script runs, whatever a guest's names contain. */
void uni_page_put_policy(struct uni_sink *out, bool served)
{
	uni_sink_puts(out, "default-src 'none'; script-src '");
	uni_sink_puts(out, uni_page_js_hash);
	uni_sink_puts(out, "'; style-src '");
	uni_sink_puts(out, uni_page_css_hash);
	uni_sink_puts(out, "'; base-uri 'none'; form-action 'none'");
	if (served)
		uni_sink_puts(out, "; connect-src 'self'");
}

static void put_head(struct uni_sink *out, const char *title, bool served)
{
	uni_sink_printf(out,
		"<!DOCTYPE html>\n<html lang=\"en\"%s><head><meta charset=\"utf-8\">\n",
		served ? " data-served=\"1\"" : "");
	uni_sink_puts(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"");
	uni_page_put_policy(out, served);
	uni_sink_puts(out,
		"\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<meta name=\"generator\" content=\"uniscope\">\n<title>");
	uni_xml_text(out, title, strlen(title), false);
	uni_sink_puts(out, "</title>\n<style>");
	uni_sink_puts(out, uni_page_css);
	uni_sink_puts(out, "</style>\n");
	/* Requested while the script is still being read, which requests the same. */
	if (served)
		uni_sink_puts(
			out, "<link rel=\"preload\" href=\"data\" as=\"fetch\" crossorigin>\n");
	uni_sink_puts(out, "</head><body>\n"
			   "<noscript>This report is drawn by a script.</noscript>\n");
	/* The script is at the end and removes this text: it stays if the file's end is missing. */
	if (!served)
		uni_sink_puts(out, "<p class=\"warn late\">This page is still being read, or its "
				   "file is cut off: its end, which draws it, is missing.</p>\n");
}

static void put_script(struct uni_sink *out)
{
	uni_sink_puts(out, "<script>");
	uni_sink_puts(out, uni_page_js);
	uni_sink_puts(out, "</script>\n</body></html>\n");
}

void uni_page_write_shell(struct uni_sink *out)
{
	put_head(out, "uniscope", true);
	put_script(out);
}

static void page_deinit(struct page *p)
{
	uni_part_samples_deinit(&p->samples);
	uni_part_calls_deinit(&p->calls);
	uni_part_promises_deinit(&p->promises);
	uni_blob_deinit(&p->blob);
}

int uni_page_write_data(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err)
{
	struct page p = { .in = in };
	int rc = gather_parts(&p, err);

	if (rc == 0)
		rc = put_data(&p, 0, out, err);
	if (rc == 0) {
		*left_ret = (struct uni_page_left){ .torn = p.samples.torn,
			.missing = p.samples.missing,
			.calls = p.calls.left_out,
			.samples = p.samples.left_out,
			.promises = p.promises.left_out,
			.promise_parts = p.promises.left_parts,
			.store = p.calls.store };
		p.calls.store = NULL;
	}
	page_deinit(&p);
	return rc;
}

int uni_page_write(const struct uni_page_input *in, struct uni_sink *out,
	struct uni_page_left *left_ret, struct uni_err *err)
{
	struct page p = { .in = in }, other = { .in = in->beside };
	int rc = gather_parts(&p, err);

	if (rc == 0 && in->beside != NULL)
		rc = gather_parts(&other, err);
	if (rc == 0) {
		put_head(out, in->title != NULL ? in->title : "uniscope", false);
		rc = put_data(&p, 'd', out, err);
	}
	if (rc == 0 && in->beside != NULL)
		rc = put_data(&other, 'o', out, err);
	if (rc == 0)
		put_script(out);
	if (rc == 0 && left_ret != NULL)
		*left_ret = (struct uni_page_left){ .torn = p.samples.torn + other.samples.torn,
			.missing = p.samples.missing + other.samples.missing,
			.calls = p.calls.left_out + other.calls.left_out,
			.samples = p.samples.left_out,
			.promises = p.promises.left_out + other.promises.left_out,
			.promise_parts = p.promises.left_parts + other.promises.left_parts };
	page_deinit(&p);
	page_deinit(&other);
	return rc;
}
