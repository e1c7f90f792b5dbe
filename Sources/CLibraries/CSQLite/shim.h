// libsqlite3, as the distribution ships it, with what Swift cannot import of it: a constant that is no pointer, and a function with
// variable arguments.
#pragma once
#include <sqlite3.h>

/// Binds a text of `length` bytes, which SQLite copies.
static inline int handset_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int length) {
    return sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT);
}

/// Gives a text of `length` bytes, which SQLite copies, as the result of an SQL function.
static inline void handset_sqlite_result_text(sqlite3_context *context, const char *text, int length) {
    sqlite3_result_text(context, text, length, SQLITE_TRANSIENT);
}

/// Has SQLite take what is in double quotes for a name alone, and never for a text if no column has that name.
static inline int handset_sqlite_refuse_double_quoted_texts(sqlite3 *database) {
    int result = sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
    return result != SQLITE_OK ? result : sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
}

/// Has closing the database leave its log as it is.
static inline int handset_sqlite_keep_log(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
