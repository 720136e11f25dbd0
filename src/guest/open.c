/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "guest/model.h"

static bool has_symbol(const struct uni_image *img, const char *name)
{
	uint64_t addr, size;

	return uni_image_find(img, name, &addr, &size) == 0;
}

static const struct uni_guest_ops *find_ops(const struct uni_image *img)
{
	for (size_t i = 0; uni_guest_models[i] != NULL; i++) {
		const struct uni_guest_ops *ops = uni_guest_models[i];

		if (has_symbol(img, ops->syms[0]) && has_symbol(img, ops->syms[1]))
			return ops;
	}
	return NULL;
}

const char *uni_model_name(const struct uni_image *img)
{
	const struct uni_guest_ops *ops = find_ops(img);

	return ops != NULL ? ops->name : NULL;
}

static size_t nr_members(const struct uni_guest_ops *ops)
{
	size_t nr = 0;

	for (const struct uni_model_struct *s = ops->structs; s->tag != NULL; s++)
		nr += s->nr;
	return nr;
}

bool uni_model_wants_debug(const struct uni_image *img)
{
	const struct uni_guest_ops *ops = find_ops(img);

	return ops != NULL && nr_members(ops) != 0;
}

/* Members that may be missing are marked in the table. */
static void name_members(const struct uni_guest_ops *ops, struct uni_member *ret)
{
	for (const struct uni_model_struct *s = ops->structs; s->tag != NULL; s++) {
		for (size_t i = 0; i < s->nr; i++, ret++) {
			ret->optional = s->paths[i][0] == '?';
			ret->path = s->paths[i] + ret->optional;
		}
	}
}

static int find_members(struct uni_model *m, struct uni_debug *debug, struct uni_err *err)
{
	const struct uni_guest_ops *ops = m->ops;
	struct uni_member *at = m->member;

	for (const struct uni_model_struct *s = ops->structs; s->tag != NULL; at += s->nr, s++) {
		const char *missing = NULL;
		bool optional = s->tag[0] == '?';

		if (uni_debug_members(debug, s->tag + optional, at, s->nr, &missing) == 0 ||
			optional)
			continue;
		return uni_err_set(err, UNI_ENOTSUP,
			"threads: this version of %s is not known: its debug data has no struct "
			"%s%s%s",
			ops->title, s->tag, missing != NULL ? " with " : "",
			missing != NULL ? missing : "");
	}
	return 0;
}

static int use_known(struct uni_model *m, struct uni_err *err)
{
	if (m->ops->known == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"threads: the image is %s, but without debug data nobody knows where this "
			"version keeps its threads",
			m->ops->title);
	memcpy(m->member, m->ops->known, nr_members(m->ops) * sizeof(*m->member));
	return 0;
}

static int find_symbols(struct uni_model *m, const struct uni_image *img, struct uni_err *err)
{
	for (size_t i = 0; i < UNI_MODEL_SYMS && m->ops->syms[i] != NULL; i++) {
		bool optional = m->ops->syms[i][0] == '?';
		uint64_t size;

		if (uni_image_find(img, m->ops->syms[i] + optional, &m->sym[i], &size) != 0) {
			if (optional)
				continue;
			return uni_err_set(err, UNI_ENOTSUP,
				"threads: this version of %s is not known: it has no %s",
				m->ops->title, m->ops->syms[i]);
		}
		m->sym[i] += m->bias;
		m->sym_size[i] = size;
	}
	return 0;
}

static int nobody_knows(struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf known;

	uni_strbuf_init(&known);
	for (size_t i = 0; uni_guest_models[i] != NULL; i++)
		uni_strbuf_addf(&known, "%s %s", i != 0 ? "," : "", uni_guest_models[i]->name);
	return uni_err_set(err, UNI_ENOENT, "threads: no model knows this guest (there are:%s)",
		uni_strbuf_failed(&known) ? "" : known.s);
}

static void close_p(struct uni_model **m)
{
	uni_model_close(*m);
}

int uni_model_open(const struct uni_model_from *from, struct uni_model **ret, struct uni_err *err)
{
	_cleanup_(close_p) struct uni_model *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		return uni_err_nomem(err);
	m->ops = find_ops(from->img);
	m->arch = uni_image_arch(from->img);
	m->bias = from->bias;
	if (m->ops == NULL || m->arch == NULL)
		return nobody_knows(err);
	m->member = calloc(nr_members(m->ops) + 1, sizeof(*m->member));
	if (m->member == NULL)
		return uni_err_nomem(err);
	name_members(m->ops, m->member);
	m->own = calloc(1, m->ops->own_size + 1);
	if (m->own == NULL)
		return uni_err_nomem(err);
	rc = find_symbols(m, from->img, err);
	if (rc == 0 && m->ops->prepare != NULL)
		m->ops->prepare(m, from->img);
	if (rc == 0 && nr_members(m->ops) != 0)
		rc = from->debug != NULL ? find_members(m, from->debug, err) : use_known(m, err);
	if (rc == 0)
		*ret = uni_take(m);
	return rc;
}

void uni_model_close(struct uni_model *m)
{
	if (m == NULL)
		return;
	free(m->member);
	free(m->own);
	free(m);
}

bool uni_model_has_stacks(const struct uni_model *m)
{
	return !m->ops->no_stacks;
}

bool uni_model_has_chains(const struct uni_model *m)
{
	return !m->ops->no_stacks || m->ops->goes_on;
}
