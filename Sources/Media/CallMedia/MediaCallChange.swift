package import AudioKit
internal import Playout
internal import RTP

/// A call's new decoder and encoder after later descriptions agreed on other formats. The control side allocates and
/// frees it; the call's worker uses it.
package struct MediaCallChange: ~Copyable {
    var peer: PeerChange
    /// The decoder for the peer's sound; empty if it stays.
    var decoder: StreamDecoder
    /// The encoder for our sound; empty if the one in use only gets new settings.
    var encoder: SoundEncoder
    let settings: EncoderSettings
    let samplesPerTick: Int
    let sendPayloadType: UInt8
    let eventClockRate: Int?
    /// The codec's index among all, for a capture.
    let codecNumber: Int

    /// - Parameter before: The codec that the call has now.
    package init(to plan: MediaCallPlan, from before: SoundCodec) throws(OpusError) {
        let (codec, settings) = (plan.codec, plan.encoder)
        let decoder = codec != before ? try codec.makeDecoder() : StreamDecoder()
        // A G.711 encoder has no state worth keeping; a restart of an Opus encoder would be audible.
        let encoder =
            codec != before || codec != .opus
            ? try SoundEncoder(codec, settings, describesNoise: plan.peer.sendComfortNoisePayloadType != nil)
            : SoundEncoder()
        peer = PeerChange(plan.peer)
        self.decoder = decoder
        self.encoder = encoder
        self.settings = settings
        samplesPerTick = codec.samplesPerTick
        sendPayloadType = plan.peer.sendPayloadType
        eventClockRate = plan.peer.telephoneEvents.first?.clockRate
        codecNumber = SoundCodec.allCases.firstIndex(of: codec) ?? 0
    }

    /// Takes the encoder of a change that this one supersedes, unless it has one of its own.
    @_noAllocation @_noLocks
    mutating func takeEncoder(from superseded: inout MediaCallChange) {
        if encoder.isEmpty { exchange(&encoder, &superseded.encoder) }
    }
}

// Swaps in place, so that no encoder is freed here.
@_semantics("no_performance_analysis") @inline(__always)
func exchange(_ one: inout SoundEncoder, _ other: inout SoundEncoder) { swap(&one, &other) }
