internal import Core

/// What a bot learns about its call.
public struct WireCall: Equatable, Sendable {
    /// Direction of a call, as seen from the device.
    public enum Direction: Hashable, Sendable {
        /// The device is called.
        case incoming
        /// The device calls.
        case outgoing
        /// The device calls to join the callee to a caller.
        case dialled
    }

    /// The call's name, by which requests of the bot name it. ``WireName`` makes names as each service does.
    public var call: String
    /// The stream's name.
    public var stream: String
    /// The account's name.
    public var account: String
    /// The caller.
    public var from: String
    /// The callee.
    public var to: String
    /// Direction of the call.
    public var direction: Direction
    /// Parameters for the bot, from a webhook's answer or the configuration.
    public var parameters: [String: String]
    /// When the stream begins, by the wall clock: milliseconds since 1970.
    public var startMilliseconds: Int64

    /// Makes one.
    public init(
        call: String, stream: String, account: String, from: String, to: String, direction: Direction = .incoming,
        parameters: [String: String] = [:], startMilliseconds: Int64 = 0
    ) {
        self.call = call
        self.stream = stream
        self.account = account
        self.from = from
        self.to = to
        self.direction = direction
        self.parameters = parameters
        self.startMilliseconds = startMilliseconds
    }
}

/// Names of calls, streams and accounts, made from random bytes as the services make them.
public enum WireName {
    /// Random bytes that a name takes.
    public static let randomBytes = 16

    /// Two letters and 32 hexadecimal digits, as Twilio has them: `CA` for a call, `MZ` for a stream, `AC` for an account.
    ///
    /// - Parameter random: ``randomBytes`` bytes.
    public static func sid(_ letters: String, _ random: [UInt8]) -> String { letters + Hexadecimal.text(random) }

    /// A random UUID (RFC 9562 §5.4), as Plivo, Telnyx and AudioSocket have them.
    ///
    /// - Parameter random: ``randomBytes`` bytes.
    public static func uuid(_ random: [UInt8]) -> String {
        precondition(random.count == randomBytes, "a UUID is made from 16 bytes")
        var bytes = random
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return [bytes[..<4], bytes[4..<6], bytes[6..<8], bytes[8..<10], bytes[10...]].map { Hexadecimal.text($0) }
            .joined(separator: "-")
    }

    /// The 16 bytes of a UUID's text.
    static func bytes(ofUUID text: String) -> [UInt8]? {
        let groups = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard groups.map(\.count) == [8, 4, 4, 4, 12] else { return nil }
        return Hexadecimal.bytes(of: Array(groups.joined()))
    }
}
