// Tracing: W3C trace contexts, spans, their form for OpenTelemetry's protocol, and the queue of what a collector is to get. Values only.

internal import Core

/// The name of a trace: 16 bytes, not all of them zero (W3C Trace Context §3.2.2.3).
public struct TraceID: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// - Returns: Nil if both are zero, which is no name.
    public init?(high: UInt64, low: UInt64) {
        guard high | low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// Makes a name of random bits, as Trace Context §3.2.2.3 recommends.
    public init(using generator: inout some RandomNumberGenerator) {
        high = generator.next()
        low = SpanID(using: &generator).number
    }

    /// 32 hexadecimal digits, in lower case.
    public var description: String { Hexadecimal.text(of: high) + Hexadecimal.text(of: low) }

    /// The 56 bits that decide about samples, which are random in all names that follow the recommendation.
    fileprivate var samplingBits: UInt64 { low & (1 << 56 - 1) }

    /// The bytes, the most significant first.
    var bytes: [UInt8] { SpanID.bytes(of: high) + SpanID.bytes(of: low) }
}

/// The name of a span: 8 bytes, not all of them zero (W3C Trace Context §3.2.2.4).
public struct SpanID: Hashable, Sendable, CustomStringConvertible {
    fileprivate let number: UInt64

    /// - Returns: Nil for zero, which is no name.
    public init?(_ number: UInt64) {
        guard number != 0 else { return nil }
        self.number = number
    }

    /// Makes a name of random bits.
    public init(using generator: inout some RandomNumberGenerator) {
        // Never zero, with any generator.
        number = max(1, generator.next())
    }

    /// 16 hexadecimal digits, in lower case.
    public var description: String { Hexadecimal.text(of: number) }

    /// The bytes, the most significant first.
    var bytes: [UInt8] { Self.bytes(of: number) }

    fileprivate static func bytes(of number: UInt64) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}

/// Where in which trace something happens, as programs send it to each other in `traceparent` (W3C Trace Context, level 1).
public struct TraceContext: Hashable, Sendable, CustomStringConvertible {
    /// The trace.
    public let trace: TraceID
    /// The span within it that causes what follows.
    public let span: SpanID
    /// Whether that span is recorded.
    public let isSampled: Bool

    /// The longest text that is read. Version 00 has 55 characters; later versions may have more.
    public static let mostBytes = 256

    /// Makes a context.
    public init(trace: TraceID, span: SpanID, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// Reads the value of a `traceparent` (Trace Context §3.2.2). Of a later version than 00 it reads what version 00 has.
    ///
    /// - Returns: Nil if the text is none: upper-case digits, names of zeros, and the version `ff` are not allowed.
    public init?(_ text: String) {
        let bytes = Array(text.utf8.prefix(Self.mostBytes + 1))
        guard bytes.count <= Self.mostBytes, bytes.count >= Self.bytes, let version = Self.number(bytes[0..<2]),
            version != 0xff
        else { return nil }
        let isEnded = bytes.count == Self.bytes || (version > 0 && bytes[Self.bytes] == Self.dash)
        guard isEnded, [2, 35, 52].allSatisfy({ bytes[$0] == Self.dash }), let high = Self.number(bytes[3..<19]),
            let low = Self.number(bytes[19..<35]), let number = Self.number(bytes[36..<52]),
            let flags = Self.number(bytes[53..<55]), let trace = TraceID(high: high, low: low),
            let span = SpanID(number)
        else { return nil }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1)
    }

    /// The value of a `traceparent` of version 00.
    public var description: String { "00-\(trace)-\(span)-\(isSampled ? "01" : "00")" }

    private static let bytes = 55
    private static let dash = UInt8(ascii: "-")

    /// The number of these digits, 16 at most; nil if one is none, or in upper case.
    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            guard !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit), let value = Hexadecimal.value(of: digit)
            else { return nil }
            number = number << 4 | UInt64(value)
        }
        return number
    }
}

/// The share of traces that are recorded. All programs that have the same share decide alike about a trace, because its name decides.
public struct TraceSampling: Hashable, Sendable {
    /// From this number on, of 56 bits.
    private let threshold: UInt64

    /// - Parameter share: 0 is none, 1 all; values beyond are taken for these.
    public init(share: Double) { threshold = UInt64((1 - min(1, max(0, share))) * 0x1p56) }

    /// Whether a trace is recorded.
    public func takes(_ trace: TraceID) -> Bool { trace.samplingBits >= threshold }
}
