internal import ExchangeCore
internal import GRDB
import SignalWire
import Core

/// The bodies of events that one transaction writes: those that several events have are rows of their own.
final class SharedBodies {
    private var uses: [UInt64: Int] = [:]
    /// The rows of those that have been written.
    private var rows: [UInt64: Int64] = [:]

    init(_ changes: [Change]) {
        for case .event(let event) in changes { uses[event.body.number, default: 0] += 1 }
    }

    /// The row of a body that several events of this transaction share; `nil` for one that is stored in its event's
    /// row.
    func row(of body: EventBody, write: (EventBody) throws -> Int64) rethrows -> Int64? {
        guard uses[body.number] ?? 0 > 1 else { return nil }
        if let row = rows[body.number] { return row }
        let row = try write(body)
        rows[body.number] = row
        return row
    }
}

/// Events, and how they are numbered.
extension ChangeWriter {
    func write(_ event: StoredEvent) throws {
        let (device, except, isForAll): (DeviceID?, DeviceID?, Bool) =
            switch event.audience {
            case .device(let device): (device, nil, false)
            case .registered(let except): (nil, except, false)
            case .every: (nil, nil, true)
            }
        let shared = try bodies.row(of: event.body) { body in
            try run("INSERT INTO event_bodies (text) VALUES (?)", [body.text.text])
            return database.lastInsertedRowID
        }
        try run(
            """
            INSERT INTO events (user, guest, room, sequence, body, shared, device, except_device, for_all, at_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET body = excluded.body, shared = excluded.shared, device = excluded.device,
                except_device = excluded.except_device, for_all = excluded.for_all, at_ms = excluded.at_ms
            """,
            [
                event.principal.user.text, event.principal.guestColumn, event.principal.roomColumn,
                Int64(clamping: event.sequence), shared == nil ? event.body.text.text : "", shared, device?.text,
                except?.text, isForAll, times.milliseconds(event.at),
            ])
    }

    func reserve(_ principal: Principal, upTo number: Int64) throws {
        try run(
            """
            INSERT INTO streams (user, guest, room, reserved) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET reserved = max(reserved, ?4)
            """, [principal.user.text, principal.guestColumn, principal.roomColumn, number])
    }

    func forget(_ principal: Principal, upTo number: Int64) throws {
        let key: [(any DatabaseValueConvertible)?] = [
            principal.user.text, principal.guestColumn, principal.roomColumn, number,
        ]
        try run("DELETE FROM events WHERE user = ? AND guest = ? AND room = ? AND sequence <= ?", key)
        try run(
            """
            INSERT INTO streams (user, guest, room, forgotten) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET forgotten = max(forgotten, ?4)
            """, key)
        try run("DELETE FROM outdated_events WHERE user = ? AND guest = ? AND room = ? AND sequence <= ?", key)
    }

    func pruneEvents(before: Int64) throws {
        // The newest of those for all devices counts for each of them.
        try run(
            """
            INSERT INTO streams (user, guest, room, forgotten)
            SELECT user, guest, room, max(sequence) FROM events WHERE at_ms < ? AND for_all GROUP BY user, guest, room
            ON CONFLICT DO UPDATE SET forgotten = max(forgotten, excluded.forgotten)
            """, [before])
        try run(
            """
            INSERT INTO outdated_events (user, guest, room, device, except_device, sequence)
            SELECT user, guest, room, coalesce(device, ''), coalesce(except_device, ''), max(sequence) FROM events
            WHERE at_ms < ? AND NOT for_all
            GROUP BY user, guest, room, coalesce(device, ''), coalesce(except_device, '')
            ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence)
            """, [before])
        try run("DELETE FROM events WHERE at_ms < ?", [before])
    }
}
