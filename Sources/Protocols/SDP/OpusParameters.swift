internal import Core

/// One side's Opus parameters in its `fmtp` line (RFC 7587 §6.1). All except the two `sprop` ones describe what it
/// wants to *receive*, and so bind the other side's encoder.
public struct OpusParameters: Equatable, Sendable {
    /// Highest sampling rate worth sending, in Hz: 8000…48000.
    public var maximumPlaybackRate: Int
    /// Highest sampling rate that it will send, in Hz.
    public var sourceMaximumCaptureRate: Int
    /// Highest mean bitrate that it wants, in bits per second: 6000…510000; `nil` for no limit.
    public var maximumAverageBitrate: Int?
    /// It would rather have stereo than mono.
    public var prefersStereo: Bool
    /// It is likely to send stereo.
    public var sendsStereo: Bool
    /// It wants a constant bitrate.
    public var wantsConstantBitrate: Bool
    /// It makes use of in-band forward error correction.
    public var usesInbandFEC: Bool
    /// It would have the sender pause in silence.
    public var wantsDTX: Bool
    /// Shortest packet that it wants, in milliseconds.
    public var minimumPacketTimeMilliseconds: Int
    /// Preferred length of packets, in milliseconds, if given here instead of in a `ptime` line.
    public var packetTimeMilliseconds: Int?
    /// Longest accepted packet, in milliseconds, if given here instead of in a `maxptime` line.
    public var maximumPacketTimeMilliseconds: Int?

    /// RFC 7587's defaults, which apply to a line without parameters.
    public init() {
        maximumPlaybackRate = 48_000
        sourceMaximumCaptureRate = 48_000
        maximumAverageBitrate = nil
        prefersStereo = false
        sendsStereo = false
        wantsConstantBitrate = false
        usesInbandFEC = false
        wantsDTX = false
        minimumPacketTimeMilliseconds = 3
    }

    /// Reads `name=value;name=value`; unknown names and impossible values are ignored.
    public init(parsing text: String) {
        self.init()
        for field in text.split(separator: ";") {
            let pair = field.split(separator: "=", maxSplits: 1)
            guard pair.count == 2 else { continue }
            let name = Self.trimmed(pair[0]).lowercased()
            guard let value = Digits.number(Self.trimmed(pair[1]), upTo: 10_000_000) else { continue }
            apply(name, value)
        }
    }

    private mutating func apply(_ name: String, _ value: Int) {
        switch name {
        case "maxplaybackrate" where value > 0: maximumPlaybackRate = min(48_000, max(8_000, value))
        case "sprop-maxcapturerate" where value > 0: sourceMaximumCaptureRate = min(48_000, max(8_000, value))
        case "maxaveragebitrate" where value > 0: maximumAverageBitrate = min(510_000, max(6_000, value))
        case "stereo": prefersStereo = value == 1
        case "sprop-stereo": sendsStereo = value == 1
        case "cbr": wantsConstantBitrate = value == 1
        case "useinbandfec": usesInbandFEC = value == 1
        case "usedtx": wantsDTX = value == 1
        case "ptime" where (3...120).contains(value): packetTimeMilliseconds = value
        case "maxptime" where (3...120).contains(value): maximumPacketTimeMilliseconds = value
        case "minptime" where (3...120).contains(value): minimumPacketTimeMilliseconds = value
        default: break
        }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }

    /// The line's value: what differs from the defaults.
    var text: String {
        let defaults = OpusParameters()
        var fields: [String] = []
        if minimumPacketTimeMilliseconds != defaults.minimumPacketTimeMilliseconds {
            fields.append("minptime=\(minimumPacketTimeMilliseconds)")
        }
        if let packetTimeMilliseconds { fields.append("ptime=\(packetTimeMilliseconds)") }
        if let maximumPacketTimeMilliseconds { fields.append("maxptime=\(maximumPacketTimeMilliseconds)") }
        if maximumPlaybackRate != defaults.maximumPlaybackRate {
            fields.append("maxplaybackrate=\(maximumPlaybackRate)")
        }
        if sourceMaximumCaptureRate != defaults.sourceMaximumCaptureRate {
            fields.append("sprop-maxcapturerate=\(sourceMaximumCaptureRate)")
        }
        if let maximumAverageBitrate { fields.append("maxaveragebitrate=\(maximumAverageBitrate)") }
        if prefersStereo { fields.append("stereo=1") }
        if sendsStereo { fields.append("sprop-stereo=1") }
        if wantsConstantBitrate { fields.append("cbr=1") }
        if usesInbandFEC { fields.append("useinbandfec=1") }
        if wantsDTX { fields.append("usedtx=1") }
        return fields.joined(separator: ";")
    }
}
