internal import Core

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

    mutating func take(_ line: ArraySlice<UInt8>, number: Int) throws(SDPError) {
        // Blank lines are common at the end of descriptions that went through a form or a chat.
        guard !line.allSatisfy({ $0 == 32 || $0 == 9 }) else { return }
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
            guard value == "0" else { throw malformed(number, "expected version 0") }
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
            throw malformed(number, "expected \"o=username id version IN IP4|IP6 address\"")
        }
        return .init(
            username: String(fields[0]), sessionID: String(fields[1]), version: String(fields[2]), address: address)
    }

    private static func connection(_ value: String, _ number: Int) throws(SDPError) -> ConnectionAddress {
        guard let connection = ConnectionAddress(parsing: value) else {
            throw malformed(number, "expected \"c=IN IP4|IP6 address\"")
        }
        return connection
    }

    private static func attribute(_ value: String) -> SDPAttribute {
        guard let colon = value.utf8.firstIndex(of: UInt8(ascii: ":")) else { return SDPAttribute(value) }
        return SDPAttribute(String(value[..<colon]), String(value[value.utf8.index(after: colon)...]))
    }

    private static func section(_ value: String, _ number: Int) throws(SDPError) -> MediaSection {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 3 else { throw malformed(number, "expected \"m=kind port profile formats\"") }
        let ports = fields[1].split(separator: "/", omittingEmptySubsequences: false)
        guard ports.count <= 2, let port = Digits.number(ports[0], upTo: 65_535) else {
            throw malformed(number, "expected a port from 0 to 65535")
        }
        var section = MediaSection(
            kind: String(fields[0]), port: port, profile: String(fields[2]), formats: fields[3...].map(String.init))
        if ports.count == 2 {
            guard let count = Digits.number(ports[1], upTo: 65_535) else {
                throw malformed(number, "expected a number of ports behind the slash")
            }
            section.portCount = count
        }
        return section
    }

    private static func malformed(_ number: Int, _ message: String) -> SDPError {
        SDPError(code: .malformedValue, line: number, message: message)
    }

    private func malformed(_ number: Int, _ message: String) -> SDPError { Self.malformed(number, message) }
}
