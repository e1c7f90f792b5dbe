public import Playout
public import Core

/// Statistics of a call's media, from its start until now or its end. A plain value, copied on the media thread.
public struct MediaReport: BitwiseCopyable, Sendable {
    /// Packets, loss, round trip: the network half.
    public let peer: PeerStatistics
    /// When the peer's newest packet arrived, media or RTCP; nil if none has.
    public let newestArrival: Instant?
    /// Delay, concealment, stretching: the playout half.
    public let playout: PlayoutStatistics
    /// Frames, and what became of them.
    public let call: CallCounters
    /// Samples that the file being played could not give in time.
    public let playUnderrunSamples: Int
    /// Samples that the recording could not take in time.
    public let recordOverrunSamples: Int
    /// The card's sound, if the call uses the card.
    public package(set) var sound: SoundReport?
    /// Samples in one of our frames, at 48 kHz.
    public let frameSamples: Int
    /// Samples at 48 kHz by which our packets lag behind the sound that they hold, besides a frame's length.
    public let encoderDelaySamples: Int
    /// Samples at 48 kHz by which the decoder delays what the peer sends.
    public let decoderDelaySamples: Int

    /// A report of nothing, to be written over.
    package static var empty: MediaReport {
        MediaReport(
            peer: .init(), newestArrival: nil, playout: .init(), call: .init(), audio: .init(), sound: nil,
            frameSamples: 0,
            encoderDelaySamples: 0, decoderDelaySamples: 0)
    }

    @_noAllocation @_noLocks
    init(
        peer: PeerStatistics, newestArrival: Instant?, playout: PlayoutStatistics, call: CallCounters,
        audio: CallAudioEndpoint.Counters, sound: SoundReport?, frameSamples: Int, encoderDelaySamples: Int,
        decoderDelaySamples: Int
    ) {
        self.peer = peer
        self.newestArrival = newestArrival
        self.playout = playout
        self.call = call
        playUnderrunSamples = audio.playUnderrun
        recordOverrunSamples = audio.recordOverrun
        self.sound = sound
        self.frameSamples = frameSamples
        self.encoderDelaySamples = encoderDelaySamples
        self.decoderDelaySamples = decoderDelaySamples
    }
}

/// Frames of one call, and what became of them.
public struct CallCounters: BitwiseCopyable, Sendable {
    /// Frames that ran: received, handled, encoded.
    public internal(set) var framesRun = 0
    /// Frames skipped because the machine stalled for long.
    public internal(set) var framesSkipped = 0
    /// Frames not sent because of silence (DTX).
    public internal(set) var framesNotSent = 0
    /// Our telephone keys that were accepted for sending.
    public internal(set) var digitsSent = 0
    /// Our telephone keys that were not: too many waited, or the peer accepts none.
    public internal(set) var digitsDropped = 0
    /// Telephone keys of the peer.
    public internal(set) var digitsReceived = 0
    /// Payloads of the peer that are not what their type says.
    public internal(set) var payloadsMalformed = 0
    /// Frames that the encoder refused.
    public internal(set) var encodeErrors = 0
    /// What a capture of the call lacks because the disk was slow.
    public internal(set) var captureRecordsLost = 0

    init() {}
}
