// Sends the callers' side of many calls on time, from a process of its own, and measures the process that answers.
#include "call_line.h"
#include "line_reader.h"
#include "numbers.h"
#include "observer.h"
#include "speech.h"
#include "traffic.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_CALLS = 1000,
    FRAMES_PER_SECOND = 50,
};

static const char usage[] =
    "usage: loadgen [--seconds S] [--warm-up S] [--measure PID] [--speech DIR] [--growing]  < CALL LINES\n"
    "\n"
    "Reads one line a call up to \"go\" or the end of input:\n"
    "  call REMOTE_IP REMOTE_PORT LOCAL_PORT SSRC PAYLOAD_TYPE SUITE SEND_KEY RECEIVE_KEY\n"
    "sends each a packet of speech every 20 ms, phases spread evenly, and counts what comes back. After the warm-up\n"
    "(default 3 s) it measures the CPU time of process PID for S seconds (default 20). Prints one JSON object.\n"
    "--growing sends to each call from when its line is read; the warm-up begins with \"go\". Then it goes on to send,\n"
    "and prints what became of all packets so far, once a second until the input ends.\n";

struct plan {
    long seconds, warm_up;
    pid_t subject;
    const char *directory;
    int growing;
};

/// How far behind its schedule the generator was: on a machine too busy to measure on, this shows it.
struct lateness {
    int64_t worst_ns;
    /// Packets more than 1 ms late.
    long late;
};

static void wait_until(int64_t deadline_ns, struct lateness *lateness)
{
    struct timespec deadline = {deadline_ns / NS_PER_SECOND, deadline_ns % NS_PER_SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
        continue;
    int64_t behind = monotonic_ns() - deadline_ns;
    if (behind > lateness->worst_ns)
        lateness->worst_ns = behind;
    lateness->late += behind > 1000000;
}

/// Sends `frames` packets for each call, the calls' turns spread over every 20 ms. Returns when the last is due.
static int64_t send_frames(struct traffic *all, int calls, long frames, int64_t start_ns, struct lateness *lateness)
{
    for (long frame = 0; frame < frames; frame++) {
        for (int call = 0; call < calls; call++) {
            wait_until(start_ns + frame * FRAME_NS + call * FRAME_NS / calls, lateness);
            traffic_step(&all[call]);
        }
    }
    return start_ns + frames * FRAME_NS;
}

static void print_result(const struct plan *plan, int calls, struct reading before, struct reading after,
                         struct counts was, struct counts now, struct lateness lateness)
{
    double seconds = (double)(after.at_ns - before.at_ns) / NS_PER_SECOND;
    double frames = (double)calls * (double)plan->seconds * FRAMES_PER_SECOND;
    int64_t subject = after.subject_ns - before.subject_ns, own = after.own_ns - before.own_ns;
    long received = now.received - was.received;
    double others = (double)(after.machine_ns - before.machine_ns - subject - own) / NS_PER_SECOND / seconds;

    printf("{\"calls\": %d, \"seconds\": %.2f, \"sent\": %ld, \"received\": %ld, \"rejected\": %ld, \"rtcp\": %ld, "
           "\"payload_bytes\": %.1f, \"cpu_us\": %.2f, \"rss_kb\": %ld, \"own_cpu\": %.3f, \"others_cpu\": %.2f, "
           "\"late\": %ld, \"worst_late_ms\": %.2f}\n",
           calls, seconds, now.sent - was.sent, received, now.rejected - was.rejected, now.rtcp - was.rtcp,
           received > 0 ? (double)(now.payload_bytes - was.payload_bytes) / (double)received : 0.0,
           (double)subject / 1000 / frames, plan->subject == 0 ? 0 : resident_kb(plan->subject),
           (double)own / NS_PER_SECOND / seconds, others < 0 ? 0 : others, lateness.late,
           (double)lateness.worst_ns / 1000000);
}

static void run(const struct plan *plan)
{
    static struct call_line lines[MAX_CALLS];
    static struct traffic all[MAX_CALLS];

    struct speech speech = speech_load(plan->directory);
    int calls = read_call_lines(stdin, lines, MAX_CALLS);
    errno = 0;
    if (calls == 0)
        give_up("send without a call to send to");
    size_t packets = (size_t)(plan->warm_up + plan->seconds) * FRAMES_PER_SECOND;
    for (int i = 0; i < calls; i++)
        all[i] = traffic_open(&lines[i], &speech, speech.count * (size_t)i / (size_t)calls, packets);
    become_realtime();

    struct lateness lateness = {0};
    int64_t start = monotonic_ns() + FRAME_NS;
    start = send_frames(all, calls, plan->warm_up * FRAMES_PER_SECOND, start, &lateness);

    lateness = (struct lateness){0};
    struct counts was = traffic_total(all, calls);
    struct reading before = read_usage(plan->subject);
    int64_t end = send_frames(all, calls, plan->seconds * FRAMES_PER_SECOND, start, &lateness);
    struct lateness ignored = {0};
    wait_until(end, &ignored);
    struct reading after = read_usage(plan->subject);
    print_result(plan, calls, before, after, was, traffic_total(all, calls), lateness);
}

enum {
    /// Moments in 20 ms at which packets leave.
    SLOTS = 100,
    /// Packets that are ready for each call: a minute and a half.
    GROWING_PACKETS = 90 * FRAMES_PER_SECOND,
};

/// Calls that are still being placed while the first ones talk.
struct growing {
    struct traffic all[MAX_CALLS];
    int calls;
    struct speech speech;
    struct line_reader input;
    int went;
};

/// Takes up the calls whose lines have come.
static void grow(struct growing *growing)
{
    char line[512];
    struct call_line call;

    while (next_line(&growing->input, line, sizeof line)) {
        if (strcmp(line, "go") == 0) {
            growing->went = 1;
        } else if (growing->calls == MAX_CALLS || !parse_call_line(line, &call)) {
            errno = 0;
            give_up("use a line as a call");
        } else {
            size_t first = growing->speech.count * (size_t)(growing->calls % SLOTS) / SLOTS;
            growing->all[growing->calls++] = traffic_open(&call, &growing->speech, first, GROWING_PACKETS);
        }
    }
}

/// Sends one packet for each call, at its own moment of the 20 ms from `start_ns` on.
static void send_round(struct growing *growing, int64_t start_ns, struct lateness *lateness)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        wait_until(start_ns + slot * FRAME_NS / SLOTS, lateness);
        // 37 has no factor in common with 100, so that neighbours are spread.
        for (int call = 0; call < growing->calls; call++)
            if (call * 37 % SLOTS == slot)
                traffic_step(&growing->all[call]);
    }
}

static void print_total(const struct growing *growing)
{
    struct counts total = traffic_total(growing->all, growing->calls);
    printf("{\"calls\": %d, \"sent\": %ld, \"received\": %ld}\n", growing->calls, total.sent, total.received);
    fflush(stdout);
}

static void run_growing(const struct plan *plan)
{
    static struct growing growing;
    struct lateness lateness = {0};
    struct reading before = {0};
    struct counts was = {0};
    long frame = 0, began = 0, ends = 0;

    growing.speech = speech_load(plan->directory);
    growing.input = (struct line_reader){.descriptor = 0};
    become_realtime();
    for (int64_t start = monotonic_ns() + FRAME_NS; !growing.input.ended; frame++, start += FRAME_NS) {
        grow(&growing);
        if (growing.went == 1) {
            growing.went = 2;
            began = frame + plan->warm_up * FRAMES_PER_SECOND;
            ends = began + plan->seconds * FRAMES_PER_SECOND;
        }
        if (growing.went == 2 && frame == began) {
            lateness = (struct lateness){0};
            was = traffic_total(growing.all, growing.calls);
            before = read_usage(plan->subject);
        }
        if (growing.went == 2 && frame == ends) {
            growing.went = 3;
            print_result(plan, growing.calls, before, read_usage(plan->subject), was,
                         traffic_total(growing.all, growing.calls), lateness);
            fflush(stdout);
        }
        if (frame % FRAMES_PER_SECOND == 0)
            print_total(&growing);
        send_round(&growing, start, &lateness);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},
        {"warm-up", required_argument, NULL, 'w'},
        {"measure", required_argument, NULL, 'm'},
        {"speech", required_argument, NULL, 'd'},
        {"growing", no_argument, NULL, 'g'},
        {0},
    };
    struct plan plan = {.seconds = 20, .warm_up = 3, .directory = SPEECH_DIRECTORY};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            plan.seconds = parse_number("--seconds", optarg, 1, 3600);
        else if (option == 'w')
            plan.warm_up = parse_number("--warm-up", optarg, 0, 600);
        else if (option == 'm')
            plan.subject = (pid_t)parse_number("--measure", optarg, 1, 1 << 22);
        else if (option == 'd')
            plan.directory = optarg;
        else if (option == 'g')
            plan.growing = 1;
        else
            optind = argc + 1;
    }
    if (optind != argc) {
        fputs(usage, stderr);
        return 2;
    }
    transport_start();
    if (plan.growing)
        run_growing(&plan);
    else
        run(&plan);
    return 0;
}
