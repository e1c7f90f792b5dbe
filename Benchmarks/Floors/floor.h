// The two floors under a call's cost.
#pragma once
#include "transport.h"

/// One call's work back to back for `laps` laps of speech; prints the median lap's CPU time a frame.
void run_tight(enum suite suite, int laps, const char *speech_directory);

/// `count` calls in one epoll thread, each packet answered on arrival, until standard input closes. Prints the lines
/// the load generator wants first.
void run_paced(enum suite suite, int count);
