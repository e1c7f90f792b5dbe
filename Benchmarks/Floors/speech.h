// Real speech, as samples and as the Opus packets that callers send: the same for the floors and for the device.
#pragma once
#include "numbers.h"

#include <opus.h>
#include <stddef.h>
#include <stdint.h>

/// A lap of speech, already encoded: packet `n` is played after packet `n - 1`, and packet 0 after the last.
struct speech {
    size_t count;
    uint8_t (*payloads)[MAX_PAYLOAD_BYTES];
    uint16_t *lengths;
};

/// An encoder with the benchmark's settings: VoIP, 48 kHz mono, 32 kb/s VBR, complexity 5, in-band FEC at 10 % loss.
OpusEncoder *speech_encoder(void);

/// A 48 kHz mono decoder.
OpusDecoder *speech_decoder(void);

/// Reads every file but noise in `directory` (48 kHz mono 16-bit WAV), in name order, and encodes them as one lap.
struct speech speech_load(const char *directory);

/// Where alsa-utils puts its recorded voices.
#define SPEECH_DIRECTORY "/usr/share/sounds/alsa"
