// Lines from a descriptor, as they come, without waiting for any.
#pragma once
#include <stddef.h>

struct line_reader {
    int descriptor;
    /// The other side has closed it, and all its lines have been read.
    int ended;
    size_t held;
    char bytes[4096];
};

/// Copies the next line, without its end, into `line`. Returns 0 if none is there yet, or ever will be.
int next_line(struct line_reader *reader, char *line, size_t room);
