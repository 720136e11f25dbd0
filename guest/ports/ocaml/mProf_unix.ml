(* SPDX-License-Identifier: BSD-2-Clause *)

external timestamper : MProf.Trace.log_buffer -> int -> unit = "uni_mprof_stamp" [@@noalloc]

let mmap_buffer ~size path =
  let fd = Unix.openfile path [ Unix.O_RDWR; Unix.O_CREAT; Unix.O_TRUNC; Unix.O_CLOEXEC ] 0o644 in
  Fun.protect
    ~finally:(fun () -> Unix.close fd)
    (fun () ->
      Bigarray.array1_of_genarray
        (Unix.map_file fd Bigarray.char Bigarray.c_layout true [| size |]))

let start ?(size = 1_000_000) path =
  let log = MProf.Trace.Control.make (mmap_buffer ~size path) timestamper in
  MProf.Trace.Control.start log;
  log
