#include "CScriptedCard.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct scripted_card *scripted_card_create(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    void *memory = MAP_FAILED;
    if (ftruncate(file, sizeof(struct scripted_card)) == 0)
        memory = mmap(0, sizeof(struct scripted_card), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? 0 : memory;
}

void scripted_card_unmap(struct scripted_card *card) { munmap(card, sizeof *card); }

int32_t scripted_card_heard(const struct scripted_card *card, int64_t tick) {
    struct scripted_card_tick entry = card->cable[tick % SCRIPTED_CARD_TICKS];
    return entry.number == tick ? entry.value : 0;
}

int64_t scripted_card_lag(
    const struct scripted_card *there, const struct scripted_card *back, int64_t tick, int32_t length, int32_t most,
    double *likeness) {
    float *said = malloc((size_t)length * sizeof *said), *heard = malloc((size_t)(length + most) * sizeof *heard);
    int64_t best = 0;
    double own = 1, energy = 1;
    *likeness = 0;
    for (int32_t i = 0; said && heard && i < length; i++) {
        said[i] = (float)scripted_card_heard(there, tick + i) / 65536;
        own += said[i] * said[i];
    }
    for (int32_t i = 0; said && heard && i < length + most; i++)
        heard[i] = (float)scripted_card_heard(back, tick + i) / 65536;
    for (int32_t i = 0; said && heard && i < length; i++) energy += heard[i] * heard[i];
    for (int32_t lag = 0; said && heard && lag < most; lag++) {
        float sum = 0;
        for (int32_t i = 0; i < length; i++) sum += said[i] * heard[lag + i];
        double like = sum / sqrt(own * energy);
        if (like > *likeness) *likeness = like, best = lag;
        energy += heard[lag + length] * heard[lag + length] - heard[lag] * heard[lag];
        if (energy < 1) energy = 1;
    }
    free(said);
    free(heard);
    return best;
}

void scripted_card_lay(struct scripted_card *card, int64_t tick, int32_t value) {
    card->cable[tick % SCRIPTED_CARD_TICKS] = (struct scripted_card_tick){.number = tick, .value = value};
}
