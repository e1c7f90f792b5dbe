// Media constants, clocks and the way a benchmark tool gives up.
#pragma once
#include <stdint.h>

enum {
    SAMPLE_RATE = 48000,
    /// 20 ms at 48 kHz, mono.
    FRAME_SAMPLES = 960,
    RTP_HEADER_BYTES = 12,
    /// A 20 ms packet at 32 kb/s takes 80 bytes on average; VBR and in-band FEC stay far below this.
    MAX_PAYLOAD_BYTES = 400,
    /// RTP header, payload and the longest SRTP tag, rounded up to keep slots aligned for libsrtp2.
    MAX_PACKET_BYTES = 512,
};

#define NS_PER_SECOND INT64_C(1000000000)
#define FRAME_NS INT64_C(20000000)

/// CLOCK_MONOTONIC now, in nanoseconds.
int64_t monotonic_ns(void);

/// CPU time this process has used, user and system, in nanoseconds.
int64_t own_cpu_ns(void);

/// Prints what could not be done, with errno's words when it is set, and exits with status 1.
_Noreturn void give_up(const char *doing) __attribute__((nonnull));

/// `text` as a whole number in `least...most`; gives up naming `option` when it is not one.
long parse_number(const char *option, const char *text, long least, long most);

/// Asks for SCHED_FIFO, as a real-time media thread does. Returns whether it was allowed.
int become_realtime(void);
