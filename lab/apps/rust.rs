// SPDX-License-Identifier: BSD-2-Clause
//! Rust whose hot functions have no code of their own: all are inlined into server::Engine::serve.
//!
//! Known answer, by inlined function: digest::Fold<u64>::absorb (through digest::mix) 60,
//! parse::Scanner::scan 30, the closure in serve 10. No SSE: nothing here is wider than a register.
#![no_std]

use core::arch::asm;

const UNIT: u64 = 1000; // turns of 4 instructions: 1 % of a round

extern "C" {
    fn lab_rounds(default: u64) -> u64;
    fn lab_stop() -> bool;
}

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static lab_app_name: [u8; 5] = *b"rust\0";

/// The same turns as lab_burn() of lab.h.
#[inline(always)]
fn burn(turns: u64) {
    // SAFETY: arithmetic on two registers.
    unsafe {
        asm!(
            "2: lea {x}, [{x} + 3]",
            "xor {x}, {n}",
            "dec {n}",
            "jnz 2b",
            n = inout(reg) turns => _,
            x = inout(reg) turns => _,
            options(nomem, nostack),
        );
    }
}

mod digest {
    #[inline(always)]
    pub fn mix(turns: u64) {
        super::burn(turns);
    }

    pub struct Fold<Word> {
        pub unit: Word,
    }

    impl Fold<u64> {
        #[inline(always)]
        pub fn absorb(&self, parts: u64) {
            mix(parts.wrapping_mul(self.unit));
        }
    }
}

mod parse {
    pub struct Scanner {
        pub unit: u64,
    }

    impl Scanner {
        #[inline(always)]
        pub fn scan(&self, parts: u64) {
            super::burn(parts.wrapping_mul(self.unit));
        }
    }
}

pub mod server {
    use super::{burn, digest, parse};

    pub struct Engine {
        pub unit: u64,
    }

    impl Engine {
        #[inline(never)]
        pub fn serve(&self) {
            let reply = |parts: u64| burn(parts.wrapping_mul(self.unit));

            digest::Fold { unit: self.unit }.absorb(60);
            parse::Scanner { unit: self.unit }.scan(30);
            reply(10);
        }
    }
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn app_main() {
    let engine = server::Engine { unit: UNIT };
    // SAFETY: they only read what the boot code has set up.
    let rounds = unsafe { lab_rounds(100000) };
    let mut done = 0;

    while done < rounds && unsafe { !lab_stop() } {
        engine.serve();
        done += 1;
    }
}
