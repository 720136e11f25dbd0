(* SPDX-License-Identifier: BSD-2-Clause *)
(* A library on plain Lwt. It knows nothing of MProf. *)

open Lwt.Infix

let infix p = p >>= fun () -> Lwt.return_unit
let infix_map p = p >|= ignore
let bind p = Lwt.bind p Lwt.return
let map p = Lwt.map ignore p

let syntax p =
  let open Lwt.Syntax in
  let* () = p in
  Lwt.return_unit

let catch p = Lwt.catch (fun () -> p) (fun _ -> Lwt.return_unit)
let try_bind p = Lwt.try_bind (fun () -> p) Lwt.return (fun _ -> Lwt.return_unit)
let finalize p = Lwt.finalize (fun () -> p) Lwt.pause
let caught p = Lwt.catch (fun () -> infix p >>= fun () -> raise Exit) (function Exit -> Lwt.return_unit | ex -> Lwt.fail ex)
let join p = Lwt.join [ p; Lwt.return_unit ] >>= Lwt.return
let pick p = Lwt.pick [ p; fst (Lwt.task ()) ] >>= Lwt.return

let async p =
  Lwt.async (fun () -> infix p);
  Lwt.return_unit
