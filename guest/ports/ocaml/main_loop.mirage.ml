(* SPDX-License-Identifier: BSD-2-Clause *)

let hook ~enter ~leave =
  Mirage_runtime.at_enter_iter enter;
  Mirage_runtime.at_leave_iter leave
