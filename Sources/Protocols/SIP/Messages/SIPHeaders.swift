/// The name of a header: compared without case, and the same in its compact form (RFC 3261 §7.3.3).
public struct SIPHeaderName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// As it is spelled.
    public let text: String
    /// The full name in lower case.
    let key: String

    /// Any token is a name.
    public init(_ text: String) {
        self.text = text
        let lower = text.lowercased()
        key = lower.utf8.count == 1 ? Self.compactForms[lower] ?? lower : lower
    }

    /// Makes a name of our own.
    public init(stringLiteral value: StaticString) { self.init("\(value)") }

    /// As it is spelled.
    public var description: String { text }

    /// Compares full names.
    public static func == (left: Self, right: Self) -> Bool { left.key == right.key }

    /// Hashes the full name.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    private static let compactForms = [
        "a": "accept-contact", "b": "referred-by", "c": "content-type", "d": "request-disposition",
        "e": "content-encoding", "f": "from", "i": "call-id", "j": "reject-contact", "k": "supported",
        "l": "content-length", "m": "contact", "n": "identity-info", "o": "event", "r": "refer-to", "s": "subject",
        "t": "to", "u": "allow-events", "v": "via", "x": "session-expires", "y": "identity",
    ]
}

/// The headers of a message, in their order and with their spelling, known or unknown.
public struct SIPHeaders: Equatable, Sendable {
    /// One header line, unfolded.
    public struct Header: Equatable, Sendable {
        /// Its name.
        public var name: SIPHeaderName
        /// Its value without the space around it.
        public var value: String
    }

    /// All lines, in order.
    public private(set) var all: [Header] = []

    /// Makes an empty list.
    public init() {}

    /// Appends a line.
    public mutating func append(_ name: SIPHeaderName, _ value: String) {
        all.append(Header(name: name, value: value))
    }

    /// The first value of that name.
    public subscript(name: SIPHeaderName) -> String? { all.first { $0.name == name }?.value }

    /// Sets the only value of that name, at the position of the first; `nil` removes it.
    public mutating func set(_ name: SIPHeaderName, _ value: String?) {
        guard let index = all.firstIndex(where: { $0.name == name }) else {
            if let value { append(name, value) }
            return
        }
        let first = all[index].name
        all.removeAll { $0.name == name }
        if let value { all.insert(Header(name: first, value: value), at: index) }
    }

    /// The lines of that name.
    public func lines(_ name: SIPHeaderName) -> [String] { all.filter { $0.name == name }.map(\.value) }

    /// How many lines of that name there are.
    public func count(_ name: SIPHeaderName) -> Int { all.count { $0.name == name } }

    /// The elements of a comma list that may go over several lines, without empty ones; `nil` if a line is malformed or
    /// there are more than ``SIPLimits/elements``.
    public func elements(_ name: SIPHeaderName) -> [String]? {
        var elements: [String] = []
        for line in all where line.name == name {
            guard let more = TextScanner.elements(of: line.value) else { return nil }
            elements += more.filter { !$0.isEmpty }
            guard elements.count <= SIPLimits.elements else { return nil }
        }
        return elements
    }

    /// A comma list of tokens, such as `Supported`, in lower case.
    public func tokens(_ name: SIPHeaderName) -> [String] { (elements(name) ?? []).map { $0.lowercased() } }

    /// A value that is one number of seconds or a count; larger ones are limited to 2³² − 1. What follows it, such as a
    /// comment, is ignored.
    public func number(_ name: SIPHeaderName) -> UInt32? {
        guard let value = self[name] else { return nil }
        var scanner = TextScanner(value)
        return scanner.number()
    }

    /// Puts a line in front of all of its name, or of all lines if there is none.
    public mutating func insertFirst(_ name: SIPHeaderName, _ value: String) {
        all.insert(Header(name: name, value: value), at: all.firstIndex { $0.name == name } ?? 0)
    }

    /// Removes every line of that name.
    public mutating func removeAll(_ name: SIPHeaderName) { all.removeAll { $0.name == name } }
}
