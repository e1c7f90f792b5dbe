internal import Core

/// A codec that can carry a call's sound.
public enum AudioCodec: Equatable, Hashable, Sendable, CaseIterable {
    /// Opus, always announced with 48 000 ticks and two channels (RFC 7587 §7).
    case opus
    /// G.711 in µ-law, 8 000 samples a second (RFC 3551 §4.5.14).
    case pcmu
    /// G.711 in A-law, 8 000 samples a second (RFC 3551 §4.5.14).
    case pcma

    /// Ticks of the RTP timestamp per second.
    public var clockRate: Int { self == .opus ? 48_000 : 8_000 }

    /// The name in `rtpmap` lines.
    var encoding: String {
        switch self {
        case .opus: "opus"
        case .pcmu: "PCMU"
        case .pcma: "PCMA"
        }
    }

    var channels: Int? { self == .opus ? 2 : nil }

    /// The form used in messages.
    var label: String { "\(encoding)/\(clockRate)" + (channels.map { "/\($0)" } ?? "") }

    init?(_ map: RTPMap) {
        for codec in Self.allCases where codec.encoding.lowercased() == map.encoding.lowercased() {
            // A missing count of channels is accepted, because some peers omit it even for Opus.
            guard map.clockRate == codec.clockRate, (map.channels ?? codec.channels ?? 1) == codec.channels ?? 1 else {
                return nil
            }
            self = codec
            return
        }
        return nil
    }
}

/// The payload type of one format in both directions; they differ where an answer chose its own (RFC 3264 §6.1).
public struct PayloadTypes: Equatable, Hashable, Sendable {
    /// In packets that we send: 0…127.
    public var send: UInt8
    /// In packets that we receive: 0…127.
    public var receive: UInt8

    /// Makes a pair.
    public init(send: UInt8, receive: UInt8) {
        self.send = send
        self.receive = receive
    }
}

/// A codec that both sides have.
public struct NegotiatedCodec: Equatable, Sendable {
    /// Which.
    public var codec: AudioCodec
    /// Its numbers.
    public var payloadTypes: PayloadTypes

    /// Makes one.
    public init(codec: AudioCodec, payloadTypes: PayloadTypes) {
        self.codec = codec
        self.payloadTypes = payloadTypes
    }
}

/// Telephone events at one clock rate (RFC 4733 §2.4.1, RFC 7874 §3).
public struct NegotiatedTelephoneEvents: Equatable, Sendable {
    /// Ticks per second of their timestamps and durations: 8 000 or 48 000.
    public var clockRate: Int
    /// Their numbers.
    public var payloadTypes: PayloadTypes
    /// Events that the peer accepts, as in its `fmtp` line: `0-15` if the line has none.
    public var remoteEvents: String

    /// Makes one.
    public init(clockRate: Int, payloadTypes: PayloadTypes, remoteEvents: String) {
        self.clockRate = clockRate
        self.payloadTypes = payloadTypes
        self.remoteEvents = remoteEvents
    }

    /// Whether the peer accepts an event by its number; events that it does not list are not sent (RFC 4733 §2.5.1.1).
    ///
    /// A list of numbers and ranges, `0-11,16`. Unreadable parts are ignored.
    public func takes(_ event: UInt8) -> Bool {
        remoteEvents.split(separator: ",").contains { part in
            let ends = part.filter { $0 != " " }.split(separator: "-", omittingEmptySubsequences: false)
            let numbers = ends.compactMap { Digits.number($0, upTo: 255) }
            guard numbers.count == ends.count, let first = numbers.first, numbers.count <= 2 else { return false }
            return first <= Int(event) && Int(event) <= numbers[numbers.count - 1]
        }
    }
}

/// The format of a payload type, among all that we know.
enum AudioFormat: Hashable, Sendable {
    case codec(AudioCodec)
    /// Redundant Opus (RFC 2198).
    case redundancy
    /// Comfort noise at 8 000 ticks, for G.711 (RFC 3389).
    case comfortNoise
    /// At a clock rate.
    case telephoneEvents(Int)

    init?(_ map: RTPMap) {
        if let codec = AudioCodec(map) {
            self = .codec(codec)
            return
        }
        switch (map.encoding.lowercased(), map.clockRate) {
        case ("red", 48_000) where (map.channels ?? 2) == 2: self = .redundancy
        case ("cn", 8_000): self = .comfortNoise
        case ("telephone-event", 8_000), ("telephone-event", 48_000): self = .telephoneEvents(map.clockRate)
        default: return nil
        }
    }

    /// The `rtpmap` of the format under a number.
    func map(_ payloadType: Int) -> RTPMap {
        switch self {
        case .codec(let codec):
            RTPMap(
                payloadType: payloadType, encoding: codec.encoding, clockRate: codec.clockRate,
                channels: codec.channels)
        case .redundancy: RTPMap(payloadType: payloadType, encoding: "red", clockRate: 48_000, channels: 2)
        case .comfortNoise: RTPMap(payloadType: payloadType, encoding: "CN", clockRate: 8_000)
        case .telephoneEvents(let rate):
            RTPMap(payloadType: payloadType, encoding: "telephone-event", clockRate: rate)
        }
    }

    /// The number that we offer if it is free: those that are assigned (RFC 3551 §6), and those that browsers use.
    var usualPayloadType: Int {
        switch self {
        case .codec(.opus): 111
        case .codec(.pcmu): 0
        case .codec(.pcma): 8
        case .redundancy: 63
        case .comfortNoise: 13
        case .telephoneEvents(let rate): rate == 48_000 ? 110 : 126
        }
    }
}

/// The payload types of packets that we receive. A number once given keeps its meaning for the whole session (RFC 3264
/// §8.3.2).
struct PayloadNumbering: Equatable, Sendable {
    private var numbers: [AudioFormat: Int] = [:]

    subscript(format: AudioFormat) -> Int? { numbers[format] }

    /// The format's number. A new format gets the requested number if that is free, and else the next free one.
    mutating func number(for format: AudioFormat, preferred: Int) -> Int {
        if let number = numbers[format] { return number }
        let taken = Set(numbers.values)
        let candidates = [preferred] + Array(96...127) + Array(35...63)
        let number = candidates.first { !taken.contains($0) } ?? preferred
        numbers[format] = number
        return number
    }

    /// Takes over the number that the peer's offer gave; if a peer reassigns a number, the earlier format loses it.
    mutating func set(_ number: Int, for format: AudioFormat) {
        for (other, taken) in numbers where taken == number && other != format { numbers[other] = nil }
        numbers[format] = number
    }

    func format(_ number: Int) -> AudioFormat? { numbers.first { $0.value == number }?.key }
}

/// The value of an `rtpmap` attribute (RFC 8866 §6.6).
public struct RTPMap: Equatable, Sendable {
    /// 0…127.
    public var payloadType: Int
    /// The codec's name; upper and lower case are the same.
    public var encoding: String
    /// Ticks per second.
    public var clockRate: Int
    /// Channels, if given.
    public var channels: Int?

    /// Makes a map.
    public init(payloadType: Int, encoding: String, clockRate: Int, channels: Int? = nil) {
        self.payloadType = payloadType
        self.encoding = encoding
        self.clockRate = clockRate
        self.channels = channels
    }

    init?(parsing value: String) {
        let fields = value.split(separator: " ", omittingEmptySubsequences: true)
        guard fields.count >= 2, let payloadType = Digits.number(fields[0], upTo: 127) else { return nil }
        let parts = fields[1].split(separator: "/", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), !parts[0].isEmpty,
            let clockRate = Digits.number(parts[1], upTo: 1_000_000_000), clockRate > 0
        else { return nil }
        self.payloadType = payloadType
        encoding = String(parts[0])
        self.clockRate = clockRate
        channels = parts.count == 3 ? Digits.number(parts[2], upTo: 255) : nil
    }

    var text: String { "\(payloadType) \(encoding)/\(clockRate)" + (channels.map { "/\($0)" } ?? "") }
}
