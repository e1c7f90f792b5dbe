// SRTP sessions and RTP headers: what both ends of a benchmark call put around a payload.
#pragma once
#include <netinet/in.h>
#include <srtp2/srtp.h>
#include <stdint.h>

/// The suites that the device negotiates; the names are SDP's (RFC 4568, RFC 7714).
enum suite { SUITE_GCM, SUITE_CM };

enum {
    /// Key and salt as SDES carries them: 16 + 12 bytes with GCM, 16 + 14 with CM.
    MAX_KEY_BYTES = 30,
};

struct key {
    uint8_t bytes[MAX_KEY_BYTES];
};

int key_length(enum suite suite);
const char *suite_name(enum suite suite);

/// Whether `name` (SDP's, or "gcm" and "cm" on a command line) is known; sets `suite` if so.
int suite_from_name(const char *name, enum suite *suite);

/// A key from the kernel's random numbers.
struct key random_key(void);

/// Readies libsrtp2; once in a process.
void transport_start(void);

/// A session that protects (`ssrc_any_outbound`) or unprotects (`ssrc_any_inbound`) with `key`.
srtp_t transport_session(enum suite suite, const struct key *key, srtp_ssrc_type_t direction);

/// The RTP stream this end sends.
struct sender {
    uint32_t ssrc;
    uint32_t timestamp;
    uint16_t sequence;
    uint8_t payload_type;
};

/// Writes the next RTP header into the first 12 bytes of `packet` and moves the stream on by one frame.
void write_rtp_header(struct sender *sender, uint8_t *packet);

/// Whether the datagram is RTCP rather than RTP (RFC 5761 §4).
int is_rtcp(const uint8_t *packet, int length);

/// A UDP socket bound to 127.0.0.1 and `port` (0: any); sets `bound` to the port it got.
int loopback_socket(uint16_t port, uint16_t *bound);

struct sockaddr_in loopback_address(uint16_t port);
