// What a call costs at the least, with nothing around the codec, the cipher and the socket.
#include "floor.h"

#include "numbers.h"
#include "speech.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: floor tight [--suite gcm|cm] [--laps N] [--speech DIR]\n"
    "       floor paced [--suite gcm|cm] [--calls N]\n"
    "\n"
    "tight: recvfrom, SRTP unprotect, Opus decode, Opus encode, SRTP protect, sendto, back to back in one process;\n"
    "       prints the CPU time of one 20 ms frame as JSON.\n"
    "paced: the same work in one epoll thread for N calls, each packet answered when it arrives; prints a line a call\n"
    "       for loadgen, which sends the packets and measures this process. Ends when standard input closes.\n";

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"suite", required_argument, NULL, 's'},
        {"laps", required_argument, NULL, 'l'},
        {"calls", required_argument, NULL, 'c'},
        {"speech", required_argument, NULL, 'd'},
        {0},
    };
    enum suite suite = SUITE_GCM;
    const char *directory = SPEECH_DIRECTORY;
    int laps = 21, calls = 10, option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's' && suite_from_name(optarg, &suite))
            continue;
        else if (option == 'l')
            laps = (int)parse_number("--laps", optarg, 1, 100000);
        else if (option == 'c')
            calls = (int)parse_number("--calls", optarg, 1, 1000);
        else if (option == 'd')
            directory = optarg;
        else
            optind = argc + 1;
    }
    if (optind != argc - 1) {
        fputs(usage, stderr);
        return 2;
    }

    transport_start();
    if (strcmp(argv[optind], "tight") == 0) {
        run_tight(suite, laps, directory);
    } else if (strcmp(argv[optind], "paced") == 0) {
        run_paced(suite, calls);
    } else {
        fputs(usage, stderr);
        return 2;
    }
    return 0;
}
