#include "CScriptedCard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct scripted_card *scripted_card_create(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return 0;
    void *memory = MAP_FAILED;
    if (ftruncate(file, sizeof(struct scripted_card)) == 0)
        memory = mmap(0, sizeof(struct scripted_card), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? 0 : memory;
}

void scripted_card_unmap(struct scripted_card *card) { munmap(card, sizeof *card); }

int32_t scripted_card_heard(const struct scripted_card *card, int64_t tick) {
    struct scripted_card_tick entry = card->cable[tick % SCRIPTED_CARD_TICKS];
    return entry.number == tick ? entry.value : 0;
}

void scripted_card_lay(struct scripted_card *card, int64_t tick, int32_t value) {
    card->cable[tick % SCRIPTED_CARD_TICKS] = (struct scripted_card_tick){.number = tick, .value = value};
}
