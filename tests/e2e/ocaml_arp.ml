(* SPDX-License-Identifier: BSD-2-Clause *)
(* MirageOS' lost wake-up in a program on Lwt: an ARP reply that comes before the acknowledgement of the
   request's transmission wakes nobody. ocaml_arp bad|good FILE|ring [off] *)

open MProf
open Traced

let bad = Sys.argv.(1) = "bad"
let place = Sys.argv.(2)
let off = Array.length Sys.argv > 3
let log = if place <> "ring" then Some (MProf_unix.start place) else (start (); None)
let () = if off then Option.iter Trace.Control.stop log

let arp_reply : string Lwt_condition.t = Trace.named_condition "arp reply"
let frames : string Lwt_mvar.t = Trace.named_mvar_empty "frames"
let connected, set_connected = Trace.named_task "tcp connection"
let () = Trace.should_resolve connected
let sent, set_sent = Trace.named_wait "arp request sent"
let requests = Counter.create ~name:"requests" ()

(* What the network does comes with the next turn of the main loop. *)
let netif () =
  Lwt_mvar.take frames >>= fun frame ->
  Trace.label ("sends " ^ frame);
  if bad then (
    Lwt_condition.broadcast arp_reply "reply";
    Lwt.pause () >>= fun () ->
    Lwt.wakeup_later set_sent ();
    Lwt.return_unit)
  else (
    Lwt.wakeup_later set_sent ();
    Lwt.pause () >>= fun () ->
    Lwt_condition.broadcast arp_reply "reply";
    Lwt.return_unit)

let tcp () =
  Lwt_mvar.put frames "who-has" >>= fun () ->
  sent >>= fun () ->
  Lwt_condition.wait arp_reply >>= fun _ ->
  Lwt.wakeup_later set_connected ();
  Lwt.return_unit

let sleep_ns = sleep_ns_by (fun ns -> Lwt_unix.sleep (Int64.to_float ns /. 1e9))

let httpd () =
  let rec serve n =
    if n = 0 then Lwt.return_unit
    else
      sleep_ns 1_000_000L >>= fun () ->
      Counter.increase requests 1;
      serve (n - 1)
  in
  serve 20

(* Its wait is all that it does; and one that ends with a wait, after another. *)
let sleeper () = sleep_ns 1_000_000_000_000L
let napper () = sleep_ns 1_000_000L >>= fun () -> sleep_ns 1_000_000_000_000L

let failing () = Lwt.pause () >>= fun () -> Lwt.fail_with "no route"

let () =
  let threads = [ thread "netif" netif; thread "tcp" tcp ] in
  Lwt.async (fun () -> Lwt.catch (fun () -> thread "dhcp" failing) (fun _ -> Lwt.return_unit));
  Lwt.async (fun () -> thread "sleeper" sleeper);
  Lwt.async (fun () -> thread "napper" napper);
  Lwt_main.run (Lwt.bind (thread "httpd" httpd) (fun () -> Lwt.choose (Lwt.return_unit :: threads)));
  Gc.full_major ();
  Trace.note_gc 0.001;
  assert (Counter.value requests = 20);
  assert (Lwt.is_sleeping connected = bad);
  match log with
  | Some l when not off ->
      Trace.Control.stop l;
      (try
         Trace.Control.stop l;
         assert false
       with Failure _ -> ());
      assert (Trace.Control.lost l = 0)
  | Some _ -> ()
  | None ->
      print_endline "done";
      ignore (input_line stdin)
