@testable import ExchangeCore
import JSON
import SignalWire

/// One text message that somebody sends, and what the model knows of it.
struct Frame {
    var connection: ConnectionID
    var id: JSONValue = .integer(0)
    var method = ""
    var params: [String: JSONValue] = [:]
    var bytes: [UInt8] = []
    /// The markers that were made for it.
    var markers: [String] = []
    /// What it must be refused with, whoever sends it and whenever.
    var flaw: RPCErrorCode?
    /// It is a correct client's, and may be refused with nothing but these.
    var excuses: Set<RPCErrorCode>?

    /// Writes the message as most clients do.
    mutating func write() {
        let message: JSONValue = .object([
            "jsonrpc": "2.0", "id": id, "method": .string(method), "params": .object(params),
        ])
        bytes = (try? SignalCoding.encode(message)) ?? []
    }

    func text(_ member: String) -> String? { params[member]?.string }

    /// How many objects and arrays stand within each other.
    var depth: Int {
        func depth(_ value: JSONValue) -> Int {
            switch value {
            case .array(let values): 1 + (values.map(depth).max() ?? 0)
            case .object(let members): 1 + (members.values.map(depth).max() ?? 0)
            case .null, .bool, .integer, .unsigned, .number, .string: 0
            }
        }
        return 1 + depth(.object(params))
    }

    /// For people who want to see what happened.
    var summary: String {
        let text = String(decoding: bytes.prefix(400), as: UTF8.self)
        return "\(connection.name) \(text)\(bytes.count > 400 ? "… \(bytes.count) bytes" : "")"
    }
}

/// Secrets in messages: markers that the model has put into payloads (`~m17~`), and ids that the exchange has given.
enum Secrets {
    private static let kinds = ["session-", "invite-", "connection-", "group-", "push-"].map { Array($0.utf8) }

    /// Those that stand in `bytes`.
    static func all(in bytes: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        bytes.withUnsafeBufferPointer { buffer in
            var index = 0
            while index < buffer.count {
                switch buffer[index] {
                case UInt8(ascii: "~"):
                    guard let end = marker(from: index, in: buffer) else { break }
                    found.insert(String(decoding: buffer[index..<end], as: UTF8.self))
                    index = end - 1
                case UInt8(ascii: "-"):
                    guard let range = name(around: index, in: buffer) else { break }
                    found.insert(String(decoding: buffer[range], as: UTF8.self))
                    index = range.upperBound - 1
                default: break
                }
                index += 1
            }
        }
        return found
    }

    private static func marker(from start: Int, in buffer: UnsafeBufferPointer<UInt8>) -> Int? {
        guard start + 3 < buffer.count, buffer[start + 1] == UInt8(ascii: "m") else { return nil }
        var index = start + 2
        while index < buffer.count, (48...57).contains(buffer[index]) { index += 1 }
        return index < buffer.count && index > start + 2 && buffer[index] == UInt8(ascii: "~") ? index + 1 : nil
    }

    private static func name(around dash: Int, in buffer: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        guard dash + 32 < buffer.count else { return nil }
        for index in dash + 1...dash + 32
        where !(48...57).contains(buffer[index]) && !(97...102).contains(buffer[index]) {
            return nil
        }
        for kind in kinds where dash + 1 >= kind.count {
            let start = dash + 1 - kind.count
            if buffer[start...dash].elementsEqual(kind) { return start..<dash + 33 }
        }
        return nil
    }
}

/// The members of an event that the model looks at.
struct HeardEvent: Decodable {
    struct Params: Decodable {
        var sequence: UInt64
        var type: String
        var data: Body
    }

    struct Body: Decodable {
        var invite, inviter, invitee, device, action, group, change, type, from, room, connection, user: String?
        var invitees: [String]?
    }

    var params: Params

    /// What tells the event from others for the same device.
    var key: String {
        let data = params.data
        let details: [String?] =
            switch params.type {
            case "inviteAccepted", "inviteRejected": [data.invite, data.invitee]
            case "inviteTimedOut": [data.invite, data.invitees?.joined(separator: ",")]
            case "callSignal", "roomSignal": [data.type]
            case "callEnded": [data.invite, data.from]
            case "connectionCreated", "connectionDestroyed": [data.room, data.connection]
            case "groupChanged": [data.group, data.change, data.user]
            case "streamDropped", "streamResumed", "presenceChanged": [data.room, data.invite, data.user]
            default: [data.invite]
            }
        return ([params.type] + details.compactMap { $0 }).joined(separator: " ")
    }

    /// Such an event comes to a device once in its life.
    var isUnique: Bool {
        [
            "inviteAccepted", "inviteRejected", "inviteHandled", "inviteCancelled", "inviteTimedOut", "inviteMissed",
            "inviteEnded", "callSignal", "roomSignal", "callEnded",
        ].contains(params.type)
    }
}

/// The members of a result that the model looks at.
struct HeardResult: Decodable {
    struct Participant: Decodable {
        var connection, user: String
    }

    struct Entry: Decodable {
        var invite, group: String?
    }

    struct Body: Decodable {
        var session, connection, user, invite, group, owner: String?
        var invitees, members: [String]?
        var resumed, anonymous, present: Bool?
        var sequence: UInt64?
        var participants: [Participant]?
        var invites, groups: [Entry]?
    }

    var result: Body
    var id: JSONValue

    /// Whether it is the last of a list's messages.
    static func hasMore(_ bytes: [UInt8]) -> Bool {
        String(decoding: bytes.suffix(400), as: UTF8.self).contains("\"next\"")
    }
}
