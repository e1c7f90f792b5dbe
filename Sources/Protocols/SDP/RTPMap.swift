internal import Core

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
