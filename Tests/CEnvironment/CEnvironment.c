#define _GNU_SOURCE
#include "CEnvironment.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static char **changed(char **variables, const char *name, char *line) {
    size_t count = 0, length = strlen(name);
    while (variables[count] != NULL) count++;
    char **copy = calloc(count + 2, sizeof *copy), **next = copy;
    if (copy == NULL) return NULL;
    for (size_t index = 0; index < count; index++) {
        char *variable = variables[index];
        if (strncmp(variable, name, length) != 0 || variable[length] != '=') *next++ = variable;
    }
    *next = line;
    return copy;
}

int handset_test_set_variable(const char *name, const char *value) {
    char *line = NULL;
    if (value != NULL && asprintf(&line, "%s=%s", name, value) < 0) return ENOMEM;
    pthread_mutex_lock(&writing);
    char **variables = changed(environ, name, line);
    if (variables != NULL) __atomic_store_n(&environ, variables, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&writing);
    return variables != NULL ? 0 : ENOMEM;
}
