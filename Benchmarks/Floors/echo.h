// The least an echoing call can do with a packet: unprotect, decode, encode, protect.
#pragma once
#include "speech.h"
#include "transport.h"

struct echo {
    srtp_t receiving;
    srtp_t sending;
    OpusDecoder *decoder;
    OpusEncoder *encoder;
    struct sender sender;
};

struct echo echo_open(enum suite suite, const struct key *receive_key, const struct key *send_key, uint32_t ssrc);

/// Answers the SRTP packet of `length` bytes in `packet`, in place. Returns the answer's length; gives up on a packet
/// that is not what the load generator sends, since a floor that skips work would measure nothing.
int echo_answer(struct echo *echo, uint8_t packet[MAX_PACKET_BYTES], int length);
