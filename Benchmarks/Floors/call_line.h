// How whoever sets a call up tells the load generator about it: one line of text a call, then "go".
//
//   call REMOTE_IP REMOTE_PORT LOCAL_PORT SSRC PAYLOAD_TYPE SUITE SEND_KEY RECEIVE_KEY
//
// LOCAL_PORT 0 leaves the choice to the load generator; SSRC is the one it sends with, in decimal; SUITE is SDP's
// name; the keys are base64 of master key and salt, SEND_KEY being the load generator's own.
#pragma once
#include "transport.h"

#include <stdio.h>

struct call_line {
    struct sockaddr_in remote;
    uint16_t local_port;
    uint32_t ssrc;
    uint8_t payload_type;
    enum suite suite;
    struct key send_key;
    struct key receive_key;
};

/// Reads lines up to "go" or the end of `input` into at most `capacity` calls; gives up at a line it cannot use.
int read_call_lines(FILE *input, struct call_line *calls, int capacity);

void print_call_line(FILE *output, const struct call_line *call);

/// Reads one line without its end. Returns whether it describes a call.
int parse_call_line(const char *line, struct call_line *call);
