internal import AudioKit
internal import AudioPort
internal import Core
internal import RTP
internal import Realtime

/// Our sound in a call: the encoder, and what the packets of its stream share: payload type, media time, talk spurts (RFC 3551 §4.1) and
/// frames that are sent twice (RFC 2198).
struct SentSound: ~Copyable {
    private var encoder: SoundEncoder
    private var payloadType: UInt8
    /// Ticks of RTP timestamps in a frame: at 48 kHz for Opus (RFC 7587 §4.1), at 8 kHz for G.711.
    private var frameTicks: Int
    /// Media time of the next frame, in ticks.
    private(set) var timestamp: UInt32
    /// The next packet begins a talk spurt.
    private var marker = true
    private var redundancy = RedundancyWriter(depth: 0)
    private var leastExpectedLossPercent: Int
    private var stream = Stream.own
    /// The last frame of a stream that others encode.
    private var previous = SampleBuffer(capacity: SentSound.sharedSamples)

    /// Whose frames are sent. A peer decodes one stream, so between two of them comes a frame that refers to none before it.
    private enum Stream: BitwiseCopyable {
        /// Those of this call's encoder.
        case own
        /// Those that a mixer has encoded for several calls.
        case shared
        /// Those of a mixer until this call was to encode in another way.
        case left
        /// Those of a mixer until sound was interrupted.
        case interrupted
    }

    init(_ encoder: consuming SoundEncoder, _ plan: MediaCallPlan, firstTimestamp: UInt32) {
        self.encoder = encoder
        payloadType = plan.peer.sendPayloadType
        frameTicks = plan.encoder.frameDuration.samples / plan.codec.samplesPerTick
        timestamp = firstTimestamp
        leastExpectedLossPercent = plan.encoder.expectedLossPercent
    }

    // MARK: Frames that a mixer encodes for several calls

    /// Samples of such a frame: 20 ms.
    private static var sharedSamples: Int { @_noAllocation @_noLocks get { MixPort.frameSamples } }

    /// How the call sends.
    var sharing: FrameSharing {
        @_noAllocation @_noLocks get {
            guard let settings = encoder.settings, settings.channels == 1,
                settings.bitrateBps <= SharedFrame.highestBitrateBps,
                settings.frameDuration.samples == Self.sharedSamples
            else { return .alone }
            return switch stream {
            case .shared: .follows(settings)
            case .own, .left, .interrupted: .ready(settings)
            }
        }
    }

    @_noAllocation @_noLocks
    private func canSend(_ frame: SharedFrame) -> Bool {
        guard frame.settings == encoder.settings else { return false }
        return switch stream {
        case .shared: true
        case .own, .left, .interrupted: frame.isIndependent
        }
    }

    /// This call is to encode in another way than the frames that it has sent.
    @_noAllocation @_noLocks
    private mutating func leaveSharedStream() { if case .shared = stream { stream = .left } }

    /// Has this call's encoder continue where the frames of a mixer end.
    @_noAllocation @_noLocks
    private mutating func returnToOwnStream(through frame: inout EncodedFrame) {
        switch stream {
        case .own: return
        case .shared, .left: restart(&encoder, behind: previous, Self.sharedSamples, through: &frame)
        case .interrupted: restart(&encoder, behind: previous, 0, through: &frame)
        }
        stream = .own
    }

    // MARK: Frames

    /// What became of a frame.
    enum Written: BitwiseCopyable {
        /// A packet of this length.
        case packet(bytes: Int)
        /// Nothing need be sent in a pause.
        case pause
        case notEncoded
        /// The network half has not written it, and has counted why.
        case notWritten
    }

    /// Encodes a frame and writes its packet.
    ///
    /// - Parameters:
    ///   - shared: The same frame as a mixer has encoded it for several calls.
    ///   - rate: Sampling rate of the source, in Hz: the sound has nothing above its half.
    ///   - frame: Working memory.
    @_noAllocation @_noLocks
    mutating func write(
        _ samples: borrowing SampleBuffer, count: Int, shared: SharedFrame?, soundRate rate: Int,
        through frame: inout EncodedFrame, to peer: inout PeerSession, at now: Instant,
        into packet: inout MutableRawSpan
    ) -> Written {
        let room = peer.mediaHeaderBytes..<(packet.byteCount - PeerSession.maximumProtectionBytes)
        let repeats = repeatsFrames
        if encoder.expect(soundRate: rate) { leaveSharedStream() }
        let encoded: Int
        if let shared, canSend(shared) {
            stream = .shared
            keep(samples, count, in: &previous)
            encoded = repeats ? copy(shared, into: &frame) : copy(shared, into: &packet, room)
        } else {
            returnToOwnStream(through: &frame)
            encoded =
                repeats
                ? encode(samples, count, with: &encoder, into: &frame)
                : encode(samples, count, with: &encoder, into: &packet, room)
        }
        guard encoded > 0 else { return .notEncoded }
        // One or two bytes that describe no noise: DTX (RFC 6716 §2.1.9). The first of a pause is sent, so that the
        // peer does not mistake the pause for loss; the others are suppressed. Media time continues.
        let isPause = encoded <= 2 && !encoder.isNoise
        if isPause, marker { return .pause }
        let payloadBytes =
            repeats
            ? redundancy.write(
                frame, count: encoded, payloadType: payloadType, timestamp: timestamp, into: &packet, room)
            : encoded
        let length = peer.writeMedia(
            payloadBytes: payloadBytes, timestamp: timestamp, marker: marker && !encoder.isNoise, isRedundant: repeats,
            isNoise: encoder.isNoise, level: peer.sendsAudioLevel ? level(samples, count) : .silence, at: now,
            into: &packet)
        guard length > 0 else { return .notWritten }
        marker = encoder.isNoise || isPause
        return .packet(bytes: length)
    }

    /// Media time continues by a frame, whether or not it was sent.
    @_noAllocation @_noLocks
    mutating func endFrame() { timestamp &+= UInt32(truncatingIfNeeded: frameTicks) }

    /// Media time continues by frames that are not sent.
    @_noAllocation @_noLocks
    mutating func skip(frames: Int64) {
        timestamp &+= UInt32(truncatingIfNeeded: frames * Int64(frameTicks))
        interrupt()
    }

    /// Sound is not sent for now: what follows is a new talk spurt.
    @_noAllocation @_noLocks
    mutating func interrupt() {
        marker = true
        switch stream {
        case .own: return
        case .shared, .left, .interrupted: stream = .interrupted
        }
    }

    /// An event was sent in place of sound: what follows is a new talk spurt, and repeats nothing, because copies are of the packets
    /// directly before theirs.
    @_noAllocation @_noLocks
    mutating func noteEvent() {
        interrupt()
        redundancy.reset()
    }

    // MARK: How it is sent

    /// Whether packets repeat earlier frames.
    var repeatsFrames: Bool {
        @_noAllocation @_noLocks get { redundancy.depth > 0 }
    }

    /// Repeats this many earlier frames in each packet.
    @_noAllocation @_noLocks
    mutating func repeatFrames(_ count: Int) {
        redundancy.depth = count
        // The stored frame will not be the previous one when redundancy begins again.
        if count == 0 { redundancy.reset() }
    }

    /// Encodes as the control says from the next frame on.
    @_noAllocation @_noLocks
    mutating func follow(_ control: RateController) {
        let before = encoder.settings
        encoder.set(bitrateBps: control.bitrateBps)
        encoder.set(expectedLossPercent: max(leastExpectedLossPercent, control.expectedLossPercent))
        if before != encoder.settings { leaveSharedStream() }
    }

    /// Sends in other formats from the next frame on, and leaves the encoder that is not needed any more in the change.
    @_noAllocation @_noLocks
    mutating func change(by change: inout MediaCallChange) {
        // A copy must be of the codec, and under the number, of the packet that carries it.
        if change.sendPayloadType != payloadType || !change.encoder.isEmpty { redundancy.reset() }
        payloadType = change.sendPayloadType
        frameTicks = change.settings.frameDuration.samples / change.samplesPerTick
        if !change.encoder.isEmpty {
            exchange(&encoder, &change.encoder)
            stream = .own
        }
        encoder.set(change.settings)
        leaveSharedStream()
        leastExpectedLossPercent = change.settings.expectedLossPercent
        marker = true
    }

    /// Lets the encoder spend this effort at most, 0…10.
    @_noAllocation @_noLocks
    mutating func limit(complexity: Int) { encoder.limit(complexity: complexity) }

    /// What the encoder is set to; nil if its effort cannot be changed.
    var complexity: Int? {
        @_noAllocation @_noLocks get { encoder.complexity }
    }

    /// Samples at 48 kHz by which a packet lags behind the sound that it holds, besides its length.
    var encoderDelaySamples: Int {
        @_noAllocation @_noLocks get { encoder.delaySamples }
    }

    /// Samples at 48 kHz by which a decoder of this codec delays sound.
    var decoderDelaySamples: Int {
        @_noAllocation @_noLocks get { encoder.decoderDelaySamples }
    }
}

// What follows hands out views of packets and frames. Unoptimised code counts the end of such a view as a deallocation,
// though there is nothing to free, so they are not analysed; what they call is.

@_semantics("no_performance_analysis") @inline(__always)
private func encode(
    _ samples: borrowing SampleBuffer, _ count: Int, with encoder: inout SoundEncoder, into slot: inout MutableRawSpan,
    _ room: Range<Int>
) -> Int {
    var bytes = slot._mutatingExtracting(room)
    var payload = unsafe bytes._unsafeMutableView(as: UInt8.self)
    return encoder.encode(samples.samples(count), into: &payload)
}

@_semantics("no_performance_analysis") @inline(__always)
private func encode(
    _ samples: borrowing SampleBuffer, _ count: Int, with encoder: inout SoundEncoder, into frame: inout EncodedFrame
) -> Int {
    var bytes = frame.mutableSpan
    return encoder.encode(samples.samples(count), into: &bytes)
}

@_semantics("no_performance_analysis") @inline(__always)
private func restart(
    _ encoder: inout SoundEncoder, behind previous: borrowing SampleBuffer, _ count: Int,
    through frame: inout EncodedFrame
) {
    var bytes = frame.mutableSpan
    encoder.restart(behind: previous.samples(count), through: &bytes)
}

@_semantics("no_performance_analysis") @inline(__always)
private func keep(_ samples: borrowing SampleBuffer, _ count: Int, in buffer: inout SampleBuffer) {
    let frame = samples.samples(count)
    var room = buffer.mutableSamples(min(count, buffer.capacity))
    for index in 0..<room.count { room[index] = frame[index] }
}

@_semantics("no_performance_analysis") @inline(__always)
private func copy(_ shared: SharedFrame, into frame: inout EncodedFrame) -> Int {
    for index in 0..<shared.count { frame[index] = shared.bytes[index] }
    return shared.count
}

@_semantics("no_performance_analysis") @inline(__always)
private func copy(_ shared: SharedFrame, into slot: inout MutableRawSpan, _ room: Range<Int>) -> Int {
    guard shared.count <= room.count else { return -1 }
    var bytes = slot._mutatingExtracting(room)
    var payload = unsafe bytes._unsafeMutableView(as: UInt8.self)
    for index in 0..<shared.count { payload[index] = shared.bytes[index] }
    return shared.count
}

@_semantics("no_performance_analysis") @inline(__always)
private func level(_ frame: borrowing SampleBuffer, _ count: Int) -> AudioLevel { AudioLevel(of: frame.samples(count)) }

extension RedundancyWriter {
    /// Writes a frame, and those to be repeated, as a payload into `room` of `packet`.
    @_semantics("no_performance_analysis") @inline(__always)
    fileprivate mutating func write(
        _ frame: borrowing EncodedFrame, count: Int, payloadType: UInt8, timestamp: UInt32,
        into packet: inout MutableRawSpan, _ room: Range<Int>
    ) -> Int {
        var payload = packet._mutatingExtracting(room)
        return unsafe write(
            frame.span.bytes.extracting(0..<count), payloadType: payloadType, timestamp: timestamp, into: &payload)
    }
}

extension AudioLevel {
    /// The level of a packet without sound.
    static var silence: AudioLevel { @_noAllocation @_noLocks get { AudioLevel(attenuation: 127, isVoice: false) } }

    /// Measures a frame. Anything louder than a quiet room counts as a voice: nothing here distinguishes voices from
    /// noise.
    @_noAllocation @_noLocks
    init(of samples: borrowing Span<Int16>) {
        var sum: Int64 = 0
        for index in 0..<samples.count {
            let value = Int64(samples[index])
            sum &+= value &* value
        }
        self.init(meanSquare: Double(sum) / Double(max(1, samples.count)), isVoice: false)
        isVoice = attenuation < 60
    }
}
