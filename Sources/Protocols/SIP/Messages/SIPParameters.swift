/// Parameters in their order, as values (`;name=value`) and URIs carry them. Names are compared without case.
public struct SIPParameters: Hashable, Sendable {
    /// One parameter.
    public struct Parameter: Hashable, Sendable {
        /// Its name as it was spelled.
        public var name: String
        /// Its value without quotation marks; `nil` if there is no equals sign.
        public var value: String?
        /// The value was, and will be, a quoted string.
        public var isQuoted = false
    }

    /// All of them, in order.
    public private(set) var all: [Parameter] = []

    /// Makes an empty list.
    public init() {}

    /// Makes a list of tokens and their values.
    public init(_ parameters: [(String, String?)]) {
        for (name, value) in parameters { all.append(Parameter(name: name, value: value)) }
    }

    /// Whether there are none.
    public var isEmpty: Bool { all.isEmpty }

    /// The first value of that name; `nil` if there is none, or it has no value.
    public subscript(name: String) -> String? {
        get { parameter(name)?.value }
        set {
            if let index = all.firstIndex(where: { $0.name.isSame(as: name) }) {
                if let newValue { all[index].value = newValue } else { all.remove(at: index) }
            } else if let newValue {
                all.append(Parameter(name: name, value: newValue))
            }
        }
    }

    /// Whether there is a parameter of that name, with a value or without.
    public func contains(_ name: String) -> Bool { parameter(name) != nil }

    /// Adds one without a value, such as `lr`.
    public mutating func insertFlag(_ name: String) {
        if !contains(name) { all.append(Parameter(name: name, value: nil)) }
    }

    /// Sets one that is written as a quoted string.
    public mutating func setQuoted(_ name: String, _ value: String) {
        self[name] = nil
        all.append(Parameter(name: name, value: value, isQuoted: true))
    }

    /// The first parameter of that name.
    func parameter(_ name: String) -> Parameter? { all.first { $0.name.isSame(as: name) } }

    mutating func append(_ parameter: Parameter) { all.append(parameter) }

    /// `;name=value` for each.
    var text: String { all.map { ";" + Self.text($0) }.joined() }

    static func text(_ parameter: Parameter) -> String {
        guard let value = parameter.value else { return parameter.name }
        return parameter.name + "=" + (parameter.isQuoted ? TextScanner.quoted(value) : value)
    }

    /// Reads `;name=value…` to the end of the text, by `generic-param` of RFC 3261 §25.1.
    ///
    /// - Returns: `nil` if anything else is there.
    init?(_ scanner: inout TextScanner) {
        while true {
            scanner.skipSpace()
            guard !scanner.isAtEnd else { return }
            guard scanner.separator(UInt8(ascii: ";")), all.count < SIPLimits.parameters,
                let parameter = Self.parameter(&scanner)
            else { return nil }
            all.append(parameter)
        }
    }

    /// One `token [= value]`.
    static func parameter(_ scanner: inout TextScanner) -> Parameter? {
        guard let name = scanner.token() else { return nil }
        guard scanner.separator(UInt8(ascii: "=")) else { return Parameter(name: name, value: nil) }
        if scanner.peek == UInt8(ascii: "\"") {
            guard let value = scanner.quotedString() else { return nil }
            return Parameter(name: name, value: value, isQuoted: true)
        }
        // Hosts as well as tokens, and IPv6 addresses with or without brackets (RFC 5118 §4.5).
        let value = scanner.run { TextScanner.isToken($0) || $0 == 0x3A || $0 == 0x5B || $0 == 0x5D || $0 == 0x2F }
        return value.isEmpty ? nil : Parameter(name: name, value: value)
    }
}

extension String {
    /// Whether both are equal, except for the case of ASCII letters.
    func isSame(as other: String) -> Bool {
        let (left, right) = (utf8, other.utf8)
        guard left.count == right.count else { return false }
        return zip(left, right).allSatisfy { $0 == $1 || (Self.lower($0) == Self.lower($1)) }
    }

    private static func lower(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }
}
