import Core
import RTP

// The module reads from spans, which test macros cannot capture: the same calls on arrays.

extension [UInt8] {
    mutating func withMutableRawSpan<Result>(_ body: (inout MutableRawSpan) -> Result) -> Result {
        var span = mutableSpan
        var raw = span.mutableBytes
        return body(&raw)
    }
}

extension RTPHeader {
    init(parsing bytes: [UInt8]) throws(RTPParseError) { try self.init(parsing: bytes.span.bytes) }
}

extension HeaderExtension.Cursor {
    mutating func next(in bytes: [UInt8]) -> HeaderExtension.Element? { next(in: bytes.span.bytes) }
}

extension DatagramKind {
    init(of bytes: [UInt8]) { self.init(of: bytes.span.bytes) }
}

extension ReportBlocks {
    func block(at index: Int, in bytes: [UInt8]) -> ReportBlock? { block(at: index, in: bytes.span.bytes) }
    func block(on ssrc: UInt32, in bytes: [UInt8]) -> ReportBlock? { block(on: ssrc, in: bytes.span.bytes) }
}

extension SourceDescriptions {
    func canonicalName(of ssrc: UInt32, in bytes: [UInt8]) -> Range<Int>? {
        canonicalName(of: ssrc, in: bytes.span.bytes)
    }
}

extension Goodbye {
    func names(_ ssrc: UInt32, in bytes: [UInt8]) -> Bool { names(ssrc, in: bytes.span.bytes) }
}

extension RTCPSession {
    mutating func received(_ bytes: [UInt8], at now: Instant) throws(RTCPParseError) -> Feedback {
        try received(bytes.span.bytes, at: now)
    }
}

extension CompoundReport {
    func write(into bytes: inout [UInt8]) -> Int { bytes.withMutableRawSpan { write(into: &$0) } }
}

extension [UInt8] {
    /// Bytes that `body` wrote at the front, as a writer counts them; zero if they did not fit.
    mutating func write(_ body: (inout ByteWriter) -> Void) -> Int {
        var span = mutableSpan
        var writer = ByteWriter(span.mutableBytes)
        body(&writer)
        return writer.overflowed ? 0 : writer.count
    }
}

extension RedundantPayload {
    init?(_ payload: Range<Int>, of bytes: [UInt8]) { self.init(payload, of: bytes.span.bytes) }
    func block(at index: Int, in bytes: [UInt8]) -> Block? { block(at: index, in: bytes.span.bytes) }
}

extension TelephoneEventPayload {
    init?(_ payload: Range<Int>, of bytes: [UInt8]) { self.init(payload, of: bytes.span.bytes) }
}

extension RTCPFeedback {
    init?(type: UInt8, body: Range<Int>, in bytes: [UInt8]) {
        self.init(type: type, body: body, in: bytes.span.bytes)
    }
}

extension MissingPackets {
    mutating func next(in bytes: [UInt8]) -> UInt16? { next(in: bytes.span.bytes) }
}

extension TransportFeedback.Cursor {
    mutating func next(in bytes: [UInt8]) -> TransportFeedback.Status? { next(in: bytes.span.bytes) }
}

extension ExtendedReport {
    init?(type: UInt8, body: Range<Int>, answering ssrc: UInt32, in bytes: [UInt8]) {
        self.init(type: type, body: body, answering: ssrc, in: bytes.span.bytes)
    }
}

extension AudioLevel {
    init?(_ identifier: UInt8, of header: RTPHeader, in bytes: [UInt8]) {
        self.init(identifier, of: header, in: bytes.span.bytes)
    }
}

extension RTPHeader {
    func transportSequenceNumber(_ identifier: UInt8, in bytes: [UInt8]) -> UInt16? {
        transportSequenceNumber(identifier, in: bytes.span.bytes)
    }
}
