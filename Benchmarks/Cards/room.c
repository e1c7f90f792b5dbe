// The room around a speakerphone, and somebody who talks to it from far away. Cards are the tests' (Tests/CScriptedCard).
//
//   room SECONDS SPEECH NEAR_PID NEAR_MIC NEAR_SPEAKER FAR_PID FAR_MIC FAR_SPEAKER
//
// SPEECH is a WAV file of mono or stereo 16 bits at 48 kHz, or a folder of them; it is said into FAR_MIC over and over.
// What NEAR_SPEAKER plays comes back into NEAR_MIC by a direct way of 8 ms and reflections that die away by 60 dB in 150 ms,
// 6 dB weaker in all. After five seconds it is measured for so many seconds: CPU time of both processes for each 20 ms,
// what of it their cards' plug-in took, which no real card would, and levels. Prints one JSON object.
#include "page.h"

#include <glob.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

enum { SETTLE = 5, DIRECT = RATE * 8 / 1000, PATHS = 240, AHEAD = RATE * 5 / 1000, MOST_SPEECH = RATE * 60 };

static float speech[MOST_SPEECH];
static int spoken;
static struct path {
    int delay;
    float gain;
} paths[PATHS];

static unsigned little_endian(const unsigned char *bytes, int count) {
    unsigned value = 0;
    while (count-- > 0) value = value << 8 | bytes[count];
    return value;
}

static void add_speech(const char *path) {
    FILE *file = fopen(path, "rb");
    unsigned char head[12], chunk[8], format[16] = {0};
    if (!file || fread(head, 1, 12, file) != 12 || memcmp(head + 8, "WAVE", 4) != 0) {
        fprintf(stderr, "%s is not a WAV file\n", path);
        exit(1);
    }
    while (fread(chunk, 1, 8, file) == 8) {
        unsigned size = little_endian(chunk + 4, 4), channels = little_endian(format + 2, 2);
        if (memcmp(chunk, "data", 4) == 0 && channels > 0) {
            int16_t frame[2];
            for (unsigned i = 0; channels <= 2 && i < size / (2 * channels) && spoken < MOST_SPEECH; i++) {
                if (fread(frame, 2, channels, file) != channels) break;
                speech[spoken++] = frame[0];
            }
            break;
        }
        long skip = size + (size & 1);
        if (memcmp(chunk, "fmt ", 4) == 0 && fread(format, 1, 16, file) == 16) skip -= 16;
        if (fseek(file, skip, SEEK_CUR) != 0) break;
    }
    fclose(file);
    if (little_endian(format + 4, 4) != RATE) {
        fprintf(stderr, "%s does not have 48 kHz\n", path);
        exit(1);
    }
}

static void read_speech(const char *path) {
    struct stat facts;
    glob_t files;
    char pattern[4096];
    snprintf(pattern, sizeof pattern, stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) ? "%s/*.wav" : "%s", path);
    if (glob(pattern, 0, NULL, &files) != 0) {
        fprintf(stderr, "there are no WAV files at %s\n", path);
        exit(1);
    }
    for (size_t i = 0; i < files.gl_pathc; i++)
        if (!strstr(files.gl_pathv[i], "Noise")) add_speech(files.gl_pathv[i]);
    globfree(&files);
    if (spoken < RATE) {
        fprintf(stderr, "there is less than a second of speech in %s\n", path);
        exit(1);
    }
}

/// The same room each time.
static void make_room(void) {
    unsigned random = 1;
    double energy = 0;
    for (int i = 0; i < PATHS; i++) {
        double late = i == 0 ? 0 : 0.15 * rand_r(&random) / RAND_MAX;
        double size = i == 0 ? 1 : 0.25 * pow(10, -3 * late / 0.15) * (rand_r(&random) & 4 ? 1 : -1);
        paths[i] = (struct path){.delay = DIRECT + (int)(late * RATE), .gain = (float)size};
        energy += size * size;
    }
    for (int i = 0; i < PATHS; i++) paths[i].gain *= (float)(pow(10, -6.0 / 20) / sqrt(energy));
}

static int64_t cpu_ns(pid_t process) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        fprintf(stderr, "the CPU clock of process %d cannot be read; has it ended?\n", (int)process);
        exit(1);
    }
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

struct end {
    pid_t process;
    struct scripted_card *microphone, *speaker;
    int64_t cpu_before, cards_before;
};

static int64_t cards_ns(const struct end *end) {
    return end->microphone->spent_ns[1] + end->speaker->spent_ns[0];
}

static void begin(struct end *end) { end->cpu_before = cpu_ns(end->process), end->cards_before = cards_ns(end); }

static void tell(const char *name, const struct end *end, int64_t ticks) {
    double frames = (double)ticks / (RATE / 50);
    double cards = (cards_ns(end) - end->cards_before) / frames * 1e-3;
    double all = (cpu_ns(end->process) - end->cpu_before) / frames * 1e-3;
    printf("\"%s\": {\"cpu_us\": %.1f, \"cards_us\": %.1f, \"call_us\": %.1f}, ", name, all, cards, all - cards);
}

static double decibels(double sum, double count) { return 10 * log10(sum / count / (32768.0 * 32768) + 1e-12); }

int main(int count, char **arguments) {
    if (count != 9) {
        fprintf(stderr, "usage: room SECONDS SPEECH NEAR_PID NEAR_MIC NEAR_SPEAKER FAR_PID FAR_MIC FAR_SPEAKER\n");
        return 2;
    }
    read_speech(arguments[2]);
    make_room();
    struct end near = {atoi(arguments[3]), map_card(arguments[4], 0), map_card(arguments[5], 0), 0, 0};
    struct end far = {atoi(arguments[6]), map_card(arguments[7], 0), map_card(arguments[8], 0), 0, 0};
    // The air is never late, if that is allowed.
    struct sched_param priority = {.sched_priority = 80};
    sched_setscheduler(0, SCHED_FIFO, &priority);

    int64_t start = tick_now(), from = start + (int64_t)SETTLE * RATE, end = from + atoll(arguments[1]) * RATE;
    double played = 0, echoed = 0, returned = 0;
    int measures = 0, late = 0;
    for (int64_t tick = start; tick < end;) {
        int64_t until = tick_now() + AHEAD;
        if (until - tick > 2 * AHEAD && tick > start) late++;
        for (; tick < until; tick++) {
            lay(far.microphone, tick, speech[(tick - start) % spoken]);
            float echo = 0;
            for (int i = 0; i < PATHS; i++) echo += paths[i].gain * (float)heard(near.speaker, tick - paths[i].delay);
            lay(near.microphone, tick, echo);
            if (!measures) continue;
            // What is far enough back has been played for certain.
            double loud = heard(near.speaker, tick - DIRECT), back = heard(far.speaker, tick - DIRECT);
            played += loud * loud, echoed += (double)echo * echo, returned += back * back;
        }
        if (!measures && tick >= from) {
            measures = 1, from = tick;
            begin(&near), begin(&far);
        }
        usleep(1000);
    }
    double ticks = (double)(end - from);
    printf("{");
    tell("near", &near, end - from);
    tell("far", &far, end - from);
    printf("\"played_dbfs\": %.1f, \"echo_dbfs\": %.1f, \"returned_dbfs\": %.1f, \"late\": %d}\n", decibels(played, ticks),
           decibels(echoed, ticks), decibels(returned, ticks), late);
    return 0;
}
