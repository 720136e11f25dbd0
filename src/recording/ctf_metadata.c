/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/ctf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "recording/ctf_priv.h"

/* Places of the dashes in a UUID, in bytes (RFC 4122, section 3). */
static bool dash_before(size_t byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uni_ctf_uuid_print(const uint8_t uuid[UNI_CTF_UUID], char out[37])
{
	static const char hex[] = "0123456789abcdef";
	char *p = out;

	for (size_t i = 0; i < UNI_CTF_UUID; i++) {
		if (dash_before(i))
			*p++ = '-';
		*p++ = hex[uuid[i] >> 4];
		*p++ = hex[uuid[i] & 15];
	}
	*p = '\0';
}

bool uni_ctf_uuid_parse(const char *s, uint8_t ret[UNI_CTF_UUID])
{
	uint8_t uuid[UNI_CTF_UUID];

	for (size_t i = 0; i < UNI_CTF_UUID; i++) {
		int hi, lo;

		if (dash_before(i) && *s++ != '-')
			return false;
		hi = uni_hex_digit(s[0]);
		lo = hi < 0 ? -1 : uni_hex_digit(s[1]);
		if (lo < 0)
			return false;
		uuid[i] = (uint8_t)(hi << 4 | lo);
		s += 2;
	}
	if (*s != '\0')
		return false;
	memcpy(ret, uuid, sizeof(uuid));
	return true;
}

static const char types[] =
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 8; align = 8; signed = false; base = 16; } := flags_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;\n"
	"\n";

static const char time_type[] =
	"typealias integer {\n"
	"\tsize = 64; align = 8; signed = false; map = clock.monotonic.value;\n"
	"} := time_t;\n"
	"\n";

static const char context[] =
	"\tpacket.context := struct {\n"
	"\t\ttime_t timestamp_begin; /* of the first event of the packet */\n"
	"\t\ttime_t timestamp_end; /* of the last one */\n"
	"\t\tuint64_t content_size; /* bits */\n"
	"\t\tuint64_t packet_size; /* bits */\n"
	"\t\tuint64_t events_discarded; /* samples or exits of this vCPU lost so far */\n"
	"\t\tuint64_t packet_seq_num;\n"
	"\t\tuint32_t cpu_id; /* number of the vCPU */\n"
	"\t};\n"
	"\tevent.header := struct {\n"
	"\t\tuint8_t id;\n"
	"\t\ttime_t timestamp;\n"
	"\t};\n"
	"};\n"
	"\n";

void uni_ctf_metadata_stream(struct uni_strbuf *out, enum uni_ctf_stream id, const char *files)
{
	uni_strbuf_addf(out, "/* One file a vCPU: %s-vcpuN. */\nstream {\n\tid = %d;\n", files, id);
	uni_strbuf_adds(out, context);
	uni_strbuf_addf(out,
		"/* A call chain, before the first event of the packet that has it. */\n"
		"event {\n\tname = \"stack\";\n\tid = %d;\n\tstream_id = %d;\n"
		"\tfields := struct {\n"
		"\t\tuint32_t id; /* counts from 0 in each packet */\n"
		"\t\tuint16_t nr; /* frames */\n"
		"\t\taddress_t pc[nr]; /* leaf first: its pc, then return addresses */\n"
		"\t\tflags_t flags[nr]; /* 1: found by scanning, 2: an interrupted pc, 4: the "
		"block before, 8: perhaps its, 16: the kernel's, 32: others left out before it */\n"
		"\t};\n};\n\n",
		UNI_CTF_STACK, id);
}

/* Labels are quoted: some have a dash. */
static void put_enum(struct uni_strbuf *out, const char *(*name)(unsigned), unsigned nr)
{
	uni_strbuf_adds(out, "\t\tenum : uint8_t {\n");
	for (unsigned i = 0; i < nr; i++)
		uni_strbuf_addf(out, "\t\t\t\"%s\" = %u%s\n", name(i), i, i + 1 < nr ? "," : "");
}

static void put_enums(struct uni_strbuf *out)
{
	put_enum(out, uni_vcpu_state_name, UNI_VCPU_STATE_NR);
	uni_strbuf_adds(out, "\t\t} state; /* of the vCPU, or of a thread that is on none */\n");
	put_enum(out, uni_stop_name, UNI_STOP_NR);
	uni_strbuf_adds(out, "\t\t} stop; /* why the chain ends */\n");
}

void uni_ctf_metadata(
	struct uni_strbuf *out, const uint8_t uuid[UNI_CTF_UUID], uint64_t realtime_offset_ns)
{
	char id[37];

	uni_ctf_uuid_print(uuid, id);
	uni_strbuf_adds(out, "/* CTF 1.8 */\n\n");
	uni_strbuf_adds(out, types);
	uni_strbuf_addf(out,
		"trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n"
		"\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n"
		"\t\tuint32_t stream_id;\n\t};\n};\n\n",
		id);
	uni_strbuf_addf(out,
		"env {\n\tdomain = \"guest\";\n\ttracer_name = \"uniscope\";\n"
		"\tlayout = %d;\n};\n\n",
		UNI_CTF_LAYOUT);
	uni_strbuf_addf(out,
		"/* CLOCK_MONOTONIC of the host; the offset makes it wall-clock time. */\n"
		"clock {\n\tname = \"monotonic\";\n\tfreq = 1000000000;\n\toffset_s = %" PRIu64
		";\n\toffset = %" PRIu64 ";\n\tabsolute = TRUE;\n};\n\n",
		(uint64_t)(realtime_offset_ns / UNI_NSEC_PER_SEC),
		(uint64_t)(realtime_offset_ns % UNI_NSEC_PER_SEC));
	uni_strbuf_adds(out, time_type);
	uni_ctf_metadata_stream(out, UNI_CTF_SAMPLES, "samples");
	uni_strbuf_adds(out,
		"event {\n\tname = \"sample\";\n\tid = 1;\n\tstream_id = 0;\n\tfields := struct {\n"
		"\t\tuint32_t stack; /* id of a stack event of this packet */\n"
		"\t\tuint64_t weight; /* sampling periods that it stands for */\n"
		"\t\tuint32_t thread; /* guest thread, see session.json; 0 = unknown */\n"
		"\t\tuint32_t pause_ns; /* the guest was stopped so long for it */\n");
	put_enums(out);
	uni_strbuf_adds(out, "\t};\n};\n");
	uni_ctf_metadata_exits(out);
}
