internal import OpusCodec
internal import Peering
internal import Playout
internal import RTP

/// What a call goes on with when later descriptions have agreed on other formats: made where memory may be taken, taken
/// over by the call's worker, and freed where it was made.
struct MediaCallChange: ~Copyable {
    var peer: PeerChange
    /// What the peer's sound is decoded with; empty if that stays.
    var decoder: StreamDecoder
    /// What ours is encoded with; empty if the one in use is only set anew.
    var encoder: SoundEncoder
    let settings: EncoderSettings
    let samplesPerTick: Int
    let sendPayloadType: UInt8
    let eventClockRate: Int?
    /// The codec's place among all, for a capture.
    let codecNumber: Int

    /// - Parameter before: The codec that the call has now.
    init(to plan: MediaCallPlan, from before: SoundCodec) throws(OpusError) {
        let (codec, settings) = (plan.codec, plan.encoder)
        let decoder = codec != before ? try MediaCall.makeDecoder(codec) : StreamDecoder()
        // An encoder of G.711 holds nothing worth keeping; one of Opus would be heard to begin anew.
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

// Formats that change while the call stands (RFC 3264 §8.3.2).
extension MediaCall {
    /// Takes the peer's packets in other formats from now on, besides those of before, and sends in them from the next
    /// frame on, or when the telephone key that is under way is over.
    ///
    /// - Returns: A change that is of no more use, if there is one: this, or one that had been waiting.
    @_noAllocation @_noLocks
    mutating func change(
        _ change: UnsafeMutablePointer<MediaCallChange>
    ) -> UnsafeMutablePointer<MediaCallChange>? {
        if unsafe !change.pointee.decoder.isEmpty {
            tape?.note(.change, Int64(unsafe change.pointee.codecNumber))
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

    /// Sends in the formats that wait, if there are any and no telephone key is under way.
    ///
    /// - Returns: What is left of the change.
    @_noAllocation @_noLocks
    mutating func takeUpChange() -> UnsafeMutablePointer<MediaCallChange>? {
        guard let change = unsafe waitingChange, !digits.isPressing else { return nil }
        unsafe waitingChange = nil
        unsafe send(by: &change.pointee)
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
        control.noteRedundancy(redundancy.depth > 0)
        if !repeats || redundancy.depth == 0 { redundancy.reset() }
        marker = true
    }
}

// Swaps in place: encoders are freed by neither.
@_semantics("no_performance_analysis") @inline(__always)
private func exchange(_ one: inout SoundEncoder, _ other: inout SoundEncoder) { swap(&one, &other) }
