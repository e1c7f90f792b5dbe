public import Playout
public import Core
public import AudioKit
internal import Glibc

/// Statistics of a call's media, from its start until now or its end. A plain value, copied on the media thread.
public struct MediaReport: BitwiseCopyable, Sendable {
    /// Packets, loss, round trip: the network half.
    public let peer: PeerStatistics
    /// When the newest packet arrived, media or RTCP, that comes from the peer and not maybe from a stranger; nil if none has.
    public let newestArrival: Instant?
    /// When the newest packet arrived that may be a stranger's: without keys, from a host that neither the description nor signaling names.
    public let newestGuess: Instant?
    /// Delay, concealment, stretching: the playout half.
    public let playout: PlayoutStatistics
    /// Frames, and what became of them.
    public let call: CallCounters
    /// Samples that the file being played could not give in time.
    public let playUnderrunSamples: Int
    /// Samples that the recording could not take in time.
    public let recordOverrunSamples: Int
    /// How loud what was sent has been.
    public let sent: SoundTrace
    /// The same of what was received.
    public let received: SoundTrace
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
            peer: .init(), newestArrival: nil, newestGuess: nil, playout: .init(), call: .init(), audio: .init(),
            sound: nil,
            frameSamples: 0,
            encoderDelaySamples: 0, decoderDelaySamples: 0)
    }

    @_noAllocation @_noLocks
    init(
        peer: PeerStatistics, newestArrival: Instant?, newestGuess: Instant?, playout: PlayoutStatistics,
        call: CallCounters, audio: CallAudioEndpoint.Counters, sound: SoundReport?, frameSamples: Int,
        encoderDelaySamples: Int,
        decoderDelaySamples: Int
    ) {
        self.peer = peer
        self.newestArrival = newestArrival
        self.newestGuess = newestGuess
        self.playout = playout
        self.call = call
        playUnderrunSamples = audio.playUnderrun
        recordOverrunSamples = audio.recordOverrun
        sent = audio.sent
        received = audio.received
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

/// How loud sound has been. One sample of four is looked at.
public struct SoundTrace: BitwiseCopyable, Equatable, Sendable {
    /// Samples at 48 kHz so far.
    public private(set) var samples = 0
    private var lowest = Int(Int16.max)
    private var highest = Int(Int16.min)
    /// Samples at full scale, as far as they were looked at.
    private var fullScale = 0
    /// The current window of 0.5 s: its samples, and the largest magnitude in it and in the one before.
    private var windowSamples = 0
    private var windowPeak = 0
    private var previousPeak = 0

    /// Nothing so far.
    @_noAllocation @_noLocks
    package init() {}

    /// The largest magnitude, 0…32 768.
    public var peak: Int { samples == 0 ? 0 : max(abs(lowest), abs(highest)) }

    /// The largest magnitude in dBFS: 0 is full scale, −100 silence.
    public var peakDBFS: Double { Self.decibels(peak) }

    /// The largest magnitude of the last 0.5 to 1 s in dBFS: 0 is full scale, −100 silence.
    public var recentPeakDBFS: Double { Self.decibels(max(windowPeak, previousPeak)) }

    /// Samples of 1,000 that are at full scale, or within 0.2 dB of it: many are there where sound was clipped.
    public var clippedPermille: Int { samples == 0 ? 0 : fullScale * 4 * 1_000 / samples }

    /// The largest distance of two samples, 0…65 535. A constant offset has none.
    public var spread: Int { samples == 0 ? 0 : highest - lowest }

    /// Takes in further sound.
    @_noAllocation @_noLocks
    package mutating func note(_ frame: Span<Int16>) {
        guard frame.count > 0 else { return }
        var index = 0
        var (low, high) = (Int(frame[0]), Int(frame[0]))
        while index < frame.count {
            low = min(low, Int(frame[index]))
            high = max(high, Int(frame[index]))
            index &+= 4
        }
        lowest = min(lowest, low)
        highest = max(highest, high)
        if high >= Self.loudest || low <= -Self.loudest { countFullScale(frame) }
        advance(frame.count, peak: max(high, -low))
    }

    /// Takes in what another trace has seen.
    @_noAllocation @_noLocks
    mutating func note(_ other: SoundTrace) {
        lowest = min(lowest, other.lowest)
        highest = max(highest, other.highest)
        fullScale &+= other.fullScale
        advance(other.samples, peak: max(other.windowPeak, other.previousPeak))
    }

    /// Loud frames alone are counted.
    @_noAllocation @_noLocks
    private mutating func countFullScale(_ frame: Span<Int16>) {
        var index = 0
        while index < frame.count {
            if abs(Int(frame[index])) >= Self.loudest { fullScale &+= 1 }
            index &+= 4
        }
    }

    /// The largest sample of µ-law is 32,124.
    private static var loudest: Int {
        @_noAllocation @_noLocks get { 32_000 }
    }

    @_noAllocation @_noLocks
    private mutating func advance(_ count: Int, peak: Int) {
        samples &+= count
        windowSamples &+= count
        windowPeak = max(windowPeak, peak)
        guard windowSamples >= Self.windowLength else { return }
        previousPeak = windowPeak
        windowPeak = 0
        windowSamples = 0
    }

    /// 0.5 s.
    private static var windowLength: Int {
        @_noAllocation @_noLocks get { 24_000 }
    }

    private static func decibels(_ magnitude: Int) -> Double {
        magnitude == 0 ? LevelMeter.floorDBFS : 20 * log10(Double(magnitude) / 32_768)
    }
}

/// How a call's sound on the card is doing at the media worker's end. A plain value, copied on the media thread.
public struct SoundReport: BitwiseCopyable, Equatable, Sendable {
    /// Level of the microphone as a meter shows it, after all processing, in dBFS.
    public package(set) var microphoneDBFS = -100.0
    /// Its held peak.
    public package(set) var microphonePeakDBFS = -100.0
    /// Level of the loudspeaker as a meter shows it, in dBFS.
    public package(set) var loudspeakerDBFS = -100.0
    /// Its held peak.
    public package(set) var loudspeakerPeakDBFS = -100.0
    /// The microphone is muted.
    public package(set) var isMuted = false
    /// Volume of the loudspeaker, in dB.
    public package(set) var volumeDB = 0.0
    /// The speakerphone's echo and how much of it is taken out.
    public package(set) var echo: SpeakerphoneStatistics
    /// Samples by which the speakerphone's parts delay the microphone.
    public package(set) var processingSamples = 0
    /// Ticks of 10 ms.
    public package(set) var ticks = 0
    /// Ticks skipped because the machine stalled.
    public package(set) var ticksSkipped = 0
    /// What the microphone gave the call, before all processing, muted or not.
    public package(set) var captured = SoundTrace()
    /// Captured samples that were not there in time, while the call had the card.
    public package(set) var captureUnderrunSamples = 0
    /// Samples to be played that the card's thread did not take in time, while the call had the card.
    public package(set) var playOverrunSamples = 0
    /// The call is on hold at the card.
    public package(set) var isHeld = false
    /// Samples between the call's frames and the card's ticks that were missing, or came too late.
    public package(set) var callSamplesLost = 0

    @_noAllocation @_noLocks
    package init(echo: SpeakerphoneStatistics) { self.echo = echo }
}
