internal import Core
internal import FoundationEssentials
internal import JSON

/// A bot's message in JSON. Its faults are written for the bot's author.
struct StreamMessage {
    private let members: JSONValue

    /// Reads a message: any bytes.
    init(_ text: [UInt8]) throws(WireFault) {
        guard text.count <= WireLimits.messageBytes else { throw .tooLong }
        guard text.count(where: { $0 == UInt8(ascii: ",") }) <= WireLimits.values else {
            throw WireFault(.tooLong, "a message has \(WireLimits.values) commas at most")
        }
        guard let value = JSONValue(nestedAtMost: WireLimits.nesting, text), case .object = value else {
            throw .notObject
        }
        members = value
    }

    private init(members: JSONValue) { self.members = members }

    /// The text of a member, which must be there.
    func text(_ name: String) throws(WireFault) -> String {
        guard let text = members[name]?.string else {
            throw WireFault(.wrongMember, "\"\(name)\" must be a text")
        }
        return text
    }

    /// The text of a member that may be missing, or be null.
    func textIfAny(_ name: String) throws(WireFault) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): return text
        case .bool, .integer, .unsigned, .number, .array, .object:
            throw WireFault(.wrongMember, "\"\(name)\" must be a text")
        }
    }

    /// The whole number of a member.
    func number(_ name: String) throws(WireFault) -> Int {
        guard let number = members[name]?.integer, let number = Int(exactly: number) else {
            throw WireFault(.wrongMember, "\"\(name)\" must be a whole number")
        }
        return number
    }

    /// The object of a member.
    func object(_ name: String) throws(WireFault) -> StreamMessage {
        guard let value = members[name], case .object = value else {
            throw WireFault(.wrongMember, "\"\(name)\" must be an object")
        }
        return StreamMessage(members: value)
    }

    /// The whole message.
    var value: JSONValue { members }

    /// The value of a member that may be missing.
    func value(_ name: String) -> JSONValue? { members[name] }

    /// The name of a mark.
    func markName(_ name: String) throws(WireFault) -> String {
        let mark = try text(name)
        guard !mark.isEmpty else { throw WireFault(.wrongMember, "the name of a mark must not be empty") }
        guard mark.utf8.count <= WireLimits.markBytes else {
            throw WireFault(.tooLong, "the name of a mark has \(WireLimits.markBytes) bytes at most")
        }
        return mark
    }

    /// The sound of a member in base64, as encoders of any language write it.
    func sound(_ name: String, as format: WireFormat) throws(WireFault) -> BotOrder {
        guard let bytes = Base64.lenientBytes(of: try text(name).utf8) else {
            throw WireFault(.wrongSound, "\"\(name)\" must be base64 (RFC 4648)")
        }
        // Synthesis often ends with a message without sound.
        if !bytes.isEmpty { try format.check(bytes) }
        return .play(bytes, format)
    }

    /// The telephone keys of a member.
    func keys(_ name: String) throws(WireFault) -> BotOrder {
        let keys = try text(name)
        guard (1...WireLimits.keys).contains(keys.utf8.count), keys.allSatisfy(TelephoneKey.isOne) else {
            throw WireFault(.wrongMember, "\"\(name)\" must be 1 to \(WireLimits.keys) of 0 to 9, *, # and A to D")
        }
        return .press(keys)
    }

    /// Refuses a message that names another stream. A message that names none belongs to this stream.
    func check(_ name: String, is stream: String) throws(WireFault) {
        guard let named = try textIfAny(name) else { return }
        guard named == stream else { throw .otherStream }
    }
}

extension JSONValue {
    /// Reads JSON text: any bytes.
    ///
    /// - Parameter nesting: Objects and arrays within each other.
    init?(nestedAtMost nesting: Int, _ text: [UInt8]) {
        if let value = JSONValue(plain: text, nesting: nesting) {
            self = value
        } else if JSONValue.nesting(of: text) <= nesting,
            let value = try? JSONDecoder().decode(JSONValue.self, from: Data(text))
        {
            // Text that is not plain, such as a number with an exponent.
            self = value
        } else {
            return nil
        }
    }
}

/// An order of a bot.
enum BotOrder: Equatable, Sendable {
    case play([UInt8], WireFormat)
    case mark(String)
    case clear
    /// Marks that wait are not reported.
    case forgetMarks
    case press(String)
    /// Send the bot this.
    case send(WireMessage)
    /// Hang up once all is played.
    case hangUp
    /// The bot takes no part in the call.
    case fail(WireFault)
}

/// The keys of a telephone.
enum TelephoneKey {
    static func isOne(_ key: Character) -> Bool {
        switch key {
        case "0"..."9", "*", "#", "A"..."D": key.utf8.count == 1
        default: false
        }
    }
}
