internal import JSON

/// A request's members, read one after the other. ``finish()`` refuses those that were not read.
struct RequestFields {
    private let members: [String: JSONValue]
    private var known = ["id", "request", "account"]
    /// Of the known members, those that every request may have.
    private var shared = 3
    private var request = "the request"

    init(_ members: [String: JSONValue]) { self.members = members }

    /// The arguments of a tool, which has none but its own.
    init(_ members: [String: JSONValue], ofTool name: String) {
        self.members = members
        known = []
        shared = 0
        request = name
    }

    /// The id, which is none of the request's own members.
    mutating func id() throws(ControlFault) -> JSONValue? { try readID() }

    func readID() throws(ControlFault) -> JSONValue? {
        switch members["id"] {
        case nil, .null?: return nil
        case .integer(let number)?: return .integer(number)
        case .string(let text)? where text.utf8.count <= ControlLimits.idBytes: return .string(text)
        default:
            throw ControlFault(
                .wrongValue, "id must be a whole number, or a string of up to \(ControlLimits.idBytes) bytes")
        }
    }

    /// The account, which every request may name.
    func account() throws(ControlFault) -> String? {
        guard let value = members["account"], value != .null else { return nil }
        guard let text = value.string, (1...ControlLimits.accountBytes).contains(text.utf8.count) else {
            throw ControlFault(
                .wrongValue, "account must be the name of an account, of up to \(ControlLimits.accountBytes) bytes")
        }
        return text
    }

    /// The request's name.
    mutating func name() throws(ControlFault) -> ControlRequest.Name {
        let all = ControlRequest.Name.allCases.map(\.rawValue).joined(separator: ", ")
        guard let text = members["request"]?.string else {
            throw ControlFault(.unknownRequest, "\"request\" must be one of \(all)")
        }
        guard let name = ControlRequest.Name(rawValue: text) else {
            throw ControlFault(.unknownRequest, "there is no request \(Self.quoted(text)); there are \(all)")
        }
        request = name.rawValue
        return name
    }

    /// The number of a call, if there is one.
    mutating func call(_ key: String = "call") throws(ControlFault) -> UInt64? {
        known.append(key)
        guard let value = members[key], value != .null else { return nil }
        guard let number = value.integer, number > 0 else {
            throw ControlFault(.wrongValue, "\(key) must be the number of a call, as status lists it")
        }
        return UInt64(number)
    }

    /// A text of 1 to `maximumBytes` bytes, without control characters.
    mutating func text(_ key: String, maximumBytes: Int) throws(ControlFault) -> String {
        known.append(key)
        guard let text = members[key]?.string, (1...maximumBytes).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) })
        else {
            throw ControlFault(.wrongValue, "\(request) needs \(key), a text of 1 to \(maximumBytes) bytes")
        }
        return text
    }

    /// The same, if there is one.
    mutating func optionalText(_ key: String, maximumBytes: Int) throws(ControlFault) -> String? {
        guard let value = members[key], value != .null else {
            known.append(key)
            return nil
        }
        return try text(key, maximumBytes: maximumBytes)
    }

    /// A text to speak, which may have line breaks and tabs.
    mutating func speech(_ key: String, maximumBytes: Int) throws(ControlFault) -> String {
        known.append(key)
        guard let text = members[key]?.string, (1...maximumBytes).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({
                $0.properties.generalCategory != .control || "\n\r\t".unicodeScalars.contains($0)
            }),
            text.contains(where: { !$0.isWhitespace })
        else {
            throw ControlFault(.wrongValue, "\(request) needs \(key), a text of 1 to \(maximumBytes) bytes")
        }
        return text
    }

    /// A list of names among those that there are; empty if it is not there.
    mutating func names(_ key: String, among all: [String]) throws(ControlFault) -> Set<String> {
        known.append(key)
        switch members[key] {
        case nil, .null?: return []
        case .array(let values)? where values.allSatisfy({ $0.string.map(all.contains) == true }):
            return Set(values.compactMap(\.string))
        case .array?, .bool?, .integer?, .unsigned?, .number?, .string?, .object?: break
        }
        throw ControlFault(.wrongValue, "\(key) must be a list of \(all.joined(separator: ", "))")
    }

    /// An absolute path, if there is one: clients do not know the device's working folder.
    mutating func path(_ key: String) throws(ControlFault) -> String? {
        known.append(key)
        guard let value = members[key], value != .null else { return nil }
        guard let text = value.string, text.hasPrefix("/"), text.utf8.count <= ControlLimits.pathBytes,
            !text.utf8.contains(0)
        else {
            throw ControlFault(
                .wrongValue, "\(key) must be a path from the root, of up to \(ControlLimits.pathBytes) bytes")
        }
        return text
    }

    /// A number in `range`, if there is one.
    mutating func number(_ key: String, in range: ClosedRange<Double>) throws(ControlFault) -> Double? {
        known.append(key)
        let number: Double
        switch members[key] {
        case nil, .null?: return nil
        case .integer(let value)?: number = Double(value)
        case .number(let value)?: number = value
        case .unsigned?, .bool?, .string?, .array?, .object?: number = .nan
        }
        guard range.contains(number) else {
            throw ControlFault(
                .wrongValue, "\(key) must be a number from \(Int(range.lowerBound)) to \(Int(range.upperBound))")
        }
        return number
    }

    /// `true` or `false`, if it is there.
    mutating func flag(_ key: String) throws(ControlFault) -> Bool? {
        known.append(key)
        switch members[key] {
        case nil, .null?: return nil
        case .bool(let value)?: return value
        default: throw ControlFault(.wrongValue, "\(key) must be true or false")
        }
    }

    /// Refuses members that were not read.
    func finish() throws(ControlFault) {
        guard let unknown = members.keys.filter({ !known.contains($0) }).min() else { return }
        let own = known.dropFirst(shared)
        throw ControlFault(
            .wrongValue,
            "\(request) has no member \(Self.quoted(unknown)); it has "
                + (own.isEmpty ? "none" : own.joined(separator: ", ")))
    }

    /// Text from a client, short enough to be shown.
    static func quoted(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(40).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : "\($0)" }
        return "\"\(shown.joined())\(text.unicodeScalars.count > 40 ? "…" : "")\""
    }
}
