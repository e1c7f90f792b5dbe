#include "CPostgres.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define CONNECTION handset_pg_connection *
#define RESULT handset_pg_result *

// The functions of libpq, as its documentation declares them.
#define FUNCTIONS(_) \
    _(connectStartParams, CONNECTION, (const char *const *, const char *const *, int)) \
    _(connectPoll, int, (CONNECTION)) \
    _(socket, int, (const handset_pg_connection *)) \
    _(finish, void, (CONNECTION)) \
    _(errorMessage, char *, (const handset_pg_connection *)) \
    _(backendPID, int, (const handset_pg_connection *)) \
    _(serverVersion, int, (const handset_pg_connection *)) \
    _(status, int, (const handset_pg_connection *)) \
    _(setnonblocking, int, (CONNECTION, int)) \
    _(enterPipelineMode, int, (CONNECTION)) \
    _(sendPrepare, int, (CONNECTION, const char *, const char *, int, const unsigned int *)) \
    _(sendQueryPrepared, int, \
        (CONNECTION, const char *, int, const char *const *, const int *, const int *, int)) \
    _(sendQuery, int, (CONNECTION, const char *)) \
    _(pipelineSync, int, (CONNECTION)) \
    _(flush, int, (CONNECTION)) \
    _(consumeInput, int, (CONNECTION)) \
    _(isBusy, int, (CONNECTION)) \
    _(getResult, RESULT, (CONNECTION)) \
    _(resultStatus, int, (const handset_pg_result *)) \
    _(clear, void, (RESULT)) \
    _(ntuples, int, (const handset_pg_result *)) \
    _(nfields, int, (const handset_pg_result *)) \
    _(fname, char *, (const handset_pg_result *, int)) \
    _(getisnull, int, (const handset_pg_result *, int, int)) \
    _(getvalue, char *, (const handset_pg_result *, int, int)) \
    _(resultErrorField, char *, (const handset_pg_result *, int))

#define DECLARE(name, result, parameters) result(*name) parameters;
static struct { FUNCTIONS(DECLARE) } pq;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *fault;

static void load(void) {
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fault = dlerror();
        return;
    }
#define FIND(name, result, parameters) \
    *(void **)&pq.name = dlsym(library, "PQ" #name); \
    if (!pq.name) { \
        fault = "it has no function PQ" #name "; version 14 or later is needed"; \
        return; \
    }
    FUNCTIONS(FIND)
}

const char *handset_pg_load(void) {
    pthread_once(&once, load);
    return fault;
}

handset_pg_connection *handset_pg_start(const char *const *names, const char *const *values) {
    return pq.connectStartParams(names, values, 0);
}

int handset_pg_continue(CONNECTION connection) { return pq.connectPoll(connection); }
int handset_pg_socket(CONNECTION connection) { return pq.socket(connection); }
void handset_pg_finish(CONNECTION connection) { pq.finish(connection); }
const char *handset_pg_error(CONNECTION connection) { return pq.errorMessage(connection); }
int handset_pg_backend(CONNECTION connection) { return pq.backendPID(connection); }
int handset_pg_version(CONNECTION connection) { return pq.serverVersion(connection); }
bool handset_pg_is_open(CONNECTION connection) { return pq.status(connection) == 0; }

bool handset_pg_begin_pipeline(CONNECTION connection) {
    return pq.setnonblocking(connection, 1) == 0 && pq.enterPipelineMode(connection) == 1;
}

bool handset_pg_prepare(CONNECTION connection, const char *name, const char *text) {
    return pq.sendPrepare(connection, name, text, 0, NULL) == 1;
}

bool handset_pg_execute(
    CONNECTION connection, const char *name, const uint8_t *bytes, const int64_t *offsets, int count) {
    const char *values[32];
    if (count > 32) return false;
    for (int i = 0; i < count; i++) values[i] = offsets[i] < 0 ? NULL : (const char *)bytes + offsets[i];
    return pq.sendQueryPrepared(connection, name, count, values, NULL, NULL, 0) == 1;
}

bool handset_pg_send(CONNECTION connection, const char *text) { return pq.sendQuery(connection, text) == 1; }
bool handset_pg_sync(CONNECTION connection) { return pq.pipelineSync(connection) == 1; }
int handset_pg_flush(CONNECTION connection) { return pq.flush(connection); }
bool handset_pg_consume(CONNECTION connection) { return pq.consumeInput(connection) == 1; }
bool handset_pg_is_busy(CONNECTION connection) { return pq.isBusy(connection) == 1; }
handset_pg_result *handset_pg_next(CONNECTION connection) { return pq.getResult(connection); }

int handset_pg_status(RESULT result) { return pq.resultStatus(result); }
void handset_pg_clear(RESULT result) { pq.clear(result); }
int handset_pg_rows(RESULT result) { return pq.ntuples(result); }
int handset_pg_columns(RESULT result) { return pq.nfields(result); }
const char *handset_pg_column(RESULT result, int column) { return pq.fname(result, column); }
bool handset_pg_is_null(RESULT result, int row, int column) { return pq.getisnull(result, row, column) == 1; }
const char *handset_pg_value(RESULT result, int row, int column) { return pq.getvalue(result, row, column); }
const char *handset_pg_state(RESULT result) { return pq.resultErrorField(result, 'C'); }
const char *handset_pg_message(RESULT result) { return pq.resultErrorField(result, 'M'); }

int handset_pg_wait(int socket, bool write, int milliseconds) {
    struct pollfd polled = {.fd = socket, .events = POLLIN | (write ? POLLOUT : 0)};
    int found = poll(&polled, 1, milliseconds);
    return found < 0 ? (errno == EINTR ? 0 : -1) : found > 0;
}

int64_t handset_boot_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
