/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the streams of VM exits: written and read back. */
#include "recording/ctf_priv.h"
#include "backend/exit.h"

#define EXIT_SIZE (UNI_CTF_EVENT_HEADER + 54u)

_Static_assert(
	UNI_CTF_HEADER_SIZE + UNI_CTF_STACK_MIN + UNI_CHAIN_MAX * UNI_CTF_FRAME_SIZE + EXIT_SIZE <=
		UNI_CTF_PACKET_MAX,
	"the longest chain fits in an empty packet");
_Static_assert(UNI_CTF_PACKET_MAX / (UNI_CTF_STACK_MIN + EXIT_SIZE) < UNI_CTF_SLOTS / 2,
	"the hash table never fills");

bool uni_ctf_can_hold_exit(const struct uni_stream_exit *e)
{
	return e->stop < UNI_STOP_NR && uni_exit_is_sound(e, UNI_CHAIN_MAX);
}

bool uni_ctf_packet_add_exit(struct uni_ctf_packet *p, const struct uni_stream_exit *e)
{
	const struct uni_sample chain = {
		.t_ns = e->t_ns, .nr = e->nr, .pc = e->pc, .flags = e->flags
	};
	size_t most = UNI_CTF_STACK_MIN + (size_t)e->nr * UNI_CTF_FRAME_SIZE + EXIT_SIZE;
	const uint64_t wide[] = { e->weight, e->host_ns, e->asleep_ns, e->stolen_ns, e->info };
	const uint8_t bytes[] = { e->isa, e->info_kind, e->access, e->size, e->userspace, e->stop };
	uint32_t stack;
	uint8_t *q;

	if (most > UNI_CTF_PACKET_MAX - p->len)
		return false;
	stack = uni_ctf_intern(p, &chain);
	q = uni_ctf_put_le(uni_ctf_put_event(p, UNI_CTF_EXIT, e->t_ns), stack, 4);
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		q = uni_ctf_put_le(q, wide[i], 8);
	q = uni_ctf_put_le(q, e->reason, 4);
	for (size_t i = 0; i < sizeof(bytes); i++)
		q = uni_ctf_put_le(q, bytes[i], 1);
	uni_ctf_packet_grow(p, EXIT_SIZE, e->t_ns);
	p->weight += e->weight;
	return true;
}

static bool read_exit(struct uni_ctf_reader *r, struct uni_cursor *c, void *ret_exit)
{
	struct uni_stream_exit *ret = ret_exit;
	uint32_t stack = uni_cursor_u32(c);
	uint8_t userspace;

	*ret = (struct uni_stream_exit){ .vcpu = r->h.vcpu, .t_ns = r->last_ns };
	ret->weight = uni_cursor_u64(c);
	ret->host_ns = uni_cursor_u64(c);
	ret->asleep_ns = uni_cursor_u64(c);
	ret->stolen_ns = uni_cursor_u64(c);
	ret->info = uni_cursor_u64(c);
	ret->reason = uni_cursor_u32(c);
	ret->isa = uni_cursor_u8(c);
	ret->info_kind = uni_cursor_u8(c);
	ret->access = uni_cursor_u8(c);
	ret->size = uni_cursor_u8(c);
	userspace = uni_cursor_u8(c);
	ret->stop = uni_cursor_u8(c);
	ret->userspace = userspace != 0;
	ret->pc = r->pc;
	ret->flags = r->flags;
	if (c->failed || userspace > 1 || !uni_ctf_chain(r, stack, &ret->nr))
		return false;
	return uni_ctf_can_hold_exit(ret);
}

int uni_ctf_reader_open_exits(struct uni_ctf_reader *r, const void *data, size_t size)
{
	struct uni_stream_exit e;

	return uni_ctf_open(r, data, size, UNI_CTF_EXITS, read_exit, &e);
}

bool uni_ctf_reader_next_exit(struct uni_ctf_reader *r, struct uni_stream_exit *ret)
{
	return uni_ctf_step(r, read_exit, ret) > 0;
}

static void put_enum(
	struct uni_strbuf *out, const char *member, unsigned nr, const char *(*name)(uint8_t value))
{
	uni_strbuf_adds(out, "\t\tenum : uint8_t {\n");
	for (unsigned i = 0; i < nr; i++) {
		const char *label = name((uint8_t)i);

		uni_strbuf_addf(out, "\t\t\t\"%s\" = %u%s\n", label[0] != '\0' ? label : "none", i,
			i + 1 < nr ? "," : "");
	}
	uni_strbuf_addf(out, "\t\t} %s;\n", member);
}

static const char *stop_name(uint8_t stop)
{
	return uni_stop_name(stop);
}

void uni_ctf_metadata_exits(struct uni_strbuf *out)
{
	uni_strbuf_adds(out, "\n");
	uni_ctf_metadata_stream(out, UNI_CTF_EXITS, "exits");
	uni_strbuf_addf(out,
		"/* Equal VM exits of about the same length; times are sums over all of them, ns. "
		"*/\n"
		"event {\n\tname = \"exit\";\n\tid = %d;\n\tstream_id = %d;\n"
		"\tfields := struct {\n"
		"\t\tuint32_t stack; /* id of a stack event of this packet */\n"
		"\t\tuint64_t weight; /* exits that it stands for */\n"
		"\t\tuint64_t host_ns; /* until the guest was entered again */\n"
		"\t\tuint64_t asleep_ns; /* of that: the vCPU's thread slept */\n"
		"\t\tuint64_t stolen_ns; /* of that: the host ran something else */\n"
		"\t\taddress_t info; /* of the kind that info_kind says */\n"
		"\t\tuint32_t reason; /* as isa numbers it */\n",
		UNI_CTF_EXIT, UNI_CTF_EXITS);
	put_enum(out, "isa", UNI_EXIT_ISA_NR, uni_exit_isa_name);
	put_enum(out, "info_kind", UNI_EXIT_INFO_NR, uni_exit_info_name);
	put_enum(out, "access", UNI_EXIT_ACCESS_NR, uni_exit_access_name);
	uni_strbuf_adds(out, "\t\tuint8_t size; /* of the access, bytes; 0 = unknown */\n"
			     "\t\tuint8_t userspace; /* 1: the VMM had to handle it */\n");
	put_enum(out, "stop", UNI_STOP_NR, stop_name);
	uni_strbuf_adds(out, "\t};\n};\n");
}
