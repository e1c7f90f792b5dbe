import RTP
import Timekeeping

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
