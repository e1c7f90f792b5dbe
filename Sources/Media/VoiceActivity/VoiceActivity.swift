/// Finds speech in what a caller sends, while a bot speaks: onset, confirmation and end. Fixed memory, no clock; real-time
/// safe after `init`.
///
/// The sound is analysed at 8 kHz whatever the length of the frames: the same samples give the same events in frames of 10 and of
/// 60 ms. Levels are measured every 10 ms; every 32 ms a network tells speech from other sound. What we send is the reference with
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
    private var samplesOfHop = 0
    private var hops = 0
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
        for index in 0..<received.count {
            take(received[index], sent: index < sent.count ? sent[index] : 0, gain: gain, into: &events)
        }
        return events
    }

    /// Takes a sample of both.
    @_noAllocation @_noLocks
    mutating func take(_ received: Int16, sent: Int16, gain: Float, into events: inout VoiceEvents) {
        position &+= 1
        let saidSample = said.take(sent)
        guard let sample = heard.take(received), let saidSample else { return }
        meter.add(heard: sample, said: saidSample * gain)
        samplesOfHop &+= 1
        let isHop = samplesOfHop == Self.hop
        if isHop {
            samplesOfHop = 0
            judge.note(meter.measure())
        }
        if network.take(sample + hiss.next()) { judge.judge(network) }
        guard isHop else { return }
        odds = judge.latest
        note(tracker.follow(odds), &events)
    }

    @_noAllocation @_noLocks
    private func note(_ step: SpeechTracker.Step, _ events: inout VoiceEvents) {
        switch step {
        case .nothing: break
        case .onset(let hop): events.append(event(.onset, before: hop &- Self.lead))
        case .confirmed(let start): events.append(event(.confirmed, before: start &- Self.lead))
        case .retracted(let start): events.append(event(.retracted, before: start &- Self.lead))
        case .ended(let hop): events.append(event(.ended, before: hop &- Self.lead))
        }
    }

    /// An event at the first sample of `hop`.
    @_noAllocation @_noLocks
    private func event(_ kind: VoiceEvent.Kind, before hop: Int) -> VoiceEvent {
        VoiceEvent(kind, at: max(0, hop &* Self.hop &* (rateHz / 8_000)), decidedAt: position)
    }
}
