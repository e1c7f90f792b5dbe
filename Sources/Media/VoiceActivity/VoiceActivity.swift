internal import Realtime

/// Finds speech in what a caller sends, while a bot speaks: onset, confirmation and end. Fixed memory, no clock; real-time
/// safe after `init`.
///
/// The sound is analysed at 8 kHz, independent of the length of the frames: the same samples give the same events in frames of 10 and
/// of 60 ms. Levels are measured every 10 ms; every 32 ms a network finds speech. What we send is the reference with
/// which the detector knows its echo.
public struct VoiceActivity: ~Copyable, Sendable {
    /// Samples of a step at 8 kHz.
    private static var hop: Int { @_noAllocation @_noLocks get { 80 } }
    /// A sound is recognized at the end of a step of the network, so it began some hops before.
    private static var lead: Int { @_noAllocation @_noLocks get { 4 } }

    private let rateHz: Int
    private var heard: NarrowbandDecimator
    private var said: NarrowbandDecimator
    private var meter = SoundMeter()
    private var network = SpeechNetwork()
    private var judge = SpeechJudge()
    private var hiss = Hiss()
    private var tracker = SpeechTracker()
    /// What they make of a block.
    private var heardBlock = FloatBuffer(capacity: NarrowbandDecimator.block)
    private var saidBlock = FloatBuffer(capacity: NarrowbandDecimator.block)
    private var samplesOfHop = 0
    /// Samples received so far.
    public private(set) var position = 0
    /// What the latest 10 ms are taken for.
    private(set) var odds = VoiceOdds()

    /// Makes a detector for one call; allocates nothing that outlives it.
    ///
    /// - Parameter rateHz: 8,000, 16,000, 24,000, 32,000, 40,000 or 48,000.
    public init(rateHz: Int) {
        precondition(
            rateHz % 8_000 == 0 && (8_000...48_000).contains(rateHz), "Voice is detected at multiples of 8 kHz up to 48"
        )
        self.rateHz = rateHz
        heard = NarrowbandDecimator(ratio: rateHz / 8_000)
        said = NarrowbandDecimator(ratio: rateHz / 8_000)
    }

    /// Takes a frame of 10 to 60 ms.
    ///
    /// - Parameters:
    ///   - received: What the caller sent.
    ///   - sent: What we sent at that time. Where it is shorter, it counts as silent.
    ///   - gain: The factor with which `sent` has been sent.
    @_noAllocation @_noLocks
    public mutating func take(
        _ received: Span<Int16>, sent: Span<Int16>, gain: Float = 1
    ) -> VoiceEvents {
        var events = VoiceEvents()
        var start = 0
        while start < received.count {
            let end = min(received.count, start &+ NarrowbandDecimator.block)
            _ = said.take(sent, from: start, to: end, into: &saidBlock)
            follow(received, from: start, to: end, gain, &events)
            start = end
        }
        return events
    }

    /// The same with the first `there` samples of what is about to be sent.
    @_noAllocation @_noLocks
    mutating func take(
        _ received: Span<Int16>, sending: borrowing MutableSpan<Int16>, there: Int, gain: Float
    ) -> VoiceEvents {
        var events = VoiceEvents()
        var start = 0
        while start < received.count {
            let end = min(received.count, start &+ NarrowbandDecimator.block)
            _ = said.take(sending, there: there, from: start, to: end, into: &saidBlock)
            follow(received, from: start, to: end, gain, &events)
            start = end
        }
        return events
    }

    /// Takes a block of what is received, and follows it with what is sent at that time, which `saidBlock` has.
    @_noAllocation @_noLocks
    private mutating func follow(
        _ received: Span<Int16>, from start: Int, to end: Int, _ gain: Float, _ events: inout VoiceEvents
    ) {
        var now = position &- heard.phase
        let count = heard.take(received, from: start, to: end, into: &heardBlock)
        for index in 0..<count {
            now &+= heard.ratio
            follow(heardBlock[index], said: saidBlock[index] * gain, at: now, &events)
        }
        position &+= end &- start
    }

    /// Takes a sample of both at 8 kHz; `now` samples were received with it.
    @_noAllocation @_noLocks
    private mutating func follow(_ sample: Float, said: Float, at now: Int, _ events: inout VoiceEvents) {
        meter.add(heard: sample, said: said)
        samplesOfHop &+= 1
        let isHop = samplesOfHop == Self.hop
        if isHop {
            samplesOfHop = 0
            judge.note(meter.measure())
        }
        if network.take(sample + hiss.next()) { judge.judge(network) }
        guard isHop else { return }
        odds = judge.latest
        note(tracker.follow(odds), at: now, &events)
    }

    @_noAllocation @_noLocks
    private func note(_ step: SpeechTracker.Step, at now: Int, _ events: inout VoiceEvents) {
        switch step {
        case .nothing: break
        case .onset(let hop): events.append(event(.onset, at: now, before: hop &- Self.lead))
        case .confirmed(let start): events.append(event(.confirmed, at: now, before: start &- Self.lead))
        case .retracted(let start): events.append(event(.retracted, at: now, before: start &- Self.lead))
        case .ended(let hop): events.append(event(.ended, at: now, before: hop &- Self.lead))
        }
    }

    /// An event at the first sample of `hop`, which is known now.
    @_noAllocation @_noLocks
    private func event(_ kind: VoiceEvent.Kind, at now: Int, before hop: Int) -> VoiceEvent {
        VoiceEvent(kind, at: max(0, hop &* Self.hop &* (rateHz / 8_000)), decidedAt: now)
    }
}

/// Noise at −79 dBFS that is added to what the network hears: no line that it knows is silent to the bit, as one with
/// discontinuous transmission or a muted microphone is.
struct Hiss: BitwiseCopyable, Sendable {
    private var state: UInt32 = 1

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func next() -> Float {
        // Numerical Recipes' linear congruential generator.
        state = state &* 1_664_525 &+ 1_013_904_223
        return Float(Int32(bitPattern: state)) * (6.0 / 32_768 / 2_147_483_648)
    }
}
