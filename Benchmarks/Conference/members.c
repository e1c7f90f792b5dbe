// The members of a meeting, as the mixer sees them: each sends a packet of plain RTP every 20 ms, and counts what it receives.
#include "numbers.h"
#include "transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

static const char usage[] =
    "usage: members MIXER SETTLING SECONDS < MEMBERS\n"
    "\n"
    "Reads a line for each member:\n"
    "  LOCAL_PORT REMOTE_PORT PAYLOAD_TYPE FIRST SOUND HEARD\n"
    "SOUND is a file of Opus packets, each behind its length in two bytes (the higher one first), which are sent again and again from\n"
    "packet FIRST. What arrives is written to HEARD in the same form; - writes nothing. The members' turns are spread evenly over\n"
    "20 ms. After SETTLING seconds it prints an empty line, counts for SECONDS seconds, and prints one JSON object. `cores` is what the\n"
    "process MIXER used meanwhile.\n";

enum {
    MAX_MEMBERS = 1000,
    FRAMES_PER_SECOND = 50,
    MAX_DATAGRAM_BYTES = 2048,
    LENGTH_BYTES = 2,
};

/// Opus packets in the order in which they are sent.
struct sound {
    uint8_t *bytes;
    /// Where each packet begins, and behind them the end of the last.
    size_t *starts;
    size_t count;
};

struct member {
    int socket;
    struct sockaddr_in remote;
    struct sender sender;
    struct sound sound;
    size_t next;
    FILE *heard;
    long sent, received, payload_bytes;
};

static void put_length(uint8_t *bytes, size_t length)
{
    bytes[0] = (uint8_t)(length >> 8);
    bytes[1] = (uint8_t)length;
}

static struct sound read_sound(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct sound sound = {0};
    uint8_t length[LENGTH_BYTES];
    size_t room = 0, used = 0;

    if (file == NULL)
        give_up("open a file of packets");
    while (fread(length, sizeof length, 1, file) == 1) {
        size_t bytes = (size_t)length[0] << 8 | length[1];
        if (bytes > MAX_PAYLOAD_BYTES)
            give_up("take a packet of that length");
        if (used + bytes > room || sound.starts == NULL) {
            room = 2 * room + MAX_PAYLOAD_BYTES;
            sound.bytes = realloc(sound.bytes, room);
        }
        sound.starts = realloc(sound.starts, (sound.count + 2) * sizeof *sound.starts);
        if (sound.bytes == NULL || sound.starts == NULL || fread(sound.bytes + used, 1, bytes, file) != bytes)
            give_up("read a packet");
        sound.starts[sound.count++] = used;
        used += bytes;
        sound.starts[sound.count] = used;
    }
    fclose(file);
    errno = 0;
    if (sound.count == 0)
        give_up("send an empty sound");
    return sound;
}

/// Reads one member's line. Returns 0 at the end of the input.
static int read_member(struct member *member)
{
    unsigned local, remote, type;
    size_t first;
    char sound[256], heard[256];
    uint16_t bound;
    int found = scanf("%u %u %u %zu %255s %255s", &local, &remote, &type, &first, sound, heard);

    if (found == EOF)
        return 0;
    errno = 0;
    if (found != 6 || local > UINT16_MAX || remote > UINT16_MAX || type > 127)
        give_up("use a member's line");
    memset(member, 0, sizeof *member);
    member->socket = loopback_socket((uint16_t)local, &bound);
    member->remote = loopback_address((uint16_t)remote);
    member->sender = (struct sender){.ssrc = 0x10000 + local, .payload_type = (uint8_t)type};
    member->sound = read_sound(sound);
    member->next = first % member->sound.count;
    if (strcmp(heard, "-") != 0 && (member->heard = fopen(heard, "wb")) == NULL)
        give_up("open a file for what is heard");
    return 1;
}

static void send_packet(struct member *member)
{
    uint8_t packet[MAX_PACKET_BYTES];
    const struct sound *sound = &member->sound;
    size_t start = sound->starts[member->next], length = sound->starts[member->next + 1] - start;

    write_rtp_header(&member->sender, packet);
    memcpy(packet + RTP_HEADER_BYTES, sound->bytes + start, length);
    member->next = (member->next + 1) % sound->count;
    if (sendto(member->socket, packet, RTP_HEADER_BYTES + length, 0, (struct sockaddr *)&member->remote, sizeof member->remote) > 0)
        member->sent++;
}

/// Takes in what has arrived. Mixers send neither contributors nor padding; an extension is skipped.
static void receive_packets(struct member *member)
{
    uint8_t packet[MAX_DATAGRAM_BYTES], length[LENGTH_BYTES];
    ssize_t bytes;

    while ((bytes = recv(member->socket, packet, sizeof packet, MSG_DONTWAIT)) >= 0) {
        ssize_t header = RTP_HEADER_BYTES;
        if (bytes > header + 4 && packet[0] & 0x10)
            header += 4 + 4 * (packet[header + 2] << 8 | packet[header + 3]);
        if (bytes <= header || (packet[1] & 0x7f) != member->sender.payload_type || is_rtcp(packet, (int)bytes))
            continue;
        member->received++;
        member->payload_bytes += bytes - header;
        if (member->heard != NULL) {
            put_length(length, (size_t)(bytes - header));
            fwrite(length, sizeof length, 1, member->heard);
            fwrite(packet + header, 1, (size_t)(bytes - header), member->heard);
        }
    }
}

/// How far behind its schedule this program was: on a machine too busy to measure on, this shows it.
struct lateness {
    int64_t worst_ns;
    /// Packets more than 5 ms late.
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
    lateness->late += behind > 5000000;
}

static struct lateness run_frames(struct member *members, int count, int64_t start_ns, long frames)
{
    struct lateness lateness = {0};
    for (long frame = 0; frame < frames; frame++) {
        for (int index = 0; index < count; index++) {
            wait_until(start_ns + frame * FRAME_NS + index * FRAME_NS / count, &lateness);
            send_packet(&members[index]);
            receive_packets(&members[index]);
        }
    }
    return lateness;
}

static void forget_counts(struct member *members, int count)
{
    for (int index = 0; index < count; index++)
        members[index].sent = members[index].received = members[index].payload_bytes = 0;
}

/// CPU time of a process, user and system.
static int64_t cpu_ns(pid_t process)
{
    clockid_t clock;
    struct timespec time;
    errno = clock_getcpuclockid(process, &clock);
    if (errno != 0 || clock_gettime(clock, &time) != 0)
        give_up("read the CPU time of the mixer");
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

/// What has been used until now.
struct reading {
    int64_t at_ns, mixer_ns, own_ns;
};

static struct reading read_usage(pid_t mixer)
{
    return (struct reading){.at_ns = monotonic_ns(), .mixer_ns = cpu_ns(mixer), .own_ns = own_cpu_ns()};
}

static void print_counts(const struct member *members, int count, struct lateness lateness, struct reading before, struct reading after)
{
    double took = (double)(after.at_ns - before.at_ns);
    long sent = 0, received = 0, bytes = 0, least = members[0].received;
    for (int index = 0; index < count; index++) {
        sent += members[index].sent;
        received += members[index].received;
        bytes += members[index].payload_bytes;
        if (members[index].received < least)
            least = members[index].received;
    }
    printf("{\"cores\": %.3f, \"sent\": %ld, \"received\": %ld, \"least_received\": %ld, \"payload_bytes\": %.1f, \"own_cores\": %.3f, \"late\": %ld, "
           "\"worst_late_ms\": %.1f}\n",
           (double)(after.mixer_ns - before.mixer_ns) / took, sent, received, least, received > 0 ? (double)bytes / (double)received : 0.0,
           (double)(after.own_ns - before.own_ns) / took, lateness.late, (double)lateness.worst_ns / 1000000);
}

int main(int arguments, char **argument)
{
    static struct member members[MAX_MEMBERS];
    int count = 0;

    if (arguments != 4) {
        fputs(usage, stderr);
        return 2;
    }
    pid_t mixer = (pid_t)parse_number("MIXER", argument[1], 1, INT32_MAX);
    long settling = parse_number("SETTLING", argument[2], 1, 3600), seconds = parse_number("SECONDS", argument[3], 1, 3600);
    while (count < MAX_MEMBERS && read_member(&members[count]))
        count++;
    if (count == 0) {
        fputs(usage, stderr);
        return 2;
    }
    become_realtime();
    int64_t start_ns = monotonic_ns();
    run_frames(members, count, start_ns, settling * FRAMES_PER_SECOND);
    forget_counts(members, count);
    puts("");
    fflush(stdout);
    struct reading before = read_usage(mixer);
    start_ns += settling * NS_PER_SECOND;
    struct lateness lateness = run_frames(members, count, start_ns, seconds * FRAMES_PER_SECOND);
    print_counts(members, count, lateness, before, read_usage(mixer));
    for (int index = 0; index < count; index++)
        if (members[index].heard != NULL && fclose(members[index].heard) != 0)
            give_up("write what was heard");
    return 0;
}
