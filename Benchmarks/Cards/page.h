// The pages of memory that rule the tests' sound cards (Tests/CScriptedCard), for programs that play the air around them.
#pragma once
#define _GNU_SOURCE
#include "../../Tests/CScriptedCard/include/CScriptedCard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RATE = 48000 };

/// Maps a card's page, and makes it first if `create` says so. Ends the program if that fails.
static inline struct scripted_card *map_card(const char *path, int create) {
    int file = open(path, O_RDWR | (create ? O_CREAT | O_TRUNC : 0), 0600);
    if (file < 0 || (create && ftruncate(file, sizeof(struct scripted_card)) != 0)) {
        perror(path);
        exit(1);
    }
    void *memory = mmap(0, sizeof(struct scripted_card), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    return memory;
}

/// The tick of 1/48 000 s that is now.
static inline int64_t tick_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)((time.tv_sec + time.tv_nsec * 1e-9) * RATE);
}

/// Lays a sample into a microphone, or onto a cable.
static inline void lay(struct scripted_card *card, int64_t tick, double value) {
    int32_t limited = value > 32767 ? 32767 : value < -32768 ? -32768 : (int32_t)value;
    card->cable[tick % SCRIPTED_CARD_TICKS] = (struct scripted_card_tick){.number = tick, .value = limited * 65536};
}

/// What a loudspeaker plays at a tick, of 32 768.
static inline double heard(const struct scripted_card *card, int64_t tick) {
    struct scripted_card_tick entry = card->cable[tick % SCRIPTED_CARD_TICKS];
    return entry.number == tick ? entry.value / 65536.0 : 0;
}
