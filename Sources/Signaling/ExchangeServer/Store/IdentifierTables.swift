internal import ExchangeCore
import SignalWire

/// The columns that contain names in a table of version 4.
struct IdentifierTable {
    /// What JSON in a column must be.
    enum Shape: String {
        case users, invitees, place, places, target, targets, event

        func read(_ text: String) throws {
            switch self {
            case .users: _ = try StoreCoding.value([UserID].self, text)
            case .invitees: _ = try StoreCoding.value([StoredInvite.Invitee].self, text)
            case .place: _ = try StoreCoding.value(StoredPlace.self, text)
            case .places: _ = try StoreCoding.value([StoredPlace].self, text)
            case .target: _ = try StoreCoding.value(DeviceRegister.PushTarget.self, text)
            case .targets: _ = try StoreCoding.value([DeviceRegister.PushTarget].self, text)
            case .event: _ = try StoreCoding.value(NumberedEvent.self, text)
            }
        }
    }

    let name: String
    /// Columns that are names.
    let names: [String]
    /// Columns that are JSON with names in it.
    var json: [(column: String, shape: Shape)] = []
    /// Columns that are names or nothing.
    var maybeEmpty: Set<String> = []

    /// An SQL expression that names the fault of a row; null if there is none.
    var fault: String {
        let names = names.map { column in
            let check = "misfit('\(column)', CAST(\(column) AS BLOB))"
            return maybeEmpty.contains(column) ? "CASE WHEN \(column) <> '' THEN \(check) END" : check
        }
        let json = json.map { "misread('\($0.column)', '\($0.shape.rawValue)', CAST(\($0.column) AS BLOB))" }
        return "coalesce(\((names + json + ["NULL"]).joined(separator: ", ")))"
    }
}

/// All tables of version 4 that have names in them.
enum IdentifierTables {
    static let all = [
        IdentifierTable(
            name: "tokens", names: ["user", "application"], json: [("scope", .place)], maybeEmpty: ["user"]),
        IdentifierTable(
            name: "sessions", names: ["id", "user", "device", "connection"],
            json: [("scope", .place), ("places", .places)]),
        IdentifierTable(name: "groups", names: ["id", "owner"], json: [("members", .users)]),
        IdentifierTable(name: "push_targets", names: ["user", "device"], json: [("targets", .targets)]),
        IdentifierTable(
            name: "invites", names: ["id", "inviter", "inviter_device", "group_id", "idempotency_key"],
            json: [("invitees", .invitees)]),
        IdentifierTable(
            name: "calls", names: ["invite", "invitee", "invitee_device", "inviter", "inviter_device"]),
        IdentifierTable(
            name: "events", names: ["user", "room", "device", "except_device"], json: [("body", .event)],
            maybeEmpty: ["room"]),
        IdentifierTable(name: "streams", names: ["user"]),
        IdentifierTable(
            name: "call_records",
            names: ["invite", "invitee", "invitee_device", "inviter", "inviter_device", "group_id"]),
        IdentifierTable(
            name: "pushes", names: ["id", "invite", "user", "device", "inviter", "group_id"],
            json: [("target", .target)]),
        IdentifierTable(name: "dead_pushes", names: ["id", "invite", "user", "device", "kind"]),
    ]
}
