public import AudioKit
public import Playout
internal import RTP

/// All that a worker needs to know to run a call: fixed before the call starts, so that starting it allocates nothing
/// on the worker.
public struct MediaCallPlan: Sendable {
    /// The network half: addresses, keys, payload types.
    public var peer: PeerPlan
    /// How sound is coded, both ways.
    public var codec = SoundCodec.opus
    /// How our Opus is encoded; its frame duration is also the call's tick.
    public var encoder: EncoderSettings
    /// How the peer's packets are played out.
    public var playout: PlayoutConfiguration
    /// What is sent, and what is recorded.
    public var audio: AudioBehaviour
    /// When our first packet goes out.
    public var start: Start
    /// The one that is called has not answered yet, and is heard already (early media): the call is heard and recorded, and sends
    /// silence, so that nothing of its source is lost, until ``MediaEngine`` says that it is answered.
    public var isEarly = false
    /// What must have come before sound may go without limit to the address in the peer's description.
    public var soundCondition = SoundCondition.none
    /// Path of a file for the jitter buffer's inputs, so that the call can be replayed (``StreamReplay``).
    public var capture: String?

    /// What must have come before sound may go without limit to a peer that neither ICE nor a handshake has reached.
    public enum SoundCondition: Sendable, Equatable, BitwiseCopyable {
        /// Nothing: we have called it, or it was reached.
        case none
        /// A packet from there, or what confirms that it has our answer (``MediaEngine/liftSoundLimit(of:)``).
        case confirmed
        /// The same, and again after each change of the address.
        case heard
    }

    /// When a call's first packet goes out.
    public enum Start: Sendable, Equatable {
        /// As soon as the worker has the call: for the side that knows that the peer is ready.
        case atOnce
        /// With the first authenticated packet of the peer, but no later than this: for the answering side, whose
        /// peer may not have the answer, and with it our key, yet.
        case withFirstPacket(noLaterThan: Duration)
        /// As soon as there are a path and keys: for calls that ICE and DTLS connect. The passive side of DTLS sends the last flight
        /// of the handshake, and waits for the peer's first authenticated packet, at most 0.2 s, because a peer that does not have
        /// that flight yet cannot decrypt, and may play what it gets (RFC 5764 §5.1.2).
        case whenConnected
    }

    /// Makes a plan.
    public init(
        peer: PeerPlan, encoder: EncoderSettings, playout: PlayoutConfiguration, audio: AudioBehaviour, start: Start
    ) {
        self.peer = peer
        self.encoder = encoder
        self.playout = playout
        self.audio = audio
        self.start = start
    }
}

/// What a call sends and records: one source, and optionally a recording.
///
/// A file and a recording begin together, with the peer's first authenticated packet (without protection: its first valid
/// one), or a second after our first frame if none has come, and so does a program; a card, an echo and a tone do not wait.
public struct AudioBehaviour: Sendable, Equatable {
    /// Where the audio we send comes from.
    public enum Source: Sendable, Equatable {
        /// Nothing but silence.
        case silence
        /// What the peer sends.
        case echo
        /// A sine wave. `levelDBFS` is that of its peak, 0 being full scale.
        case tone(frequencyHz: Double, levelDBFS: Double)
        /// A WAV or Ogg Opus file; silence after its end unless it loops.
        case file(path: String, loops: Bool)
        /// The engine's sound card: its microphone is sent, and what the peer sends is played on it.
        case card
        /// A program, through the line of ``CallRings``; silence without one.
        case program

        /// The source in one word, as records of calls have it.
        package var word: String {
            switch self {
            case .silence: "silence"
            case .echo: "echo"
            case .tone: "tone"
            case .file: "file"
            case .card: "card"
            case .program: "program"
            }
        }
    }

    /// Where the audio we send comes from.
    public var source: Source
    /// Path of the file that the call is recorded in.
    public var recording: String?
    /// What is recorded, and how.
    public var recordingFormat: RecordingFormat
    /// A finished file at ``recording`` stays, and the recording gets a number behind its name.
    public var keepsEarlierRecording = false
    /// A folder to make before the recording is opened, if it was removed.
    public var recordingFolder: String?

    /// Makes a behaviour.
    public init(source: Source, recording: String? = nil, recordingFormat: RecordingFormat = RecordingFormat()) {
        self.source = source
        self.recording = recording
        self.recordingFormat = recordingFormat
    }
}

/// Names one call of a media engine; never used again for another.
public struct MediaCallID: Hashable, Sendable, BitwiseCopyable {
    /// Counts from 1, in the lower 48 bits; above them is ``owner``.
    package let rawValue: UInt64

    /// Whose call it is, of those who share the engine; 0 for the only one.
    public var owner: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 48) }

    /// Names the call of this number.
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Names the call of this number and owner.
    package init(number: UInt64, owner: UInt16) {
        rawValue = UInt64(owner) << 48 | (number & 0xFFFF_FFFF_FFFF)
    }
}

/// A call's media could not be started.
public struct MediaStartError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, and what to try.
    public let description: String
    /// The file that cannot be used, if that was the reason.
    public let file: AudioFileError?
    /// Other calls have all that there is; there is room again once one ends.
    public let isFull: Bool

    /// Makes an error.
    package init(_ description: String, file: AudioFileError? = nil, isFull: Bool = false) {
        self.description = description
        self.file = file
        self.isFull = isFull
    }
}

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
