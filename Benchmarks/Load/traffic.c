#include "traffic.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

// An invite is completed when its inviter hears that it was accepted. Then the call is hung up, and the pair is free for
// the next one.

static struct {
    bool is_on;
    size_t window, under_way, next;
    double rate, began, ends, last;
    uint64_t begun, completed, failed, refused;
    double *latencies;
    size_t count, capacity;
} traffic;

void traffic_begin(size_t window, double rate, double seconds) {
    free(traffic.latencies);
    size_t under_way = 0;
    memset(&traffic, 0, sizeof traffic);
    for (size_t index = 0; index < fleet.count; index++) under_way += fleet.devices[index].is_busy;
    traffic.is_on = true;
    traffic.window = window;
    traffic.rate = rate;
    traffic.under_way = under_way;
    traffic.began = traffic.last = now_seconds();
    traffic.ends = traffic.began + seconds;
}

// Pairs take turns: the caller has an even place, the callee the odd one behind it.
static struct device *free_caller(void) {
    size_t pairs = fleet.count / 2;
    for (size_t tried = 0; tried < pairs; tried++) {
        struct device *caller = &fleet.devices[2 * (traffic.next++ % pairs)];
        if (!caller->is_busy && caller->state == DEVICE_READY && caller[1].state == DEVICE_READY) return caller;
    }
    return NULL;
}

static void invite(struct device *caller, double at) {
    static uint64_t key;
    caller->is_busy = true;
    caller->invited_at = at;
    traffic.under_way++;
    traffic.begun++;
    device_request(
        caller, ID_INVITE,
        "\"method\":\"invite.send\",\"params\":{\"to\":\"%s\",\"ttl\":30,\"idempotency_key\":\"%llu-%llu\","
        "\"data\":{\"offer\":{\"type\":\"offer\",\"sdp\":\"%s\"}}}",
        caller[1].user, (unsigned long long)(traffic.began * 1e3), (unsigned long long)key++,
        // About the size of an offer of audio.
        "v=0\\r\\no=- 4611731400430051336 2 IN IP4 127.0.0.1\\r\\ns=-\\r\\nt=0 0\\r\\na=group:BUNDLE 0\\r\\n"
        "m=audio 9 UDP/TLS/RTP/SAVPF 111 110\\r\\nc=IN IP4 0.0.0.0\\r\\na=ice-ufrag:4ZcD\\r\\n"
        "a=ice-pwd:2/1muCWoOi3uLifh0NuRHlZ5\\r\\na=fingerprint:sha-256 7B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:"
        "35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08\\r\\na=setup:actpass\\r\\na=mid:0\\r\\na=sendrecv\\r\\n"
        "a=rtcp-mux\\r\\na=rtpmap:111 opus/48000/2\\r\\na=fmtp:111 minptime=10;useinbandfec=1\\r\\n"
        "a=rtpmap:110 telephone-event/48000\\r\\n");
}

double traffic_work(void) {
    if (!traffic.is_on) return -1;
    double now = now_seconds();
    if (now >= traffic.ends) return traffic.under_way > 0 ? 0.05 : -1;
    if (traffic.rate == 0) {
        while (traffic.under_way < traffic.window) {
            struct device *caller = free_caller();
            if (caller == NULL) return 0.001;
            invite(caller, now);
        }
        return 0.01;
    }
    for (;;) {
        // Counted from when it was to begin, so that what waits for a free pair is not told away.
        double due = traffic.began + (double)traffic.begun / traffic.rate;
        if (due > now) return due - now;
        struct device *caller = free_caller();
        if (caller == NULL) return 0.001;
        invite(caller, due);
    }
}

bool traffic_is_over(void) {
    if (!traffic.is_on) return true;
    double now = now_seconds();
    // What has not come within this time does not come.
    return now >= traffic.ends && (traffic.under_way == 0 || now >= traffic.ends + 20);
}

static void finish(struct device *caller) {
    if (!caller->is_busy) return;
    caller->is_busy = false;
    if (traffic.under_way > 0) traffic.under_way--;
}

void traffic_answer(struct device *device, int id, bool is_refusal, const char *message) {
    (void)message;
    if (id == ID_END) finish(device);
    if (is_refusal) traffic.refused++;
    if (is_refusal && id == ID_INVITE) {
        traffic.failed++;
        finish(device);
    }
}

void traffic_event(struct device *device, const char *type, const char *message) {
    char invite[64];
    if (!json_text(message, "invite", invite, sizeof invite)) return;
    if (strcmp(type, "inviteReceived") == 0) {
        device_request(
            device, ID_ACCEPT, "\"method\":\"invite.accept\",\"params\":{\"invite\":\"%s\",\"data\":{\"answer\":{"
            "\"type\":\"answer\",\"sdp\":\"v=0\\r\\n\"}}}", invite);
    } else if (strcmp(type, "inviteAccepted") == 0 && device->is_busy) {
        double now = now_seconds();
        if (traffic.count == traffic.capacity) {
            traffic.capacity = traffic.capacity == 0 ? 4096 : 2 * traffic.capacity;
            traffic.latencies = realloc(traffic.latencies, traffic.capacity * sizeof *traffic.latencies);
            if (traffic.latencies == NULL) exit(1);
        }
        traffic.latencies[traffic.count++] = now - device->invited_at;
        if (now <= traffic.ends) traffic.completed++;
        traffic.last = now;
        device_request(
            device, ID_END,
            "\"method\":\"call.end\",\"params\":{\"invite\":\"%s\",\"reason\":\"completed\",\"duration_ms\":0}", invite);
    }
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double percentile(double share) {
    if (traffic.count == 0) return 0;
    size_t index = (size_t)(share * (double)(traffic.count - 1) + 0.5);
    return 1e3 * traffic.latencies[index];
}

void traffic_report(void) {
    qsort(traffic.latencies, traffic.count, sizeof *traffic.latencies, by_size);
    printf(
        "{\"begun\": %llu, \"completed\": %llu, \"failed\": %llu, \"refused\": %llu, \"repeated\": %llu, \"moved\": %llu, \"per_second\": %.1f, \"p50_ms\": %.3f, "
        "\"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
        (unsigned long long)traffic.begun, (unsigned long long)traffic.count,
        (unsigned long long)(traffic.begun - traffic.count), (unsigned long long)traffic.refused,
        (unsigned long long)fleet.repeated, (unsigned long long)fleet.moved, (double)traffic.completed / (traffic.ends - traffic.began),
        percentile(0.5), percentile(0.99), percentile(1));
    fflush(stdout);
    traffic.is_on = false;
}
