#include "speech.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct recording {
    int16_t *samples;
    size_t count;
};

OpusEncoder *speech_encoder(void)
{
    int status = OPUS_OK;
    OpusEncoder *encoder = opus_encoder_create(SAMPLE_RATE, 1, OPUS_APPLICATION_VOIP, &status);
    errno = 0;
    if (status != OPUS_OK)
        give_up("create an Opus encoder");
    if (opus_encoder_ctl(encoder, OPUS_SET_BITRATE(32000)) != OPUS_OK
        || opus_encoder_ctl(encoder, OPUS_SET_VBR(1)) != OPUS_OK
        || opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(5)) != OPUS_OK
        || opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(1)) != OPUS_OK
        || opus_encoder_ctl(encoder, OPUS_SET_PACKET_LOSS_PERC(10)) != OPUS_OK)
        give_up("set up an Opus encoder");
    return encoder;
}

OpusDecoder *speech_decoder(void)
{
    int status = OPUS_OK;
    OpusDecoder *decoder = opus_decoder_create(SAMPLE_RATE, 1, &status);
    errno = 0;
    if (status != OPUS_OK)
        give_up("create an Opus decoder");
    return decoder;
}

static uint32_t little_endian(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/// Appends the samples of a file whose chunks are `fmt ` and `data`, with any others between them.
static void append_wav(struct recording *all, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t header[12], chunk[8], format[16];
    int is_speech_format = 0;

    if (file == NULL || fread(header, 1, 12, file) != 12 || memcmp(header + 8, "WAVE", 4) != 0)
        give_up(path);
    while (fread(chunk, 1, 8, file) == 8) {
        uint32_t size = little_endian(chunk + 4, 4);
        if (memcmp(chunk, "fmt ", 4) == 0 && size >= 16 && fread(format, 1, 16, file) == 16) {
            is_speech_format = little_endian(format + 2, 2) == 1 && little_endian(format + 4, 4) == SAMPLE_RATE
                && little_endian(format + 14, 2) == 16;
            fseek(file, (long)size - 16, SEEK_CUR);
        } else if (memcmp(chunk, "data", 4) == 0 && is_speech_format) {
            size_t count = size / sizeof(int16_t);
            int16_t *grown = realloc(all->samples, (all->count + count) * sizeof(int16_t));
            if (grown == NULL)
                give_up("hold the speech in memory");
            all->samples = grown;
            all->count += fread(all->samples + all->count, sizeof(int16_t), count, file);
        } else {
            fseek(file, size + (size & 1), SEEK_CUR);
        }
    }
    fclose(file);
}

static struct recording record_directory(const char *directory)
{
    struct recording all = {0};
    char pattern[512];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/*.wav", directory);
    if (glob(pattern, 0, NULL, &found) != 0) {
        errno = 0;
        fprintf(stderr, "%s: no WAV files; the package alsa-utils brings some\n", directory);
        give_up("find speech");
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (strstr(found.gl_pathv[i], "Noise") == NULL)
            append_wav(&all, found.gl_pathv[i]);
    globfree(&found);

    errno = 0;
    if (all.count < SAMPLE_RATE)
        give_up("find a second of 48 kHz mono 16-bit speech");
    return all;
}

struct speech speech_load(const char *directory)
{
    struct recording all = record_directory(directory);
    struct speech speech = {.count = all.count / FRAME_SAMPLES};
    speech.payloads = calloc(speech.count, sizeof *speech.payloads);
    speech.lengths = calloc(speech.count, sizeof *speech.lengths);
    if (speech.payloads == NULL || speech.lengths == NULL)
        give_up("hold the packets in memory");

    // The second lap overwrites the first, so that packet 0 was encoded after the last one, as it will be played.
    OpusEncoder *encoder = speech_encoder();
    for (size_t n = 0; n < 2 * speech.count; n++) {
        size_t frame = n % speech.count;
        int length = opus_encode(encoder, all.samples + frame * FRAME_SAMPLES, FRAME_SAMPLES, speech.payloads[frame],
                                 MAX_PAYLOAD_BYTES);
        if (length < 0)
            give_up("encode the speech");
        speech.lengths[frame] = (uint16_t)length;
    }
    opus_encoder_destroy(encoder);
    free(all.samples);
    return speech;
}
