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
        let decoder = codec != before ? try MediaCall.makeDecoder(codec) : StreamDecoder()
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
}

// Formats that change during a call (RFC 3264 §8.3.2).
extension MediaCall {
    /// Accepts the peer's packets in the new formats in addition to the old ones from now on, and sends in the new
    /// formats from the next frame on, or after the current telephone key.
    ///
    /// - Returns: A change that is not needed any more, if there is one: this one, or one that was waiting.
    @_noAllocation @_noLocks
    package mutating func change(
        _ change: UnsafeMutablePointer<MediaCallChange>
    ) -> UnsafeMutablePointer<MediaCallChange>? {
        if unsafe !change.pointee.decoder.isEmpty {
            capture?.note(.change, Int64(unsafe change.pointee.codecNumber))
        }
        let number = unsafe playout.change(to: &change.pointee.decoder)
        unsafe peer.expect(change.pointee.peer, decoder: number)
        guard let superseded = unsafe waitingChange else {
            unsafe waitingChange = change
            return unsafe takeUpChange()
        }
        if unsafe change.pointee.encoder.isEmpty {
            unsafe exchange(&change.pointee.encoder, &superseded.pointee.encoder)
        }
        unsafe waitingChange = change
        return unsafe superseded
    }

    /// Starts to send in the waiting formats, if there are any and no telephone key is being sent.
    ///
    /// - Returns: What is left of the change.
    @_noAllocation @_noLocks
    package mutating func takeUpChange() -> UnsafeMutablePointer<MediaCallChange>? {
        guard let change = unsafe waitingChange, !digits.isPressing else { return nil }
        unsafe waitingChange = nil
        unsafe send(by: &change.pointee)
        return unsafe change
    }

    /// Takes the formats that still wait, of a call that has ended.
    package mutating func takeWaitingChange() -> UnsafeMutablePointer<MediaCallChange>? {
        let change = unsafe waitingChange
        unsafe waitingChange = nil
        return unsafe change
    }

    @_noAllocation @_noLocks
    private mutating func send(by change: inout MediaCallChange) {
        let repeats = change.sendPayloadType == sendPayloadType && change.encoder.isEmpty
        peer.send(by: &change.peer)
        sendPayloadType = change.sendPayloadType
        setFrame(samples: change.settings.frameDuration.samples, samplesPerTick: change.samplesPerTick)
        if !change.encoder.isEmpty { exchange(&encoder, &change.encoder) }
        encoder.set(change.settings)
        leastExpectedLossPercent = change.settings.expectedLossPercent
        control.change(bitrateBps: change.settings.bitrateBps, packetNanoseconds: periodNanoseconds)
        encoder.set(bitrateBps: control.bitrateBps)
        encoder.set(expectedLossPercent: max(leastExpectedLossPercent, control.expectedLossPercent))
        digits.change(
            clockRate: change.eventClockRate, frameMilliseconds: change.settings.frameDuration.rawValue)
        // A copy must be of the codec, and under the number, of the packet that carries it.
        redundancy.depth = peer.takesRedundancy ? chooseCopies() : 0
        control.feedback.noteRedundancy(redundancy.depth > 0)
        if !repeats || redundancy.depth == 0 { redundancy.reset() }
        marker = true
    }
}

// Swaps in place, so that no encoder is freed here.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout SoundEncoder, _ other: inout SoundEncoder) { swap(&one, &other) }
