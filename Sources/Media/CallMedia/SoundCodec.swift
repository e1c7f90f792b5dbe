internal import AudioKit
internal import Playout

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

    /// Makes a decoder of it.
    func makeDecoder() throws(OpusError) -> StreamDecoder {
        if let law { return StreamDecoder(G711Decoder(law)) }
        return StreamDecoder(try OpusDecoder())
    }
}
