#include "line_reader.h"

#include "numbers.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int cut(struct line_reader *reader, char *line, size_t room)
{
    char *end = memchr(reader->bytes, '\n', reader->held);
    if (end == NULL)
        return 0;
    size_t length = (size_t)(end - reader->bytes);
    if (length >= room)
        give_up("take a line that long");
    memcpy(line, reader->bytes, length);
    line[length] = '\0';
    reader->held -= length + 1;
    memmove(reader->bytes, end + 1, reader->held);
    return 1;
}

int next_line(struct line_reader *reader, char *line, size_t room)
{
    for (;;) {
        if (cut(reader, line, room))
            return 1;
        struct pollfd readable = {.fd = reader->descriptor, .events = POLLIN};
        if (reader->ended || poll(&readable, 1, 0) <= 0)
            return 0;
        ssize_t count = read(reader->descriptor, reader->bytes + reader->held, sizeof reader->bytes - reader->held);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            reader->ended = 1;
            return 0;
        }
        reader->held += (size_t)count;
    }
}
