// ControlWire: requests of programs on this machine to a running device, and its answers: a JSON object on each line.
// Pure: it knows no socket and no device.

internal import FoundationEssentials
public import JSON

/// The limits of the wire.
public enum ControlLimits {
    /// Bytes in one line of a client's, without its line break.
    public static let requestBytes = 8_192
    /// Bytes in the name of a callee.
    public static let nameBytes = 256
    /// Bytes in an account's name.
    public static let accountBytes = 64
    /// Bytes in a file's path.
    public static let pathBytes = 4_096
    /// Bytes in a request's id.
    public static let idBytes = 128
    /// Calls that a status lists; it counts the others.
    public static let listedCalls = 64
    /// Records that one answer lists.
    public static let listedRecords = 64
    /// Bytes in the name of a record.
    public static let recordBytes = 64
    /// Milliseconds since 1970: until the end of the year 9999.
    public static let times = Int64(0)...253_402_300_799_999
    /// Telephone keys in one request.
    public static let keys = 32
    /// Volumes, in dB.
    public static let volumeDB = -60.0...20.0
    /// Bytes of a whisper's text.
    public static let whisperBytes = 1_000
    /// Keys with which a person can accept a call that is handed over.
    public static let acceptKeys = "0123456789*#ABCD"
    /// Seconds for which a person may ring.
    public static let ringSeconds = 5.0...180.0
    /// Seconds for which a call can be parked.
    public static let parkedSeconds = 5.0...7_200.0
    /// Slots of parked calls.
    public static let slots = 1.0...99.0
    /// Objects and arrays within each other.
    static let nesting = 8
}

/// Values to lines and back.
public enum ControlCoding {
    /// Writes a value as one line of JSON, with its line break.
    public static func line(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // JSON has no number for infinity, which is the level of a meter without any sound.
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        // The encoded values are texts, numbers and lists of them, which cannot fail.
        let data = (try? encoder.encode(value)) ?? Data("{\"ok\":false}".utf8)
        return [UInt8](data) + [UInt8(ascii: "\n")]
    }

    /// Writes an event with its time.
    ///
    /// - Parameters:
    ///   - account: Whose event it is; nil for one of the process, and of an account without a name.
    ///   - milliseconds: Since 1970.
    public static func line(
        _ event: ControlEvent, of account: String? = nil, atMilliseconds milliseconds: Int64
    ) -> [UInt8] {
        line(TimedEvent(event: event, account: account, milliseconds: milliseconds))
    }

    /// The account that an event is about; nil if it names none.
    public static func account(inEvent line: String) -> String? {
        decode(AccountMember.self, from: Array(line.utf8))?.account
    }

    private struct AccountMember: Decodable {
        let account: String?
    }

    private struct TimedEvent: Encodable {
        let event: ControlEvent
        let account: String?
        let milliseconds: Int64

        enum CodingKeys: String, CodingKey {
            case account
            case milliseconds = "at_ms"
        }

        func encode(to encoder: any Encoder) throws {
            try event.encode(to: encoder)
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encodeIfPresent(account, forKey: .account)
            try members.encode(milliseconds, forKey: .milliseconds)
        }
    }

    /// Reads a line of the device's; nil if it is none. Unknown members are ignored.
    public static func decode<Value: Decodable>(_ type: Value.Type, from line: [UInt8]) -> Value? {
        try? JSONDecoder().decode(type, from: Data(line))
    }

    /// Reads any JSON; nil if the line is none, or is nested too deeply to be looked at: JSON parsers recurse.
    public static func value(of line: [UInt8]) -> JSONValue? {
        guard JSONValue.nesting(of: line) <= ControlLimits.nesting else { return nil }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(line))
    }
}
