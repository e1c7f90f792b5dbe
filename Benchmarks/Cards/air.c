// The air between two telephones' sound cards, which are the tests' scripted cards (Tests/CScriptedCard): says something
// into one microphone, listens at the other's loudspeaker, and measures how long it took.
//
//   air create FILE…                    makes cards
//   air measure SECONDS MIC SPEAKER…    measures each pair at once; one JSON object a line, for each pair
//
// A word is a sweep of 40 ms from 400 to 3 000 Hz, twice a second. Its delay is the lag of the best normalised
// cross-correlation within 300 ms, to a part of a sample.
#include "page.h"

#include <math.h>
#include <string.h>

enum { WORD = RATE * 40 / 1000, REACH = RATE * 300 / 1000, INTERVAL = RATE / 2, MOST = 1 << 16 };

static float word[WORD];

struct pair {
    struct scripted_card *microphone, *speaker;
    double delays[MOST], likeness;
    int heard, said;
};

static void create(const char *path) {
    struct scripted_card *card = map_card(path, 1);
    card->rate = RATE;
    card->format = 2;  // SND_PCM_FORMAT_S16_LE
    card->channels = 2;
    card->least_period = RATE / 1000;
    card->most_period = RATE / 10;
    card->most_buffer = RATE / 2;
}

static void say(struct scripted_card *card, int64_t start) {
    for (int i = 0; i < WORD; i++) lay(card, start + i, word[i] * 9000);
}

/// The delay in milliseconds of what was said at `start`; negative if it was not heard.
static double listen(struct pair *pair, int64_t start) {
    static float sound[REACH + WORD];
    static double likeness[REACH];
    double own = 0, energy = 0;
    for (int i = 0; i < WORD; i++) own += word[i] * word[i];
    for (int i = 0; i < REACH + WORD; i++) sound[i] = (float)heard(pair->speaker, start + i);
    for (int i = 0; i < WORD; i++) energy += sound[i] * sound[i];
    int best = 0;
    for (int lag = 0; lag < REACH; lag++) {
        float sum = 0;
        for (int i = 0; i < WORD; i++) sum += word[i] * sound[lag + i];
        likeness[lag] = energy > WORD * 100.0 ? sum / sqrt(own * energy) : 0;
        if (likeness[lag] > likeness[best]) best = lag;
        energy += sound[lag + WORD] * sound[lag + WORD] - sound[lag] * sound[lag];
    }
    if (likeness[best] < 0.5) return -1;
    double part = 0;
    if (best > 0 && best < REACH - 1) {
        double left = likeness[best - 1], right = likeness[best + 1], bend = left - 2 * likeness[best] + right;
        if (bend < 0) part = (left - right) / (2 * bend);
    }
    pair->likeness += likeness[best];
    return (best + part) * 1000.0 / RATE;
}

static int ascending(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

static void measure(int seconds, char **paths, int count) {
    struct pair *pairs = calloc((size_t)count, sizeof *pairs);
    for (int i = 0; i < WORD; i++) {
        double time = (double)i / RATE, length = (double)WORD / RATE;
        double phase = 2 * M_PI * (400 * time + (3000 - 400) * time * time / (2 * length));
        word[i] = (float)(sin(phase) * 0.5 * (1 - cos(2 * M_PI * i / WORD)));
    }
    for (int i = 0; i < count; i++) {
        pairs[i].microphone = map_card(paths[2 * i], 0);
        pairs[i].speaker = map_card(paths[2 * i + 1], 0);
    }
    int64_t start = tick_now() + RATE / 10;
    for (int turn = 0; turn < seconds * 2 && turn < MOST; turn++, start += INTERVAL) {
        // What is said into the past is not heard.
        if (start < tick_now() + RATE / 50) start = tick_now() + RATE / 20;
        // Each a little later in its half second, so that no grid of frames is always met alike.
        int64_t at = start + turn * 37 % RATE / 50;
        for (int i = 0; i < count; i++) say(pairs[i].microphone, at);
        while (tick_now() < at + REACH + WORD) usleep(2000);
        for (int i = 0; i < count; i++) {
            double delay = listen(&pairs[i], at);
            pairs[i].said++;
            if (delay >= 0) pairs[i].delays[pairs[i].heard++] = delay;
        }
    }
    for (int i = 0; i < count; i++) {
        struct pair *pair = &pairs[i];
        int n = pair->heard;
        qsort(pair->delays, (size_t)n, sizeof *pair->delays, ascending);
        printf(
            "{\"said\": %d, \"heard\": %d, \"median_ms\": %.2f, \"least_ms\": %.2f, \"p95_ms\": %.2f, \"p99_ms\": %.2f, "
            "\"most_ms\": %.2f, "
            "\"likeness\": %.3f}\n",
            pair->said, n, n ? pair->delays[n / 2] : -1, n ? pair->delays[0] : -1, n ? pair->delays[n * 95 / 100] : -1,
            n ? pair->delays[n * 99 / 100] : -1, n ? pair->delays[n - 1] : -1, n ? pair->likeness / n : 0);
    }
    free(pairs);
}

int main(int count, char **arguments) {
    if (count >= 3 && strcmp(arguments[1], "create") == 0) {
        for (int i = 2; i < count; i++) create(arguments[i]);
        return 0;
    }
    if (count >= 5 && count % 2 == 1 && strcmp(arguments[1], "measure") == 0) {
        measure(atoi(arguments[2]), arguments + 3, (count - 3) / 2);
        return 0;
    }
    fprintf(stderr, "usage: air create FILE... | air measure SECONDS MIC SPEAKER [MIC SPEAKER]...\n");
    return 2;
}
