(* SPDX-License-Identifier: BSD-2-Clause *)
(* Each way to wait of a library, in a thread of that name, for a promise of that name. ocaml_opened FILE *)

open MProf

let log = MProf_unix.start Sys.argv.(1)

let ways =
  Ocaml_library.
    [
      ("infix", infix); ("infix_map", infix_map); ("bind", bind); ("map", map); ("syntax", syntax);
      ("catch", catch); ("try_bind", try_bind); ("finalize", finalize); ("caught", caught); ("join", join);
      ("pick", pick); ("async", async);
    ]

let () =
  let begun (name, way) =
    let p, u = Trace.named_wait ("value " ^ name) in
    (Traced.thread name (fun () -> way p), u)
  in
  let all = List.map begun ways in
  List.iter (fun (_, u) -> Traced.Lwt.wakeup_later u ()) all;
  Lwt_main.run (Lwt.bind (Lwt.join (List.map fst all)) Lwt.pause);
  Trace.Control.stop log
