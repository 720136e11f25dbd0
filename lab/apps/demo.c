/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small key-value server without a network: clients are made up, everything else is real work.
 * For flame graphs to look at. Runs for ever unless rounds= says otherwise; a heartbeat line
 * each every_ms= milliseconds. Paths: README.md.
 */
#include "lab.h"
#include "demo.h"

#define BATCH	      32
#define COMPACT_EVERY 64
#define REPORT_MS     2000

const char lab_app_name[] = "demo";

LAB_FN(serve_batch);
LAB_FN(compact_store);

struct server {
	struct store store;
	struct rng rng;
	uint64_t served, failed;
	uint32_t checksum;
};

typedef bool (*handler)(struct server *srv, const struct request *req, struct text *reply);

LAB_FUNC static bool cmd_get(struct server *srv, const struct request *req, struct text *reply)
{
	const struct item *item = store_lookup(&srv->store, req->key);

	if (!item)
		return false;
	json_item(reply, item);
	return true;
}

LAB_FUNC static bool cmd_set(struct server *srv, const struct request *req, struct text *reply)
{
	const struct item *item = store_insert(&srv->store, req->key, req->value);

	if (!item)
		return false;
	json_item(reply, item);
	return true;
}

LAB_FUNC static bool cmd_range(struct server *srv, const struct request *req, struct text *reply)
{
	const struct item *found[RANGE_MAX];
	unsigned nr = store_collect(&srv->store, req->key, found, RANGE_MAX);

	sort_items(found, 0, (int)nr - 1);
	json_list(reply, found, nr < 8 ? nr : 8);
	return true;
}

LAB_FUNC static bool cmd_count(struct server *srv, const struct request *req, struct text *reply)
{
	json_number(reply, store_count(&srv->store));
	return true;
}

static const struct {
	char verb[8];
	handler handle;
} commands[] = {
	{ "GET", cmd_get },
	{ "SET", cmd_set },
	{ "RANGE", cmd_range },
	{ "COUNT", cmd_count },
};

LAB_FUNC static bool dispatch(struct server *srv, const struct request *req, struct text *reply)
{
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (lab_strcmp(commands[i].verb, req->verb) == 0)
			return commands[i].handle(srv, req, reply);
	}
	return false;
}

LAB_FUNC static void serve_request(struct server *srv)
{
	struct request req;
	struct text text, reply;

	client_request(&srv->rng, &text);
	text_clear(&reply);
	if (!request_parse(&text, &req) || !dispatch(srv, &req, &reply))
		srv->failed++;
	srv->checksum = checksum_update(srv->checksum, reply.data, reply.used);
	srv->served++;
}

LAB_FUNC static void serve_batch(struct server *srv)
{
	LAB_ENTER(serve_batch);
	for (unsigned i = 0; i < BATCH; i++)
		serve_request(srv);
	LAB_LEAVE(serve_batch);
}

LAB_FUNC static void compact(struct server *srv)
{
	LAB_ENTER(compact_store);
	compact_store(&srv->store);
	LAB_LEAVE(compact_store);
}

LAB_FUNC static void log_heartbeat(const struct server *srv, uint64_t round)
{
	lab_printf("demo: round %lu, %lu requests, %lu misses, %u items, checksum %08x\n", round,
		srv->served, srv->failed, store_count(&srv->store), srv->checksum);
}

LAB_FUNC static void server_loop(struct server *srv)
{
	uint64_t rounds = lab_arg("rounds", 0);
	uint64_t every = lab_arg("every_ms", REPORT_MS) * (lab_truth.tsc_hz / 1000);
	uint64_t next = lab_tsc() + every;

	for (uint64_t round = 1; (!rounds || round <= rounds) && !lab_stop(); round++) {
		serve_batch(srv);
		if (round % COMPACT_EVERY == 0)
			compact(srv);
		if (every && lab_tsc() >= next) {
			log_heartbeat(srv, round);
			next += every;
		}
	}
}

LAB_FUNC static void server_init(struct server *srv)
{
	struct text key, value;

	memset(srv, 0, sizeof(*srv));
	srv->rng.state = 0x9e3779b97f4a7c15;
	for (unsigned i = 0; i < 200; i++) {
		client_key(&srv->rng, &key);
		client_value(&srv->rng, &value);
		store_insert(&srv->store, key.data, value.data);
	}
}

LAB_FUNC void app_main(void)
{
	static struct server srv;

	server_init(&srv);
	server_loop(&srv);
	log_heartbeat(&srv, srv.served / BATCH);
}
