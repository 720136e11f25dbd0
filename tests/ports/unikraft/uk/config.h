/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration with everything, for the port. */
#define CONFIG_LIBUKSCHED		   1
#define CONFIG_LIBUNISCOPE_TRACE_KIB	   4096
#define CONFIG_LIBUNISCOPE_TRACE_SAMPLE_HZ 0
#define CONFIG_LIBUNISCOPE_TRACE_PORT	   1
#define CONFIG_LIBUNISCOPE_TRACE_KEEP	   64
