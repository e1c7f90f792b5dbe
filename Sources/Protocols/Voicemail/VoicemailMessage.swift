package import JSON

/// A message that a caller has left, or leaves now. Its sound is a file beside it.
public struct VoicemailMessage: Equatable, Sendable {
    /// Names the message in its mailbox: letters and digits.
    public var id: String
    /// Who has called: a user, or a telephone number. Hostile text.
    public var caller: String
    /// What the caller calls itself, if it does. Hostile text.
    public var name: String?
    /// Who was called; nil if unknown.
    public var called: String?
    /// When the call came, in UTC (RFC 3339).
    public var received: String
    /// The length of the sound; nil while it is not known.
    public var durationMilliseconds: Int?
    /// Whether it was heard, or marked as heard.
    public var isHeard = false
    /// Whether its end is missing, because the device or the disk failed.
    public var isCut = false
    /// Bytes that are kept free for it while it is being left.
    public var reservedBytes: Int?

    /// A message that begins.
    public init(id: String, caller: String, name: String? = nil, called: String? = nil, received: String) {
        self.id = id
        self.caller = caller
        self.name = name
        self.called = called
        self.received = received
    }

    /// Bytes of its JSON: each of four texts has 128 bytes at most, of which each takes six at most.
    public static let mostBytes = 4_096

    /// The length in seconds, to a tenth; 0 while it is not known.
    public var seconds: Double { Double((durationMilliseconds ?? 0) / 100) / 10 }

    /// Reads what ``json(file:)`` has written; nil for anything else.
    ///
    /// - Parameter id: Names the message, also if the text has another one.
    package init?(_ json: JSONValue, id: String) {
        guard let caller = json["caller"]?.string, let received = json["received"]?.string else { return nil }
        self.init(
            id: id, caller: caller, name: json["name"]?.string, called: json["called"]?.string, received: received)
        durationMilliseconds = json["duration_ms"]?.integer.flatMap { Int(exactly: $0) }
        isHeard = json["heard"] == .bool(true)
        isCut = json["cut"] == .bool(true)
        reservedBytes = json["reserved_bytes"]?.integer.map { Int(min(max(0, $0), Self.mostReserved)) }
    }

    /// More than any message is long, and few enough for sums: a damaged file may say anything.
    private static let mostReserved: Int64 = 1 << 40

    /// The message as JSON.
    ///
    /// - Parameter file: The path of its sound; nil in the file beside it.
    package func json(file: String? = nil) -> JSONValue {
        var members: [String: JSONValue] = [
            "id": .string(id), "caller": .string(caller), "received": .string(received), "heard": .bool(isHeard),
        ]
        members["name"] = name.map { JSONValue.string($0) }
        members["called"] = called.map { JSONValue.string($0) }
        members["duration_ms"] = durationMilliseconds.map { JSONValue.integer(Int64($0)) }
        if isCut { members["cut"] = true }
        members["reserved_bytes"] = reservedBytes.map { JSONValue.integer(Int64($0)) }
        members["file"] = file.map { JSONValue.string($0) }
        return .object(members)
    }

    /// The same as text on one line.
    package func text(file: String? = nil) -> [UInt8] { (try? JSONText(json(file: file)).bytes) ?? [] }
}
