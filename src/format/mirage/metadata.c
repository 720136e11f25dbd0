/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/mirage/mirage.h"

void uni_mirage_metadata(struct uni_sink *out)
{
	static const struct {
		const char *name, *fields;
	} events[] = {
		{ "creates", "u64 thread; u64 child; type thread_type;" },
		{ "read", "u64 thread; u64 input;" },
		{ "fulfills", "u64 thread; u64 resolvee;" },
		{ "fails", "u64 thread; u64 resolvee; string exn;" },
		{ "becomes", "u64 thread; u64 sleeper;" },
		{ "label", "u64 thread; string label;" },
		{ "increase", "u64 thread; i64 amount; string counter;" },
		{ "switch", "u64 thread;" },
		{ "gc", "u64 duration_ns;" },
		{ "signal", "u64 thread; u64 source;" },
		{ "try_read", "u64 thread; u64 input;" },
		{ "counter", "u64 thread; i64 value; string counter;" },
		{ "read_resolved_later", "u64 thread; u64 input;" },
		{ "signal_without_switch", "u64 thread; u64 sender;" },
	};

	uni_sink_puts(out,
		"/* CTF 1.8 */\n\n"
		"typealias integer { size = 8; align = 8; } := u8;\n"
		"typealias integer { size = 16; align = 8; } := u16;\n"
		"typealias integer { size = 32; align = 8; } := u32;\n"
		"typealias integer { size = 64; align = 8; base = 16; } := u64;\n"
		"typealias integer { size = 64; align = 8; signed = true; } := i64;\n\n"
		"trace {\n\tmajor = 1;\n\tminor = 8;\n"
		"\tuuid = \"" UNI_MIRAGE_UUID "\";\n\tbyte_order = le;\n"
		"\tpacket.header := struct { u32 magic; u8 uuid[16]; };\n};\n\n"
		"clock {\n\tname = guest;\n\tfreq = 1000000000;\n};\n\n"
		"typealias integer { size = 64; align = 8; map = clock.guest.value; } := time;\n\n"
		"typealias enum : u8 {");
	for (unsigned i = 0; uni_promise_type_name(i)[0] != '?'; i++)
		uni_sink_printf(out, " \"%s\" = %u,", uni_promise_type_name(i), i);
	uni_sink_printf(out, " unknown = %u } := type;\n\n", UNI_PROMISE_TYPE_UNKNOWN);
	uni_sink_puts(out,
		"stream {\n\tpacket.context := struct { u32 packet_size; u16 stream_packet_count; "
		"u32 content_size; };\n"
		"\tevent.header := struct { time timestamp; u8 id; } align(8);\n};\n");
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		uni_sink_printf(out,
			"\nevent {\n\tid = %u;\n\tname = \"%s\";\n\tfields := struct { %s };\n};\n",
			i, events[i].name, events[i].fields);
}
