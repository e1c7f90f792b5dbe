// libasound for Swift. The callback that takes its messages is variadic, which Swift cannot import.
#pragma once
#include <alsa/asoundlib.h>

static inline void handset_alsa_drop_message(
    const char *file, int line, const char *function, int error, const char *format, ...) {
    (void)file, (void)line, (void)function, (void)error, (void)format;
}

/// Keeps libasound from writing to standard error: its errors are returned as well, and told in our words.
static inline void handset_alsa_be_quiet(void) { snd_lib_error_set_handler(handset_alsa_drop_message); }
