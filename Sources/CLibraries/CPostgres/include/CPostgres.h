// The part of libpq (PostgreSQL's client library) that the exchange uses. The library is loaded when the first connection is made, so
// that a program without one neither links nor needs it; nothing of its headers is needed for building.
#pragma once
#include <stdbool.h>
#include <stdint.h>

/// A connection of libpq (PGconn).
typedef struct handset_pg_connection handset_pg_connection;
/// A result of libpq (PGresult).
typedef struct handset_pg_result handset_pg_result;

/// What a result is: ExecStatusType of libpq, which has had these numbers since version 14.
enum {
    HANDSET_PG_COMMAND_OK = 1,
    HANDSET_PG_TUPLES_OK = 2,
    HANDSET_PG_SYNC = 10,
    HANDSET_PG_ABORTED = 11,
};

/// Loads libpq.so.5. Returns NULL, or what the loader said. Any thread may call, any number of times.
const char *handset_pg_load(void);

/// Begins a connection with parameters by their names; both lists end with NULL. NULL without memory. Load first.
handset_pg_connection *handset_pg_start(const char *const *names, const char *const *values);
/// Continues to connect: 0 failed, 1 wait for reading, 2 wait for writing, 3 connected (PostgresPollingStatusType).
int handset_pg_continue(handset_pg_connection *connection);
/// The connection's socket; negative without one.
int handset_pg_socket(handset_pg_connection *connection);
void handset_pg_finish(handset_pg_connection *connection);
/// The text of the last failure. It lives until the next call.
const char *handset_pg_error(handset_pg_connection *connection);
/// The server's process, as the other end named it at the start.
int handset_pg_backend(handset_pg_connection *connection);
/// The server's version: 150004 for 15.4.
int handset_pg_version(handset_pg_connection *connection);
/// Whether the connection is usable still.
bool handset_pg_is_open(handset_pg_connection *connection);
/// After connecting: calls do not block, and statements are sent one after the other without waiting for results.
bool handset_pg_begin_pipeline(handset_pg_connection *connection);

/// Sends a statement to be prepared.
bool handset_pg_prepare(handset_pg_connection *connection, const char *name, const char *text);
/// Sends a prepared statement with text values, at most 32: `bytes` contains them one after the other, each with a NUL at its end,
/// from `offsets`; a negative offset is a null.
bool handset_pg_execute(
    handset_pg_connection *connection, const char *name, const uint8_t *bytes, const int64_t *offsets, int count);
/// Sends statements without values, in one text, outside of a pipeline's rules: only before ``handset_pg_begin_pipeline``.
bool handset_pg_send(handset_pg_connection *connection, const char *text);
/// Ends what was sent so far: the server answers all of it.
bool handset_pg_sync(handset_pg_connection *connection);
/// Sends what waits: 0 when all was sent, 1 if some waits, -1 on failure.
int handset_pg_flush(handset_pg_connection *connection);
/// Reads what has come.
bool handset_pg_consume(handset_pg_connection *connection);
/// Whether the next result would have to be waited for.
bool handset_pg_is_busy(handset_pg_connection *connection);
/// The next result, to be cleared; NULL at the end of a statement's results.
handset_pg_result *handset_pg_next(handset_pg_connection *connection);

int handset_pg_status(handset_pg_result *result);
void handset_pg_clear(handset_pg_result *result);
int handset_pg_rows(handset_pg_result *result);
int handset_pg_columns(handset_pg_result *result);
const char *handset_pg_column(handset_pg_result *result, int column);
bool handset_pg_is_null(handset_pg_result *result, int row, int column);
const char *handset_pg_value(handset_pg_result *result, int row, int column);
/// The SQLSTATE of a failure, five letters; NULL for a failure of the connection.
const char *handset_pg_state(handset_pg_result *result);
/// The main message of a failure.
const char *handset_pg_message(handset_pg_result *result);

/// Waits at most `milliseconds` until the socket can be read or, if `write`, written: 1, 0 after that time, -1 on failure.
int handset_pg_wait(int socket, bool write, int milliseconds);
/// CLOCK_BOOTTIME in nanoseconds: it continues while the machine is suspended.
int64_t handset_boot_time(void);
