// A sound card for tests, behind the real libasound: plugin/scripted_card.c is an ALSA plug-in that acts as one, with a
// cable from its output to its input. This is the page of memory through which a test tells it what to do, in time that
// the test makes.
#pragma once
#include <stdint.h>

#define SCRIPTED_CARD_TICKS (1 << 17)

/// A sample on the cable, at a tick of 1/48 000 s.
struct scripted_card_tick {
    int64_t number;
    int32_t value;
    int32_t unused;
};

struct scripted_card {
    /// The time in nanoseconds; 0 for the machine's monotonic clock.
    int64_t now_ns;
    /// How much faster than nominal each direction runs, in millionths. [0] playback, [1] capture, here as below.
    double ppm[2];
    /// What everything fails with while the card is away; 0 if it is there.
    int32_t absent_errno;
    /// Set to 1: the next look at the position finds an xrun.
    int32_t xrun[2];
    /// The most frames that one transfer moves; 0 for any.
    uint32_t most_at_once;
    /// Nanoseconds by which a wake-up is late at the most, if time is the machine's.
    uint32_t jitter_ns;
    /// What the card offers: one rate, one format (libasound's number), one number of channels.
    uint32_t rate, format, channels;
    /// Bounds of its period and buffer, in frames.
    uint32_t least_period, most_period, most_buffer;
    /// What the cable does: ticks by which it delays, and holes of silence in it, so many ticks in each so many; 0 for none.
    uint32_t cable_delay, hole_every, hole_length;
    /// Noise that the input adds, as its greatest value of 32 768, and the share of its cube that sound loses on the way.
    uint32_t noise;
    double saturation;
    /// How loud each input hears each output, as [output][input], of a card with two cables, at 48 kHz; negative turns the
    /// sign. With zeros alone there is one cable, from the first output to all inputs.
    double wires[2][2];
    /// Whether where the converters are is known at all times, as most cards that sit on a bus tell it, and not at interrupts
    /// only.
    uint32_t tells_position;
    /// What has happened.
    uint32_t opens, xruns, transfers;
    /// How the thread that opened it last is scheduled (SCHED_OTHER, SCHED_FIFO).
    int32_t open_policy;
    /// When each direction was started last; 0 before that.
    int64_t started_ns[2];
    /// CPU time that being a card has cost the program, in transfers, if time is the machine's.
    int64_t spent_ns[2];
    struct scripted_card_tick cable[SCRIPTED_CARD_TICKS];
    /// What the second output plays.
    struct scripted_card_tick second_cable[SCRIPTED_CARD_TICKS];
};

/// Makes the file `path`, of the right size, and maps it. Null if that fails.
struct scripted_card *scripted_card_create(const char *path);
void scripted_card_unmap(struct scripted_card *card);

/// What is on the cable at a tick, of 2³¹; 0 if nothing was laid there.
int32_t scripted_card_heard(const struct scripted_card *card, int64_t tick);
/// How many ticks later what is on the cable `there` from `tick` on comes by on the cable `back`: the lag of the best
/// normalised cross-correlation, up to `most` ticks; `likeness` is that correlation.
int64_t scripted_card_lag(
    const struct scripted_card *there, const struct scripted_card *back, int64_t tick, int32_t length, int32_t most,
    double *likeness);
/// Lays a sample on the cable.
void scripted_card_lay(struct scripted_card *card, int64_t tick, int32_t value);
