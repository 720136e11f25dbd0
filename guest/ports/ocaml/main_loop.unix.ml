(* SPDX-License-Identifier: BSD-2-Clause *)

let hook ~enter ~leave =
  ignore (Lwt_main.Enter_iter_hooks.add_last enter);
  ignore (Lwt_main.Leave_iter_hooks.add_first leave)
