/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C++ whose hot functions have no code of their own: all are inlined into server::Engine::serve.
 *
 * Known answer, by inlined function: digest::Fold<unsigned long>::absorb (through digest::mix) 60,
 * parse::Scanner::scan 30, the lambda in serve 10.
 */
#define _Noreturn
#define _Static_assert static_assert
extern "C" {
#include "lab.h"

const char lab_app_name[] = "cxx";
}

#define INLINE __attribute__((always_inline)) inline

namespace {

const uint64_t UNIT = 1000; /* turns of 4 instructions: 1 % of a round */

} // namespace

namespace digest {

INLINE void mix(uint64_t turns)
{
	lab_burn(turns);
}

template <typename Word> class Fold {
	Word unit_;

public:
	INLINE explicit Fold(Word unit) : unit_(unit)
	{
	}

	INLINE void absorb(Word parts) const
	{
		mix(parts * unit_);
	}
};

} // namespace digest

namespace parse {

class Scanner {
	uint64_t unit_;

public:
	INLINE explicit Scanner(uint64_t unit) : unit_(unit)
	{
	}

	INLINE void scan(uint64_t parts) const
	{
		lab_burn(parts * unit_);
	}
};

} // namespace parse

namespace server {

LAB_FN(serve);

class Engine {
	uint64_t unit_;

public:
	explicit Engine(uint64_t unit) : unit_(unit)
	{
	}

	LAB_FUNC void serve() const;
};

void Engine::serve() const
{
	const auto reply = [this](uint64_t parts) __attribute__((always_inline)) {
		lab_burn(parts * unit_);
	};

	LAB_ENTER(serve);
	digest::Fold<unsigned long>(unit_).absorb(60);
	parse::Scanner(unit_).scan(30);
	reply(10);
	LAB_LEAVE(serve);
}

} // namespace server

extern "C" LAB_FUNC void app_main()
{
	const server::Engine engine(UNIT);
	uint64_t rounds = lab_rounds(100000);

	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		engine.serve();
}
