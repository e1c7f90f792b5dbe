/// A table as an exchange reads it at its start.
///
/// A standby that has read a table before reads again only what has changed since (``ReadAhead``).
struct StoredTable: Hashable {
    let name: String
    /// In which order its rows are read; any, if it is empty.
    var order = ""

    static let tokens = StoredTable(name: "tokens", order: "digest")
    static let logins = StoredTable(name: "logins", order: "id")
    static let sessions = StoredTable(name: "sessions", order: "rowid")
    static let invites = StoredTable(name: "invites", order: "sent_ms, rowid")
    static let groups = StoredTable(name: "groups", order: "rowid")
    static let pushTargets = StoredTable(name: "push_targets", order: "rowid")
    static let users = StoredTable(name: "users")
    static let fileUsers = StoredTable(name: "file_users")
    static let acquaintances = StoredTable(name: "acquaintances")
    static let pushes = StoredTable(name: "pushes", order: "rowid")
    static let calls = StoredTable(name: "calls", order: "accepted_ms")
    static let streams = StoredTable(name: "streams")
    static let outdatedEvents = StoredTable(name: "outdated_events")
    static let eventBodies = StoredTable(name: "event_bodies")
    static let events = StoredTable(name: "events", order: #""user", guest, room, sequence"#)
    static let letters = StoredTable(name: "letters", order: "sender, receiver, number")
    static let letterMarks = StoredTable(name: "letter_marks", order: "shard, peer")

    /// All that are read.
    static let all = [
        tokens, logins, sessions, invites, groups, pushTargets, users, fileUsers, acquaintances, pushes, calls, streams,
        outdatedEvents, eventBodies, events, letters, letterMarks,
    ]

    /// All rows, in their order.
    var query: String { "SELECT * FROM \(name)\(ordering)" }

    var ordering: String { order.isEmpty ? "" : " ORDER BY \(order)" }
}
