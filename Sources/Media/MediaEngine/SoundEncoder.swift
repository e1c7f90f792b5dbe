internal import AudioKit
internal import OpusCodec

/// How a call's sound is coded, both ways.
public enum SoundCodec: String, CaseIterable, Sendable {
    /// Opus at 48 kHz (RFC 7587).
    case opus
    /// G.711 in µ-law, at 8 kHz (RFC 3551 §4.5.14).
    case pcmu
    /// G.711 in A-law, at 8 kHz (RFC 3551 §4.5.14).
    case pcma

    /// Samples at 48 kHz for each tick of RTP timestamps.
    var samplesPerTick: Int { self == .opus ? 1 : 6 }

    /// What decodes it.
    var law: G711? {
        switch self {
        case .opus: nil
        case .pcmu: .muLaw
        case .pcma: .aLaw
        }
    }
}

/// Encodes a call's frames with the codec that was agreed on.
struct SoundEncoder: ~Copyable {
    // Exactly one of the two.
    private var opus: OpusEncoder?
    private var narrowband: G711Encoder?

    init(_ codec: SoundCodec, _ settings: EncoderSettings) throws(OpusError) {
        if let law = codec.law {
            narrowband = G711Encoder(law)
        } else {
            opus = try OpusEncoder(settings: settings)
        }
    }

    /// Encodes one frame at 48 kHz.
    ///
    /// - Returns: Bytes written; negative if that failed, and 2 or fewer if nothing need be sent.
    @_noAllocation @_noLocks
    mutating func encode(_ pcm: Span<Int16>, into packet: inout MutableSpan<UInt8>) -> Int {
        if case .none = narrowband { return opus?.encode(pcm, into: &packet) ?? -1 }
        return narrowband?.encode(pcm, into: &packet) ?? -1
    }

    /// Aims at a bitrate, if the codec has a choice.
    @_noAllocation @_noLocks
    mutating func set(bitrateBps: Int) { opus?.set(bitrateBps: bitrateBps) }

    /// Expects so much loss, if the codec can protect against it.
    @_noAllocation @_noLocks
    mutating func set(expectedLossPercent: Int) { opus?.set(expectedLossPercent: expectedLossPercent) }
}
