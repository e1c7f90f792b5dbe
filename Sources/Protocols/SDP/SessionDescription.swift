// SDP: session descriptions (RFC 8866) and what two of them agree on for audio (RFC 3264), as pure values.

internal import Core

/// A whole session description (RFC 8866).
public struct SessionDescription: Equatable, Sendable {
    /// Its creator and version.
    public var origin: Origin
    /// `s=`; a single dash if there is no name.
    public var name: String
    /// Address for media of sections that have none.
    public var connection: ConnectionAddress?
    /// Values of the `t=` lines; `0 0` is a session without bounds.
    public var times: [String]
    /// Lines that we keep and do not read: `i u e p b r z k`, in their order.
    public var otherLines: [Line]
    /// Attributes of the whole session.
    public var attributes: [SDPAttribute]
    /// The media sections, in their order, by which offer and answer are matched.
    public var media: [MediaSection]

    /// Longest text that is read, in bytes: far above any description of a call.
    public static var maximumSize: Int { 65_536 }

    /// Makes a description without media.
    public init(origin: Origin, name: String = "-", connection: ConnectionAddress? = nil) {
        self.origin = origin
        self.name = name
        self.connection = connection
        times = ["0 0"]
        otherLines = []
        attributes = []
        media = []
    }

    /// A line that is kept unchanged.
    public struct Line: Equatable, Sendable {
        /// The letter before the equals sign.
        public var type: Character
        /// The text after it.
        public var value: String

        /// Makes a line.
        public init(type: Character, value: String) {
            self.type = type
            self.value = value
        }
    }

    /// An `o=` line (RFC 8866 §5.2).
    public struct Origin: Equatable, Sendable {
        /// A dash where there is none.
        public var username: String
        /// Identifies the session together with the other fields; a number, kept as text because its size is not
        /// bounded.
        public var sessionID: String
        /// Rises by one when a description of the session is changed (RFC 3264 §8).
        public var version: String
        /// The maker's address.
        public var address: ConnectionAddress

        /// Makes an origin.
        public init(username: String = "-", sessionID: String, version: String, address: ConnectionAddress) {
            self.username = username
            self.sessionID = sessionID
            self.version = version
            self.address = address
        }
    }

    /// Direction of sections that have none.
    public var direction: MediaDirection { attributes.direction ?? .sendrecv }
}

extension SessionDescription: CustomStringConvertible, CustomReflectable {
    /// The description for logs: keys and passwords are left out.
    public var description: String { text { $0.description } }

    /// Shows what ``description`` shows, so that `dump` reveals no secret either.
    public var customMirror: Mirror { Mirror(self, children: ["text": description]) }
}

/// A text is not a session description.
public struct SDPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with a description.
    public struct Code: Equatable, Sendable {
        private let number: UInt8
        /// Longer than ``SessionDescription/maximumSize``.
        public static let tooLong = Code(number: 0)
        /// A line is not a letter, an equals sign and a value.
        public static let malformedLine = Code(number: 1)
        /// A line of a kind that we must understand has a value that we do not.
        public static let malformedValue = Code(number: 2)
        /// A line that every description has is not there.
        public static let missingLine = Code(number: 3)
    }

    /// What is wrong.
    public let code: Code
    /// Line in the text, from 1.
    public let line: Int
    /// What was expected, as a sentence without a full stop.
    public let message: String

    /// A sentence with the line, for logs and for the peer's author.
    public var description: String { "session description, line \(line): \(message)" }
}

extension SessionDescription {
    /// Reads a description.
    ///
    /// Lines may end in CR LF, LF or CR, and may be in any order within their section; letters that RFC 8866 does not
    /// know are ignored, and so is the missing `t=` or `s=` of careless peers.
    ///
    /// - Throws: ``SDPError`` with the line. Nothing a peer sends can trap.
    public init(parsing text: String) throws(SDPError) {
        try self.init(parsing: Array(text.utf8))
    }

    /// Reads a description from bytes; what is not UTF-8 is repaired.
    public init(parsing bytes: [UInt8]) throws(SDPError) {
        guard bytes.count <= Self.maximumSize else {
            throw SDPError(code: .tooLong, line: 1, message: "longer than \(Self.maximumSize) bytes")
        }
        var parser = Parser()
        var number = 0
        var start = 0
        var index = 0
        while start < bytes.count {
            index = start
            while index < bytes.count, bytes[index] != 10, bytes[index] != 13 { index += 1 }
            number += 1
            if index > start { try parser.take(bytes[start..<index], number: number) }
            let isPair = index + 1 < bytes.count && bytes[index] == 13 && bytes[index + 1] == 10
            start = index + (isPair ? 2 : 1)
        }
        self = try parser.finish(lastLine: number)
    }
}

private struct Parser {
    private var origin: SessionDescription.Origin?
    private var name = "-"
    private var connection: ConnectionAddress?
    private var times: [String] = []
    private var otherLines: [SessionDescription.Line] = []
    private var attributes: [SDPAttribute] = []
    private var media: [MediaSection] = []
    private var hasVersion = false

    mutating func take(_ whole: ArraySlice<UInt8>, number: Int) throws(SDPError) {
        // Blank lines and blanks at the end are common in descriptions that went through a form, a chat or a script.
        guard let last = whole.lastIndex(where: { $0 != 32 && $0 != 9 }) else { return }
        // A blank is what a session without a name is called (RFC 8866 §5.3).
        let line = whole.first == UInt8(ascii: "s") ? whole : whole[...last]
        guard line.count >= 2, line[line.startIndex + 1] == UInt8(ascii: "=") else {
            throw SDPError(code: .malformedLine, line: number, message: "expected a letter, \"=\" and a value")
        }
        // No value may contain a zero byte (RFC 8866 §9), and the rest of a value without it may be invalid.
        guard !line.contains(0) else {
            throw SDPError(code: .malformedLine, line: number, message: "expected text, found a zero byte")
        }
        let type = Character(UnicodeScalar(line[line.startIndex]))
        let value = String(decoding: line.dropFirst(2), as: UTF8.self)
        guard hasVersion || type == "v" else {
            throw SDPError(code: .missingLine, line: number, message: "expected \"v=0\" before anything else")
        }
        if media.isEmpty {
            try takeSessionLine(type, value, number)
        } else {
            try takeMediaLine(type, value, number)
        }
    }

    private mutating func takeSessionLine(_ type: Character, _ value: String, _ number: Int) throws(SDPError) {
        switch type {
        case "v":
            guard value == "0" else { throw Self.malformed(number, "expected version 0") }
            hasVersion = true
        case "o": origin = try Self.origin(value, number)
        case "s": name = value.isEmpty ? "-" : value
        case "c": connection = try Self.connection(value, number)
        case "t": times.append(value)
        case "a": attributes.append(Self.attribute(value))
        case "m": media.append(try Self.section(value, number))
        case "i", "u", "e", "p", "b", "r", "z", "k": otherLines.append(.init(type: type, value: value))
        default: break
        }
    }

    private mutating func takeMediaLine(_ type: Character, _ value: String, _ number: Int) throws(SDPError) {
        let last = media.count - 1
        switch type {
        case "m": media.append(try Self.section(value, number))
        case "c":
            // A layered encoding gives several addresses; the first is the base layer's.
            let connection = try Self.connection(value, number)
            if media[last].connection == nil { media[last].connection = connection }
        case "a": media[last].attributes.append(Self.attribute(value))
        case "i", "b", "k": media[last].otherLines.append(.init(type: type, value: value))
        default: break
        }
    }

    func finish(lastLine: Int) throws(SDPError) -> SessionDescription {
        guard hasVersion else {
            throw SDPError(code: .missingLine, line: max(1, lastLine), message: "expected \"v=0\"")
        }
        guard let origin else {
            throw SDPError(code: .missingLine, line: max(1, lastLine), message: "no \"o=\" line")
        }
        var description = SessionDescription(origin: origin, name: name, connection: connection)
        if !times.isEmpty { description.times = times }
        description.otherLines = otherLines
        description.attributes = attributes
        description.media = media
        return description
    }

    private static func origin(_ value: String, _ number: Int) throws(SDPError) -> SessionDescription.Origin {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count == 6, let address = ConnectionAddress(parsing: fields[3...].joined(separator: " ")) else {
            throw Self.malformed(number, "expected \"o=username id version IN IP4|IP6 address\"")
        }
        return .init(
            username: String(fields[0]), sessionID: String(fields[1]), version: String(fields[2]), address: address)
    }

    private static func connection(_ value: String, _ number: Int) throws(SDPError) -> ConnectionAddress {
        guard let connection = ConnectionAddress(parsing: value) else {
            throw Self.malformed(number, "expected \"c=IN IP4|IP6 address\"")
        }
        return connection
    }

    private static func attribute(_ value: String) -> SDPAttribute {
        guard let colon = value.utf8.firstIndex(of: UInt8(ascii: ":")) else { return SDPAttribute(value) }
        let text = value[value.utf8.index(after: colon)...]
        // Some write a flag with a colon behind it, or a blank before the colon, which no name has.
        let blanks = value[..<colon].utf8.reversed().prefix { $0 == 32 || $0 == 9 }.count
        let name = value[..<value.utf8.index(colon, offsetBy: -blanks)]
        return SDPAttribute(String(name), text.isEmpty ? nil : String(text))
    }

    private static func section(_ value: String, _ number: Int) throws(SDPError) -> MediaSection {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 3 else { throw Self.malformed(number, "expected \"m=kind port profile formats\"") }
        let ports = fields[1].split(separator: "/", omittingEmptySubsequences: false)
        guard ports.count <= 2, let port = Digits.number(ports[0], upTo: 65_535) else {
            throw Self.malformed(number, "expected a port from 0 to 65535")
        }
        var section = MediaSection(
            kind: String(fields[0]), port: port, profile: String(fields[2]), formats: fields[3...].map(String.init))
        if ports.count == 2 {
            guard let count = Digits.number(ports[1], upTo: 65_535) else {
                throw Self.malformed(number, "expected a number of ports behind the slash")
            }
            section.portCount = count
        }
        return section
    }

    private static func malformed(_ number: Int, _ message: String) -> SDPError {
        SDPError(code: .malformedValue, line: number, message: message)
    }
}

extension SessionDescription {
    /// The text to send, keys and passwords included: lines in RFC 8866's order, each ended by CR LF.
    public func serialized() -> String {
        text { attribute in
            attribute.value.map { "a=\(attribute.name):\($0)" } ?? "a=\(attribute.name)"
        }
    }

    func text(_ attributeLine: (SDPAttribute) -> String) -> String {
        var text = LineWriter()
        let maker = "\(origin.username) \(origin.sessionID) \(origin.version) \(origin.address.text)"
        text.append("v=0")
        text.append("o=\(maker)")
        text.append("s=\(name.isEmpty ? "-" : name)")
        text.append(otherLines, of: "iuep")
        if let connection { text.append("c=\(connection.text)") }
        text.append(otherLines, of: "b")
        for time in times { text.append("t=\(time)") }
        text.append(otherLines, of: "rzk")
        for attribute in attributes { text.append(attributeLine(attribute)) }
        for section in media {
            let count = section.portCount.map { "/\($0)" } ?? ""
            let formats = section.formats.joined(separator: " ")
            text.append("m=\(section.kind) \(section.port)\(count) \(section.profile) \(formats)")
            text.append(section.otherLines, of: "i")
            if let connection = section.connection { text.append("c=\(connection.text)") }
            text.append(section.otherLines, of: "bk")
            for attribute in section.attributes { text.append(attributeLine(attribute)) }
        }
        return text.text
    }
}

/// Collects lines. Line ends inside a value would let the value add lines, so they are removed.
private struct LineWriter {
    var text = ""

    mutating func append(_ line: String) {
        for scalar in line.unicodeScalars where scalar != "\r" && scalar != "\n" && scalar != "\0" {
            text.unicodeScalars.append(scalar)
        }
        text += "\r\n"
    }

    mutating func append(_ lines: [SessionDescription.Line], of types: String) {
        for type in types {
            for line in lines where line.type == type { append("\(type)=\(line.value)") }
        }
    }
}
