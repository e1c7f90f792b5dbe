// Invites between pairs of devices, sent as fast as they are completed or at a given rate.
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>

// Begins: with a rate of 0 always `window` invites are under way; else `rate` a second begin, evenly.
void traffic_begin(size_t window, double rate, double seconds);
// Begins what is due; returns when it wants to be called again, in seconds from now, or a negative number for never.
double traffic_work(void);
bool traffic_is_over(void);
// Prints what came of it as one JSON object.
void traffic_report(void);

#endif
