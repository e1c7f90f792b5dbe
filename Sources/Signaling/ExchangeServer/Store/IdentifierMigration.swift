internal import ExchangeCore
import SignalWire

/// The fifth migration: names are of the one form of ``Identifier``, and keys that were made of two names are columns.
///
/// Rows whose names have another form go to the table `set_aside`, with what is wrong with them. Earlier versions wrote texts
/// up to their first zero byte only; they kept the device of a session with a token for a room as the room, a zero byte and
/// the device's own id, of which therefore the room alone is left, and such sessions cannot be found again.
struct IdentifierMigration {
    let connection: SQLiteConnection

    func run() throws {
        try connection.with([Self.misfit, Self.misread, SetAsideRows.shown, Self.ownDevice]) {
            try connection.execute(Self.preparation)
            try splitDevices()
            for table in IdentifierTables.all { try setAside(table.name, table.fault) }
            try connection.execute(Self.restructuring)
        }
    }

    /// Splits the room off the device ids of sessions and of their events.
    private func splitDevices() throws {
        let device = "CAST(device AS BLOB)"
        try setAside(
            "sessions", "CASE WHEN scope IS NOT NULL AND own_device(\(device)) IS NULL THEN 'device was cut off' END")
        try setAside("sessions", "CASE WHEN anonymous AND login IS NULL THEN 'login of a guest is missing' END")
        try connection.execute(
            """
            UPDATE sessions SET device = own_device(\(device)) WHERE scope IS NOT NULL;
            UPDATE events SET room = CAST(substr(\(device), 1, instr(\(device), x'00') - 1) AS TEXT),
                device = own_device(\(device)) WHERE instr(\(device), x'00') > 1;
            """)
    }

    /// Sets aside the rows for which an expression is not null: its value names the fault.
    private func setAside(_ table: String, _ fault: String) throws {
        guard try SetAsideRows.copy(from: table, fault, connection) > 0 else { return }
        if table == "events" {
            // A device that resumes for the missing events starts afresh.
            try connection.run(
                """
                INSERT INTO streams (user, forgotten)
                SELECT user, max(sequence) FROM events WHERE \(fault) IS NOT NULL GROUP BY user
                ON CONFLICT DO UPDATE SET forgotten = max(forgotten, excluded.forgotten)
                """)
        }
        try connection.run("DELETE FROM \(table) WHERE \(fault) IS NOT NULL")
    }

    // MARK: - In SQL

    private static let preparation = """
        CREATE TABLE set_aside (
            id INTEGER PRIMARY KEY, table_name TEXT NOT NULL, reason TEXT NOT NULL, content TEXT NOT NULL
        ) STRICT;
        ALTER TABLE events ADD COLUMN room TEXT NOT NULL DEFAULT '';
        """

    private static let restructuring = """
        CREATE TABLE new_sessions (
            id TEXT PRIMARY KEY, user TEXT NOT NULL, guest TEXT NOT NULL, room TEXT NOT NULL, device TEXT NOT NULL,
            registered INTEGER NOT NULL, connection TEXT NOT NULL, scope TEXT, login TEXT, places TEXT NOT NULL,
            resumable_until_ms INTEGER, CHECK (guest = '' OR room = '')
        ) STRICT;
        INSERT INTO new_sessions
            SELECT id, user, CASE WHEN anonymous THEN login ELSE '' END,
                CASE WHEN scope IS NULL OR anonymous THEN '' ELSE json_extract(scope, '$.room') END,
                device, registered, connection, scope, login, places, resumable_until_ms
            FROM sessions ORDER BY id;
        DROP TABLE sessions;
        ALTER TABLE new_sessions RENAME TO sessions;

        CREATE TABLE new_events (
            user TEXT NOT NULL, guest TEXT NOT NULL, room TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL,
            device TEXT, except_device TEXT, at_ms INTEGER NOT NULL, PRIMARY KEY (user, guest, room, sequence)
        ) STRICT;
        INSERT INTO new_events
            SELECT user, coalesce((
                SELECT max(guest) FROM sessions WHERE sessions.user = events.user AND sessions.device = events.device
                    AND events.room = ''
            ), ''), room, sequence, body, device, except_device, at_ms
            FROM events ORDER BY user, sequence;
        CREATE TABLE new_streams (
            user TEXT NOT NULL, guest TEXT NOT NULL, room TEXT NOT NULL, reserved INTEGER NOT NULL DEFAULT 0,
            forgotten INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (user, guest, room)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO new_streams
            SELECT user, guest, room, max(
                coalesce((SELECT max(reserved, forgotten) FROM streams WHERE streams.user = principals.user), 0),
                coalesce((SELECT max(sequence) FROM events WHERE events.user = principals.user), 0)
            ), coalesce((SELECT forgotten FROM streams WHERE streams.user = principals.user), 0)
            FROM (
                SELECT user, guest, room FROM sessions UNION SELECT user, guest, room FROM new_events
                UNION SELECT user, '', '' FROM streams
            ) AS principals;
        DROP TABLE events;
        DROP TABLE streams;
        ALTER TABLE new_events RENAME TO events;
        ALTER TABLE new_streams RENAME TO streams;
        DELETE FROM logins WHERE id NOT IN (SELECT login FROM tokens);
        CREATE INDEX events_by_time ON events (at_ms);
        """

    // MARK: - Functions for SQL

    /// What is wrong with a name, given as its column's name and its bytes; null if nothing is.
    private static let misfit = SQLiteFunction("misfit", arguments: 2) { arguments in
        guard let column = arguments[0].text, let bytes = arguments[1].blob else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else { return "\(column) is not UTF-8" }
        do throws(IdentifierFault) {
            _ = try Identifier<Never>(text)
            return nil
        } catch {
            return "\(column) \(error)"
        }
    }

    /// What is wrong with JSON, given as its column's name, what it should be, and its bytes; null if nothing is.
    private static let misread = SQLiteFunction("misread", arguments: 3) { arguments in
        guard let column = arguments[0].text, let shape = arguments[1].text, let bytes = arguments[2].blob
        else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else { return "\(column) is not UTF-8" }
        do {
            try IdentifierTable.Shape(rawValue: shape)?.read(text)
            return nil
        } catch DecodingError.dataCorrupted(let context) {
            let fault = context.underlyingError as? IdentifierFault
            return fault.map { "a name in \(column) \($0)" } ?? "\(column) cannot be read"
        } catch {
            return "\(column) cannot be read"
        }
    }

    /// The device's own id in one that begins with a room and a zero byte; null in another.
    private static let ownDevice = SQLiteFunction("own_device", arguments: 1) { arguments in
        guard let bytes = arguments[0].blob, let zero = bytes.firstIndex(of: 0) else { return nil }
        let rest = bytes[bytes.index(after: zero)...]
        return rest.contains(0) ? nil : String(validating: rest, as: UTF8.self)
    }
}
