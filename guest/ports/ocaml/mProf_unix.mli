(* SPDX-License-Identifier: BSD-2-Clause *)

(** What {!MProf.Trace.Control} needs in a Unix process. *)

val timestamper : MProf.Trace.timestamper
(** The monotonic clock. *)

val mmap_buffer : size:int -> string -> MProf.Trace.log_buffer
(** A file of that size, which is overwritten: it can be looked at while it is being written. *)

val start : ?size:int -> string -> MProf.Trace.Control.t
(** Records into that file from now on, 1,000,000 bytes unless told otherwise; what Lwt's main loop
    waits for events is told as well. *)
