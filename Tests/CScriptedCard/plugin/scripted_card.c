// An ALSA external I/O plug-in that acts as a sound card with a cable from its output to its input, and does what the
// page of memory named in its configuration says. Built by the tests:
//
//   cc -shared -fPIC -DPIC -o libscripted_card.so scripted_card.c -lasound -lm
//
//   pcm_type.scripted_card { lib "…/libscripted_card.so" }
//   pcm.card { type scripted_card control "…/control" }
#define _GNU_SOURCE
#include "../include/CScriptedCard.h"

#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct direction {
    snd_pcm_ioplug_t io;
    struct scripted_card *card;
    /// When the stream started, and whether it has.
    int64_t started_ns;
    int running;
    /// Frames moved by the program since the start, and where the converter was when last looked at.
    int64_t moved, position;
    unsigned random;
    /// The latest frames played, to be read between.
    int32_t played[2][64];
};

// A windowed sinc, so that clocks which are apart bend the sound rather than drop and repeat samples of it.
#define REACH 12
#define PHASES 4096
static float taps[PHASES][2 * REACH];

static void make_taps(void) {
    if (taps[0][REACH - 1] != 0) return;
    for (int phase = PHASES - 1; phase >= 0; phase--)
        for (int tap = 0; tap < 2 * REACH; tap++) {
            double x = tap - (REACH - 1) - (double)phase / PHASES;
            double window = cos(M_PI / 2 * x / REACH), sinc = x == 0 ? 1 : sin(M_PI * x) / (M_PI * x);
            taps[phase][tap] = (float)(sinc * window * window);
        }
}

static int32_t clamped(double value) {
    return value > 2147483647.0 ? 2147483647 : value < -2147483648.0 ? -2147483647 - 1 : (int32_t)value;
}

static int side(const struct direction *d) { return d->io.stream == SND_PCM_STREAM_CAPTURE; }

static int64_t load(int64_t *value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }

static int absent(struct direction *d) { return __atomic_load_n(&d->card->absent_errno, __ATOMIC_ACQUIRE); }

static int64_t now(struct direction *d) {
    int64_t virtual = load(&d->card->now_ns);
    if (virtual) return virtual;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/// The calling thread's CPU time.
static int64_t spent(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static double true_rate(struct direction *d) { return d->io.rate * (1 + d->card->ppm[side(d)] * 1e-6); }

/// The tick of the cable at which a frame passes the converter.
static int64_t tick_of(struct direction *d, int64_t frame) {
    double seconds = (double)frame / true_rate(d);
    return (int64_t)(((double)d->started_ns * 1e-9 + seconds) * 48000 + 0.5);
}

/// The same with its fraction.
static double place_of(struct direction *d, int64_t frame) {
    return ((double)d->started_ns * 1e-9 + (double)frame / true_rate(d)) * 48000;
}

static struct scripted_card_tick *cable(struct direction *d, int output) {
    return output ? d->card->second_cable : d->card->cable;
}

static void lay(struct direction *d, int output, int64_t number, int32_t value) {
    cable(d, output)[number % SCRIPTED_CARD_TICKS] = (struct scripted_card_tick){.number = number, .value = value};
}

static double tick_value(struct direction *d, int output, int64_t number) {
    struct scripted_card_tick tick = cable(d, output)[number % SCRIPTED_CARD_TICKS];
    return tick.number == number ? tick.value : 0;
}

/// Whether there are two cables.
static int has_wires(struct direction *d) {
    return d->io.rate == 48000 && d->io.channels == 2
        && (d->card->wires[0][0] || d->card->wires[0][1] || d->card->wires[1][0] || d->card->wires[1][1]);
}

/// Puts a played frame on the cable: the ticks between two frames that have been played REACH frames ago.
static void play(struct direction *d, int output, int32_t value) {
    int32_t *played = d->played[output];
    played[d->moved % 64] = value;
    int64_t middle = d->moved - REACH;
    if (middle < 0) return;
    double from = place_of(d, middle), to = place_of(d, middle + 1);
    for (int64_t number = (int64_t)ceil(from - 1e-4); number < (int64_t)ceil(to - 1e-4); number++) {
        double fraction = ((double)number - from) / (to - from);
        int phase = fraction <= 0 ? 0 : (int)(fraction * PHASES + 0.5);
        int64_t first = middle - (REACH - 1);
        if (phase >= PHASES) phase = 0, first++;
        double sum = phase == 0 && first + REACH - 1 >= 0 ? played[(first + REACH - 1) % 64] : 0;
        for (int tap = 0; phase != 0 && tap < 2 * REACH; tap++)
            if (first + tap >= 0) sum += taps[phase][tap] * played[(first + tap) % 64];
        lay(d, output, number, clamped(sum));
    }
}

/// What a cable has at a frame's time.
static double carried(struct direction *d, int output, int64_t frame) {
    struct scripted_card *card = d->card;
    double place = place_of(d, frame) - card->cable_delay;
    int64_t number = (int64_t)floor(place + 1e-4);
    int phase = place <= (double)number ? 0 : (int)((place - (double)number) * PHASES + 0.5);
    if (phase >= PHASES) phase = 0, number++;
    double sum = 0;
    if (card->hole_every == 0 || number % card->hole_every >= card->hole_length) {
        if (phase == 0)
            sum = tick_value(d, output, number);
        else
            for (int tap = 0; tap < 2 * REACH; tap++)
                sum += taps[phase][tap] * tick_value(d, output, number - (REACH - 1) + tap);
    }
    return sum;
}

/// What the input makes of what it hears.
static int32_t hear(struct direction *d, double sum) {
    struct scripted_card *card = d->card;
    double share = sum / 2147483648.0;
    sum -= card->saturation * share * share * share * 2147483648.0;
    if (card->noise) sum += ((double)rand_r(&d->random) / RAND_MAX * 2 - 1) * card->noise * 65536;
    return clamped(sum);
}

/// The next interrupt, which comes when the converter has passed a period more, however late the last one was served.
static void arm(struct direction *d) {
    double period = d->io.period_size / true_rate(d) * 1e9;
    int64_t since = now(d) - d->started_ns, number = since < 0 ? 1 : (int64_t)(since / period) + 1;
    int64_t due = d->started_ns + (int64_t)(number * period) + 1;
    if (d->card->jitter_ns) due += rand_r(&d->random) % d->card->jitter_ns;
    int virtual = load(&d->card->now_ns) != 0;
    if (virtual) due -= now(d);
    struct itimerspec when = {.it_value = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000}};
    timerfd_settime(d->io.poll_fd, virtual ? 0 : TFD_TIMER_ABSTIME, &when, NULL);
}

static int start(snd_pcm_ioplug_t *io) {
    struct direction *d = io->private_data;
    if (absent(d)) return -absent(d);
    d->started_ns = now(d);
    // In real time a card starts at a tick, so that nothing is to be read between samples unless its clock is off.
    if (!load(&d->card->now_ns)) d->started_ns = (int64_t)(ceil((double)d->started_ns * 48e-6) / 48e-6 + 0.5);
    d->card->started_ns[side(d)] = d->started_ns;
    d->running = 1;
    if (side(d) == 0) {
        // What was laid in before the start is heard from now on, as silence.
        for (int64_t frame = 0; frame < d->moved; frame++)
            for (int output = 0; output < 2; output++) lay(d, output, tick_of(d, frame), 0);
        memset(d->played, 0, sizeof d->played);
    }
    arm(d);
    return 0;
}

static int stop(snd_pcm_ioplug_t *io) {
    struct direction *d = io->private_data;
    d->running = 0;
    return 0;
}

static int prepare(snd_pcm_ioplug_t *io) {
    struct direction *d = io->private_data;
    if (absent(d)) return -absent(d);
    d->running = 0;
    d->moved = d->position = 0;
    return 0;
}

static snd_pcm_sframes_t pointer(snd_pcm_ioplug_t *io) {
    struct direction *d = io->private_data;
    if (absent(d)) {
        snd_pcm_ioplug_set_state(io, SND_PCM_STATE_DISCONNECTED);
        return d->position % io->buffer_size;
    }
    if (__atomic_exchange_n(&d->card->xrun[side(d)], 0, __ATOMIC_ACQ_REL)) {
        d->card->xruns++;
        return -EPIPE;
    }
    if (!d->running) return d->position % io->buffer_size;
    int64_t position = (int64_t)((now(d) - d->started_ns) * 1e-9 * true_rate(d) + 1e-3);
    // Of many cards the converter is known at interrupts only.
    if (!d->card->tells_position) position = position / (int64_t)io->period_size * (int64_t)io->period_size;
    int64_t most = side(d) ? d->moved + (int64_t)io->buffer_size - 1 : d->moved;
    if (position > most) {
        d->card->xruns++;
        return -EPIPE;
    }
    d->position = position;
    return position % io->buffer_size;
}

/// Where a frame of a channel lies, in bits.
static char *place(const snd_pcm_channel_area_t *area, snd_pcm_uframes_t frame) {
    return (char *)area->addr + (area->first + area->step * frame) / 8;
}

static int32_t get(const char *sample, snd_pcm_format_t format) {
    switch (format) {
    case SND_PCM_FORMAT_S32_LE: return *(const int32_t *)sample;
    case SND_PCM_FORMAT_S24_3LE:
        return (int32_t)((uint32_t)(uint8_t)sample[0] << 8 | (uint32_t)(uint8_t)sample[1] << 16
                         | (uint32_t)(uint8_t)sample[2] << 24);
    case SND_PCM_FORMAT_FLOAT_LE: return (int32_t)(*(const float *)sample * 2147483520.0f);
    case SND_PCM_FORMAT_U8: return (int32_t)((uint32_t)(uint8_t)(*sample ^ 0x80) << 24);
    default: return (int32_t)((uint32_t) * (const uint16_t *)sample << 16);
    }
}

static void put(char *sample, snd_pcm_format_t format, int32_t value) {
    switch (format) {
    case SND_PCM_FORMAT_S32_LE: *(int32_t *)sample = value; break;
    case SND_PCM_FORMAT_S24_3LE:
        sample[0] = (char)(value >> 8), sample[1] = (char)(value >> 16), sample[2] = (char)(value >> 24);
        break;
    case SND_PCM_FORMAT_FLOAT_LE: *(float *)sample = (float)value / 2147483648.0f; break;
    case SND_PCM_FORMAT_U8: *sample = (char)((value >> 24) ^ 0x80); break;
    default: *(int16_t *)sample = (int16_t)(value >> 16);
    }
}

static snd_pcm_sframes_t transfer(
    snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset, snd_pcm_uframes_t size) {
    struct direction *d = io->private_data;
    if (absent(d)) return -absent(d);
    int64_t before = load(&d->card->now_ns) ? 0 : spent();
    uint32_t most = d->card->most_at_once;
    if (most && size > most) size = most;
    d->card->transfers++;
    for (snd_pcm_uframes_t i = 0; i < size; i++, d->moved++) {
        int64_t first = tick_of(d, d->moved), next = tick_of(d, d->moved + 1);
        if (side(d)) {
            int wired = has_wires(d);
            double left = d->io.rate == 48000 ? carried(d, 0, d->moved) : 0, right = wired ? carried(d, 1, d->moved) : 0;
            int32_t value = wired ? 0
                : d->io.rate == 48000 ? hear(d, left)
                                      : (int32_t)tick_value(d, 0, first - d->card->cable_delay);
            for (unsigned channel = 0; channel < io->channels; channel++) {
                if (wired) value = hear(d, left * d->card->wires[0][channel] + right * d->card->wires[1][channel]);
                put(place(&areas[channel], offset + i), io->format, value);
            }
        } else if (d->running) {
            int32_t value = get(place(&areas[0], offset + i), io->format);
            if (d->io.rate == 48000)
                play(d, 0, value);
            else
                for (int64_t number = first; number < next || number == first; number++) lay(d, 0, number, value);
            if (has_wires(d)) play(d, 1, get(place(&areas[1], offset + i), io->format));
        }
    }
    if (before) d->card->spent_ns[side(d)] += spent() - before;
    return (snd_pcm_sframes_t)size;
}

static int poll_revents(snd_pcm_ioplug_t *io, struct pollfd *fds, unsigned count, unsigned short *revents) {
    struct direction *d = io->private_data;
    (void)count;
    *revents = 0;
    if (!(fds[0].revents & POLLIN)) return 0;
    uint64_t expirations;
    if (read(io->poll_fd, &expirations, sizeof expirations) < 0) return 0;
    if (d->running) arm(d);
    *revents = side(d) ? POLLIN : POLLOUT;
    return 0;
}

static int close_card(snd_pcm_ioplug_t *io) {
    struct direction *d = io->private_data;
    close(io->poll_fd);
    munmap(d->card, sizeof *d->card);
    free(d);
    return 0;
}

static const snd_pcm_ioplug_callback_t callbacks = {
    .start = start, .stop = stop, .pointer = pointer, .transfer = transfer, .prepare = prepare,
    .poll_revents = poll_revents, .close = close_card,
};

static int offer(struct direction *d) {
    struct scripted_card *card = d->card;
    unsigned access = SND_PCM_ACCESS_RW_INTERLEAVED, format = card->format;
    unsigned width = (unsigned)snd_pcm_format_physical_width((snd_pcm_format_t)format) / 8 * card->channels;
    snd_pcm_ioplug_t *io = &d->io;
    int error;
    if ((error = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_ACCESS, 1, &access)) < 0) return error;
    if ((error = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_FORMAT, 1, &format)) < 0) return error;
    if ((error = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_CHANNELS, 1, &card->channels)) < 0) return error;
    if ((error = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_RATE, 1, &card->rate)) < 0) return error;
    if ((error = snd_pcm_ioplug_set_param_minmax(
             io, SND_PCM_IOPLUG_HW_PERIOD_BYTES, card->least_period * width, card->most_period * width)) < 0)
        return error;
    return snd_pcm_ioplug_set_param_minmax(
        io, SND_PCM_IOPLUG_HW_BUFFER_BYTES, card->least_period * width * 2, card->most_buffer * width);
}

SND_PCM_PLUGIN_DEFINE_FUNC(scripted_card) {
    (void)root;
    snd_config_iterator_t i, next;
    const char *path = NULL;
    snd_config_for_each(i, next, conf) {
        snd_config_t *entry = snd_config_iterator_entry(i);
        const char *id;
        if (snd_config_get_id(entry, &id) >= 0 && strcmp(id, "control") == 0) snd_config_get_string(entry, &path);
    }
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return -ENOENT;
    struct direction *d = calloc(1, sizeof *d);
    if (!d) return -ENOMEM;
    d->card = mmap(0, sizeof *d->card, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (d->card == MAP_FAILED) return free(d), -ENOMEM;
    if (absent(d)) {
        int error = -absent(d);
        munmap(d->card, sizeof *d->card);
        return free(d), error;
    }
    d->card->opens++;
    d->card->open_policy = sched_getscheduler(0);
    make_taps();
    d->random = 1 + (unsigned)stream;
    d->io = (snd_pcm_ioplug_t){
        .version = SND_PCM_IOPLUG_VERSION, .name = "scripted card", .poll_events = POLLIN,
        .poll_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), .callback = &callbacks,
        .private_data = d,
    };
    int error = snd_pcm_ioplug_create(&d->io, name, stream, mode);
    if (error < 0) return close_card(&d->io), error;
    if ((error = offer(d)) < 0) return snd_pcm_ioplug_delete(&d->io), error;
    *pcmp = d->io.pcm;
    return 0;
}

SND_PCM_PLUGIN_SYMBOL(scripted_card);
