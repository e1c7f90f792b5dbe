/// Cuts a TCP or TLS stream into messages by `Content-Length` (RFC 3261 §18.3), and finds keepalives between them
/// (RFC 5626 §3.5.1). One framer for each connection.
public struct SIPStreamFramer: Sendable {
    /// The next element of the stream.
    public enum Element: Equatable, Sendable {
        /// The bytes of one message.
        case message([UInt8])
        /// Two line ends: the peer wants one back.
        case ping
        /// One line end: the answer to a ping.
        case pong
    }

    private var buffer: [UInt8] = []
    /// Bytes of `buffer` that were searched for the empty line.
    private var searched = 0

    /// Starts at the beginning of a stream.
    public init() {}

    /// Bytes that wait for more.
    public var waitingBytes: Int { buffer.count }

    /// Takes the next bytes of the stream.
    ///
    /// - Throws: ``SIPParseError`` if the stream cannot be followed any more: without `Content-Length`, or beyond a bound. The
    ///   connection is to be closed, after the error's answer, if it has one.
    public mutating func take(_ bytes: [UInt8], into elements: inout [Element]) throws(SIPParseError) {
        buffer += bytes
        while try next(into: &elements) {}
    }

    private mutating func next(into elements: inout [Element]) throws(SIPParseError) -> Bool {
        guard let first = buffer.first else { return false }
        if first == 13 || first == 10 {
            return keepalive(into: &elements)
        }
        guard let headEnd = endOfHeaders() else {
            guard buffer.count <= SIPLimits.headerBytes else {
                throw SIPParseError(status: 513, message: "the headers are too long", answer: nil)
            }
            return false
        }
        let head = Array(buffer[..<headEnd])
        guard case .bytes(let count) = Self.contentLength(head), count <= SIPLimits.messageBytes - headEnd else {
            // Reading it as a datagram finds the answer.
            _ = try SIPMessage(parsing: head)
            throw SIPParseError(status: 400, message: "a stream needs a Content-Length within bounds", answer: nil)
        }
        guard buffer.count >= headEnd + count else { return false }
        elements.append(.message(Array(buffer[..<(headEnd + count)])))
        buffer.removeFirst(headEnd + count)
        searched = 0
        return true
    }

    private mutating func keepalive(into elements: inout [Element]) -> Bool {
        if buffer.starts(with: [13, 10, 13, 10]) {
            buffer.removeFirst(4)
            elements.append(.ping)
            return true
        }
        // A single line end may be the first half of a ping; a pong is a single line end.
        if buffer.count == 1 || buffer == [13, 10, 13] { return false }
        if buffer.starts(with: [13, 10]) {
            buffer.removeFirst(2)
            elements.append(.pong)
        } else {
            buffer.removeFirst(1)
        }
        return true
    }

    /// The offset behind the empty line.
    private mutating func endOfHeaders() -> Int? {
        var index = max(0, searched - 3)
        while index < buffer.count {
            if buffer[index] == 10 {
                if index + 1 < buffer.count, buffer[index + 1] == 10 { return index + 2 }
                if index + 2 < buffer.count, buffer[index + 1] == 13, buffer[index + 2] == 10 { return index + 3 }
            }
            index += 1
        }
        searched = buffer.count
        return nil
    }

    /// Reads only the headers that framing needs; the rest of the message may be malformed.
    private static func contentLength(_ head: [UInt8]) -> MessageCheck.ContentLength {
        var headers = SIPHeaders()
        for line in head.split(separator: 10) {
            guard let colon = line.firstIndex(of: 0x3A), line.first != 0x20, line.first != 0x09 else { continue }
            let name = TextScanner.trimmed(line[..<colon])
            guard name.isSame(as: "Content-Length") || name.isSame(as: "l") else { continue }
            let value = line[(colon + 1)...]
            headers.append("Content-Length", TextScanner.trimmed(value.last == 13 ? value.dropLast() : value))
        }
        return MessageCheck.contentLength(headers)
    }
}
