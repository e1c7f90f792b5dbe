/// The inputs of a playout decision. Lengths in samples at 48 kHz.
public struct PlayoutStatus: Equatable, Sendable {
    /// What comes next in the stream, after the samples that are decoded.
    public enum Next: Equatable, Sendable {
        /// No packet waits: lost, late, or the sender is silent.
        case missing
        /// The packet that follows waits.
        case ready
        /// A later packet waits; `samples` before it are not there. Its FEC can restore the last `restorable` of them.
        case afterLoss(samples: Int, restorable: Int)
        /// The packet that follows waits, and the sender was silent for `samples` before it.
        case afterSilence(samples: Int)
    }

    /// Samples that this pull hands out.
    public var frameSamples = 960
    /// Samples decoded and not yet handed out.
    public var waitingSamples = 0
    /// What comes next.
    public var next = Next.missing
    /// Sound in the packets that wait, from the next one up to the first gap.
    public var readySamples = 0
    /// Of that, the next packet's.
    public var nextSamples = 0
    /// Delay above the target: positive is too much. Before a packet that follows silence it says how it would be
    /// if that packet were played now.
    public var excessSamples = 0
    /// Delay above the maximum that is allowed.
    public var overflowSamples = 0
    /// The path may have become longer just now: no delay is too much until that is known.
    public var mayHaveStepped = false
    /// Concealment played while waiting for packets that may still come, and not yet made good.
    public var heldSamples = 0
    /// The sender stopped sending because it is silent (DTX).
    public var isDiscontinuous = false
    /// The waiting sound is so quiet that stretching it is hardly audible: a pause, or the closure of a consonant.
    public var isQuiet = false
    /// The waiting sound is silence, without even the faint ending of a word: stretching it is inaudible.
    public var isSilent = false
    /// Samples handed out since the delay was last on target.
    public var samplesOffTarget = 0
    /// Samples handed out since the last stretch.
    public var samplesSinceStretch = 0
    /// Stretching has been tried in this pull.
    public var hasStretched = false

    /// A status in which there is nothing to do.
    @_noAllocation @_noLocks
    public init() {}
}

/// What to do next in a pull. Lengths in samples at 48 kHz.
public enum PlayoutDecision: Equatable, Sendable {
    /// Decode the next packet.
    case play
    /// Conceal, and keep the position: the packet may still arrive.
    case conceal(samples: Int)
    /// Make up sound for what is lost, and move past it.
    case coverLoss(samples: Int)
    /// Restore what is lost from the next packet's FEC, and move past it.
    case recoverWithFEC(samples: Int)
    /// Throw away the next packet: it waited too long.
    case discard
    /// Skip the next samples: concealment has already replaced them.
    case skip(samples: Int)
    /// Move past missing sound that need not be concealed: the sender's silence, or a gap too long to conceal.
    case jump(samples: Int)
    /// Fill the sender's silence with comfort noise.
    case comfortNoise(samples: Int)
    /// Remove at most `atMost` samples by time-stretching.
    case accelerate(atMost: Int)
    /// Insert `about` samples by time-stretching, at least `atLeast` or none.
    case decelerate(atLeast: Int, about: Int)
    /// Hand out the frame.
    case handOut
}

/// Decides, without doing anything: called again after each decision is carried out, until it says to hand out.
public enum PlayoutPolicy {
    /// libopus's speech half conceals in steps of 10 ms.
    public static var concealmentStep: Int { @_noAllocation @_noLocks get { 480 } }
    /// The longest piece that one stretch takes out or puts in: 15 ms, a pitch of 67 Hz.
    public static var longestStretch: Int { @_noAllocation @_noLocks get { 720 } }
    /// The shortest: 2.5 ms, a pitch of 400 Hz.
    public static var shortestStretch: Int { @_noAllocation @_noLocks get { 120 } }
    /// The most that is passed over because it came late: 60 ms. Of a longer stall everything is played.
    public static var longestSkip: Int { @_noAllocation @_noLocks get { 2_880 } }
    /// Excess that is worked off in speech too, at once: 100 ms.
    public static var muchExcess: Int { @_noAllocation @_noLocks get { 4_800 } }
    /// How long a smaller excess waits for silence before it is removed in a quiet moment, such as the closure of a
    /// consonant, where a cut may be audible: 1 s.
    public static var quietPatience: Int { @_noAllocation @_noLocks get { 48_000 } }
    /// How long it waits before it is worked off in speech: 1.5 s.
    public static var patience: Int { @_noAllocation @_noLocks get { 72_000 } }
    /// Samples a stretch cross-fades over.
    public static var overlap: Int { @_noAllocation @_noLocks get { 240 } }

    /// The next step towards filling the frame.
    @_noAllocation @_noLocks
    public static func decide(_ status: PlayoutStatus) -> PlayoutDecision {
        if status.waitingSamples >= status.frameSamples { return stretchOrHandOut(status) }
        switch status.next {
        case .ready:
            // A packet that waits alone has only just come, however long it is: only behind others can delay be made good.
            let left = status.readySamples &- status.nextSamples
            if status.overflowSamples > 0, left >= status.frameSamples, !status.mayHaveStepped { return .discard }
            let skipped = min(status.heldSamples, status.excessSamples)
            if skipped >= shortestStretch, status.heldSamples <= longestSkip { return .skip(samples: skipped) }
            return .play
        case .missing: return fillWithoutPacket(status)
        case .afterLoss(let samples, let restorable): return bridgeLoss(status, samples, restorable)
        case .afterSilence(let samples):
            // Silence is where delay changes for free: begin the sound exactly when it is due.
            if status.excessSamples >= -shortestStretch { return .jump(samples: samples) }
            return .comfortNoise(samples: filler(status))
        }
    }

    @_noAllocation @_noLocks
    private static func fillWithoutPacket(_ status: PlayoutStatus) -> PlayoutDecision {
        if status.isDiscontinuous { return .comfortNoise(samples: filler(status)) }
        let missing = status.frameSamples &- status.waitingSamples
        if status.waitingSamples >= overlap, missing <= longestStretch, !status.hasStretched {
            return .decelerate(atLeast: missing, about: missing)
        }
        return .conceal(samples: filler(status))
    }

    @_noAllocation @_noLocks
    private static func bridgeLoss(_ status: PlayoutStatus, _ samples: Int, _ restorable: Int) -> PlayoutDecision {
        // Concealment played while waiting replaces the packet that turned out lost, unless more delay is wanted
        // anyway.
        let covered = min(min(status.heldSamples, samples), max(status.excessSamples, 0))
        if covered > longestSkip { return .jump(samples: covered) }
        if covered > 0 { return .skip(samples: covered) }
        // What waits behind the loss is too late already, by more than any path is waited for.
        if status.overflowSamples > 0, !status.mayHaveStepped {
            return .jump(samples: min(samples, status.overflowSamples))
        }
        if samples <= restorable { return .recoverWithFEC(samples: samples) }
        return .coverLoss(samples: min(samples &- restorable, max(filler(status), concealmentStep)))
    }

    @_noAllocation @_noLocks
    private static func stretchOrHandOut(_ status: PlayoutStatus) -> PlayoutDecision {
        guard !status.hasStretched else { return .handOut }
        let excess = status.excessSamples
        if excess >= shortestStretch, !status.mayHaveStepped, status.samplesSinceStretch >= pause(status) {
            // A good cut needs more sound to choose from: decode ahead if there is any.
            let ample = min(excess, longestStretch) &+ overlap
            if status.waitingSamples < ample, status.readySamples > 0 { return .play }
            let spare = status.waitingSamples &+ status.readySamples &- status.frameSamples
            let most = min(min(excess, spare), min(status.waitingSamples &- overlap, longestStretch))
            if most >= shortestStretch { return .accelerate(atMost: most) }
        }
        if excess < 0, status.waitingSamples >= overlap, status.samplesSinceStretch >= pause(status) {
            return .decelerate(atLeast: 0, about: min(-excess, longestStretch))
        }
        return .handOut
    }

    /// Time after the last stretch without another one. Silence comes often, and a stretch in it is inaudible. Quiet
    /// moments are second best; speech is stretched only if neither has come, or if the delay is far too long.
    @_noAllocation @_noLocks
    private static func pause(_ status: PlayoutStatus) -> Int {
        if status.isSilent { return 0 }
        // Too little delay is more urgent than too much: the next packet may come too late.
        if status.isQuiet, status.excessSamples < 0 || status.samplesOffTarget > quietPatience { return 0 }
        if status.excessSamples > muchExcess { return 960 }
        if status.excessSamples < 0 { return status.samplesOffTarget > patience / 4 ? 4_800 : .max }
        return status.samplesOffTarget > patience ? 9_600 : .max
    }

    /// Samples that the frame still lacks.
    @_noAllocation @_noLocks
    private static func filler(_ status: PlayoutStatus) -> Int {
        max(status.frameSamples &- status.waitingSamples, 1)
    }
}
