/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/firefox/exits.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define INTERVAL 1 /* of a marker's phase */

int uni_firefox_exits_init(struct uni_firefox_exits *x, const struct uni_view *v,
	struct uni_strtab *strings, struct uni_err *err)
{
	int rc = uni_exit_rows_init(&x->rows, v, err);
	size_t nr = rc == 0 && x->rows.p != NULL ? uni_profile_nr_frames(x->rows.p) : 0;

	x->name_of = NULL;
	if (rc != 0)
		return rc;
	x->name_of = calloc(nr + 1, sizeof(*x->name_of));
	if (x->name_of == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < x->rows.rows.nr; i++) {
		uint32_t frame = x->rows.rows.v[i].frame;
		const char *name = uni_exit_row_name(&x->rows, frame);

		if (x->name_of[frame] == 0)
			x->name_of[frame] = uni_strtab_add(strings, name, strlen(name));
		if (x->name_of[frame] == UNI_STR_NONE)
			return uni_err_nomem(err);
	}
	return 0;
}

void uni_firefox_exits_deinit(struct uni_firefox_exits *x)
{
	uni_exit_rows_deinit(&x->rows);
	free(x->name_of);
}

void uni_firefox_exits_schema(struct uni_json *j)
{
	uni_json_key(j, "markerSchema");
	uni_json_array(j);
	uni_json_object(j);
	uni_json_kv(str, j, "name", "VMExit");
	uni_json_key(j, "display");
	uni_json_array(j);
	uni_json_str(j, "marker-chart");
	uni_json_str(j, "marker-table");
	uni_json_array_end(j);
	uni_json_kv(str, j, "description",
		"The guest left to its host until the end of the marker. Where not each exit was "
		"recorded, one marker stands for several.");
	uni_json_key(j, "fields");
	uni_json_array(j);
	uni_json_object(j);
	uni_json_kv(str, j, "key", "exits");
	uni_json_kv(str, j, "label", "Exits");
	uni_json_kv(str, j, "format", "integer");
	uni_json_object_end(j);
	uni_json_array_end(j);
	uni_json_object_end(j);
	uni_json_array_end(j);
}

static void put_data(struct uni_json *j, const struct uni_exit_row *row)
{
	uni_json_object(j);
	uni_json_kv(str, j, "type", "VMExit");
	uni_json_kv(u64, j, "exits", row->weight);
	uni_json_object_end(j);
}

/* A column of the lane's rows: value is an expression of row. */
#define COLUMN(name, value)                                                  \
	do {                                                                 \
		uni_json_key(j, (name));                                     \
		uni_json_array(j);                                           \
		for (size_t i = 0; i < x->rows.rows.nr; i++) {               \
			const struct uni_exit_row *row = &x->rows.rows.v[i]; \
			if (row->lane == lane)                               \
				value;                                       \
		}                                                            \
		uni_json_array_end(j);                                       \
	} while (0)

void uni_firefox_exits_markers(const struct uni_firefox_exits *x, struct uni_json *j, uint32_t lane,
	uint64_t begin_ns, unsigned category)
{
	uni_json_key(j, "markers");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", lane < x->rows.lanes.nr ? x->rows.lanes.v[lane].nr : 0);
	COLUMN("category", uni_json_u64(j, category));
	COLUMN("data", put_data(j, row));
	COLUMN("endTime", uni_json_double(j, (double)(row->t_ns - begin_ns + row->host_ns) / 1e6));
	COLUMN("name", uni_json_u64(j, x->name_of[row->frame]));
	COLUMN("phase", uni_json_u64(j, INTERVAL));
	COLUMN("startTime", uni_json_double(j, (double)(row->t_ns - begin_ns) / 1e6));
	uni_json_object_end(j);
}
