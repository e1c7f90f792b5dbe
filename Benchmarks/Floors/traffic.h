// The callers' packets: encoded and encrypted before the first one leaves, and counted when they come back.
#pragma once
#include "call_line.h"
#include "speech.h"

struct counts {
    long sent;
    /// Authenticated RTP packets that came back.
    long received;
    /// Opus bytes in them: tells speech from comfort noise.
    long payload_bytes;
    /// RTCP, and whatever did not authenticate.
    long rtcp, rejected;
};

/// One call's ready packets and its socket.
struct traffic {
    int socket;
    struct sockaddr_in remote;
    srtp_t receiving;
    uint8_t *bytes;
    uint16_t *lengths;
    size_t total, next, offset;
    struct counts counts;
};

/// Prepares `packets` packets of `call`, starting `first` packets into the speech.
struct traffic traffic_open(const struct call_line *call, const struct speech *speech, size_t first, size_t packets);

/// Sends the next packet, then takes in whatever has come back.
void traffic_step(struct traffic *traffic);

struct counts traffic_total(const struct traffic *all, int calls);
