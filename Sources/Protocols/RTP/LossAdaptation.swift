public import Core

/// Chooses the encoder's bitrate, its protection and the redundancy from the feedback on the path.
///
/// | Loss | Expected loss of the encoder | Each frame is sent |
/// | --- | --- | --- |
/// | below 1 % | 0 | once |
/// | 1…3 % | 7 % | once |
/// | 3…8 % | 10 % | twice |
/// | 8…15 % | 15 % | twice |
/// | 15…25 % | 25 % | twice |
/// | from 25 % | 30 % | twice |
///
/// Rises take effect at once, falls slowly. Loss alone does not lower the bitrate for long, because radio links lose
/// packets at any bitrate. From 8 % on it is lowered as a trial (``RateTrial``), and restored within one or two seconds
/// if loss does not fall with it. It stays low if loss falls, and is lowered without a trial while a queue grows.
///
/// libopus 1.3 puts forward error correction into packets from 7 % of expected loss at 20 kb/s, from 15 % at 18 kb/s,
/// and never below 17 kb/s. So the bitrate has a floor of 18 kb/s, the encoder's expected loss is at least 20 % at low
/// bitrates, and at a bitrate that is configured below the floor frames are sent twice from 1 % on.
public struct LossAdaptation: Sendable {
    /// Within what it chooses.
    public struct Configuration: Equatable, Sendable {
        /// The least, in bits per second: below, packets carry no forward error correction.
        public var minimumBitrateBps: Int
        /// The most, in bits per second.
        public var maximumBitrateBps: Int
        /// Bitrate of headers, in bits per second.
        public var overheadBps: Int

        /// Makes a configuration; the least is never above the most.
        ///
        /// - Parameter packetNanoseconds: Duration of media in one packet.
        @_noAllocation @_noLocks
        public init(
            minimumBitrateBps: Int = 18_000, maximumBitrateBps: Int = 32_000, packetNanoseconds: Int64 = 20_000_000
        ) {
            self.maximumBitrateBps = max(6_000, min(510_000, maximumBitrateBps))
            self.minimumBitrateBps = max(6_000, min(self.maximumBitrateBps, minimumBitrateBps))
            // IPv4, UDP, RTP with extensions and authentication: 64 bytes.
            overheadBps = Int(64 * 8 * 1_000_000_000 / max(1_000_000, packetNanoseconds))
        }
    }

    /// The bitrate for the encoder, in bits per second.
    public private(set) var bitrateBps: Int
    /// The loss that the sender protects against: 0…1. It rises at once and falls within some ten seconds.
    public private(set) var loss = 0.0

    private var configuration: Configuration
    /// Loss of the last 100 packets or so.
    private var shortLoss = 0.0
    /// Packets since loss began.
    private var episode = Episode()
    private var trial: RateTrial?
    /// Loss that is known not to fall with the bitrate.
    private var constantLoss = 0.0
    /// A bitrate that was too much for the path, and when that showed.
    private var ceiling: (bitrateBps: Int, at: Instant)?
    private var queueBefore: (nanoseconds: Int64, at: Instant)?
    /// How often the bitrate was lowered for the present queue.
    private var queueSteps = 0
    private var raisedAt: Instant?
    /// Loss has kept the bitrate from being raised since then.
    private var heldSince: Instant?
    /// From this time, great loss starts another trial, although it did not fall with the bitrate before.
    private var retryFrom = Instant(nanoseconds: .min)
    private var retryPause = LossAdaptation.shortestRetry
    private var sendsTwice = false
    /// Packets that the newest feedback covers.
    private var feedbackPackets = 0
    /// Sending twice was too much for the path: it is not tried before this time.
    private var redundancyFrom: Instant?
    private var redundancyPause = LossAdaptation.shortestPause
    private var now = Instant(nanoseconds: 0)

    private struct Episode: Equatable, Sendable {
        var packets = 0
        var lost = 0
    }

    /// The least loss that starts a trial: without a sign of a queue, and with one.
    private static var trialLoss: Double { @_noAllocation @_noLocks get { 0.08 } }
    private static var trialLossWithQueue: Double { @_noAllocation @_noLocks get { 0.02 } }
    /// A longer standing delay counts as a queue: 40 ms.
    private static var queueNanoseconds: Int64 { @_noAllocation @_noLocks get { 40_000_000 } }
    /// Growth of the queue within a second that lowers the bitrate without loss: 20 ms.
    private static var queueGrowth: Int64 { @_noAllocation @_noLocks get { 20_000_000 } }
    /// Times that the bitrate is lowered for one queue: the delay that is left comes from a longer path, not from our queue.
    private static var mostQueueSteps: Int { @_noAllocation @_noLocks get { 4 } }
    /// Loss that starts another trial after a while, independent of the last trial's result.
    private static var greatLoss: Double { @_noAllocation @_noLocks get { 0.2 } }
    private static var shortestRetry: Int64 { @_noAllocation @_noLocks get { 10_000_000_000 } }
    private static var longestRetry: Int64 { @_noAllocation @_noLocks get { 160_000_000_000 } }
    /// Loss that lasts this long at a lowered bitrate is not caused by the bitrate: 3 s.
    private static var holdNanoseconds: Int64 { @_noAllocation @_noLocks get { 3_000_000_000 } }
    /// Feedback on at least this number of packets is a report (RFC 3550), which comes every few seconds.
    private static var reportPackets: Int { @_noAllocation @_noLocks get { 100 } }
    private static var second: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }
    private static var shortestPause: Int64 { @_noAllocation @_noLocks get { 5_000_000_000 } }
    private static var longestPause: Int64 { @_noAllocation @_noLocks get { 480_000_000_000 } }
    /// How long a bitrate that was too much is remembered.
    private static var ceilingMemory: Int64 { @_noAllocation @_noLocks get { 60_000_000_000 } }
    /// Below this, the encoder's expected loss is higher, so that it keeps room for forward error correction.
    private static var lowBitrateBps: Int { @_noAllocation @_noLocks get { 24_000 } }
    /// libopus has no forward error correction below.
    private static var leastProtectedBps: Int { @_noAllocation @_noLocks get { 18_000 } }

    /// Begins with the most and no protection.
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        bitrateBps = configuration.maximumBitrateBps
    }

    /// Uses other bounds from now on, and keeps what was learned of the path.
    @_noAllocation @_noLocks
    public mutating func change(to configuration: Configuration) {
        let wasAtMost = bitrateBps >= self.configuration.maximumBitrateBps
        self.configuration = configuration
        bitrateBps = wasAtMost ? configuration.maximumBitrateBps : clamped(bitrateBps)
    }

    /// Loss that the encoder is to expect: 0…30 percent.
    public var expectedLossPercent: Int {
        @_noAllocation @_noLocks get {
            var percent = 0
            if loss >= 0.25 {
                percent = 30
            } else if loss >= 0.15 {
                percent = 25
            } else if loss >= 0.08 {
                percent = 15
            } else if loss >= 0.03 {
                percent = 10
            } else if loss >= 0.01 {
                percent = 7
            }
            return percent > 0 && bitrateBps < Self.lowBitrateBps ? max(percent, 20) : percent
        }
    }

    /// How many earlier frames each packet repeats, where the peer takes that.
    public var redundancyDepth: Int {
        @_noAllocation @_noLocks get {
            if let trial, !trial.keepsTwice { return 0 }
            if let from = redundancyFrom, now.nanoseconds < from.nanoseconds { return 0 }
            return loss >= (bitrateBps < Self.leastProtectedBps ? 0.01 : 0.03) ? 1 : 0
        }
    }

    /// Feedback on our packets came.
    ///
    /// - Parameter sendsTwice: Whether packets have repeated earlier frames lately.
    /// - Returns: Whether ``bitrateBps``, ``expectedLossPercent`` or ``redundancyDepth`` is another than before.
    @_noAllocation @_noLocks @discardableResult
    public mutating func observe(_ seen: PathObservation, sendsTwice: Bool = false, at now: Instant) -> Bool {
        let before = (bitrateBps, expectedLossPercent, redundancyDepth)
        self.now = now
        guard seen.packets > 0 else { return false }
        if sendsTwice != self.sendsTwice {
            // The total sending rate has changed.
            self.sendsTwice = sendsTwice
            episode = Episode()
        }
        learn(seen)
        let isQueue = (seen.queueNanoseconds ?? 0) >= Self.queueNanoseconds
        if case .some = trial {
            watchTrial(seen)
        } else if isWorthTrial(isQueue) {
            beginTrial(bitrateBps, sendsTwice, loss: Double(episode.lost) / Double(episode.packets))
        } else if takeGrowth(seen.queueNanoseconds) {
            lower()
        } else {
            raise(isQueue)
        }
        return before.0 != bitrateBps || before.1 != expectedLossPercent || before.2 != redundancyDepth
    }
}

// MARK: Estimates

extension LossAdaptation {
    @_noAllocation @_noLocks
    private mutating func learn(_ seen: PathObservation) {
        feedbackPackets = seen.packets
        let share = Double(seen.lost) / Double(seen.packets)
        shortLoss += (share - shortLoss) * Self.weight(seen.packets, of: 100)
        loss = max(shortLoss, loss + (shortLoss - loss) * Self.weight(seen.packets, of: 500))
        constantLoss += min(loss - constantLoss, 0) * Self.weight(seen.packets, of: 3_000)
        if shortLoss < 0.005 { episode = Episode() }
        if episode.packets > 0 || seen.lost > 0 {
            episode.packets += seen.packets
            episode.lost += seen.lost
        }
    }

    /// The weight of `count` packets in a mean over some `span` of them.
    @_noAllocation @_noLocks
    private static func weight(_ count: Int, of span: Int) -> Double { Double(count) / Double(count + span) }

    /// Whether the queue has grown by much within a second, or persists although the bitrate was lowered for it;
    /// evaluated with each feedback.
    @_noAllocation @_noLocks
    private mutating func takeGrowth(_ queue: Int64?) -> Bool {
        guard let queue else { return false }
        if queue < Self.queueNanoseconds { queueSteps = 0 }
        guard let past = queueBefore, past.at.nanoseconds(to: now) < 2 * Self.second else {
            queueBefore = (queue, now)
            return false
        }
        guard past.at.nanoseconds(to: now) >= (queueSteps > 0 ? Self.second * 3 / 5 : Self.second) else { return false }
        queueBefore = (queue, now)
        guard queue >= Self.queueNanoseconds, queueSteps < Self.mostQueueSteps else { return false }
        let isGrowing = queue - past.nanoseconds >= Self.queueGrowth
        let stands = queueSteps > 0 && queue * 4 >= past.nanoseconds * 3
        guard isGrowing || stands else { return false }
        queueSteps += 1
        return true
    }
}

// MARK: The bitrate

extension LossAdaptation {
    @_noAllocation @_noLocks
    private func clamped(_ bitrateBps: Int) -> Int {
        max(configuration.minimumBitrateBps, min(configuration.maximumBitrateBps, bitrateBps))
    }

    @_noAllocation @_noLocks
    private func isWorthTrial(_ isQueue: Bool) -> Bool {
        guard episode.packets >= 20, bitrateBps > configuration.minimumBitrateBps || redundancyDepth > 0 else {
            return false
        }
        // Where feedback comes with reports alone, a trial takes very long, so only great loss starts one.
        let least = feedbackPackets >= Self.reportPackets ? Self.greatLoss : Self.trialLoss
        guard shortLoss >= (isQueue ? Self.trialLossWithQueue : least) else { return false }
        if shortLoss >= Self.greatLoss, now.nanoseconds >= retryFrom.nanoseconds { return true }
        return constantLoss == 0 || shortLoss >= constantLoss * 1.6 + 0.04
    }

    /// Sends less, to see whether loss falls.
    ///
    /// - Parameter before: The bitrate to come back to.
    @_noAllocation @_noLocks
    private mutating func beginTrial(_ before: Int, _ sentTwice: Bool, loss: Double) {
        let total = configuration.overheadBps + bitrateBps * (sendsTwice ? 2 : 1)
        let arrives = Double(total) * (1 - loss)
        bitrateBps = clamped(min(bitrateBps * 3 / 5, Int(arrives * 0.85) - configuration.overheadBps))
        // Copies continue if they fit: without them, the jitter buffer would have to wait longer.
        let keepsTwice = sendsTwice && Double(configuration.overheadBps + 2 * bitrateBps) <= arrives * 0.9
        let left = Double(configuration.overheadBps + bitrateBps * (keepsTwice ? 2 : 1))
        trial = RateTrial(
            bitrateBps: before, sendsTwice: sentTwice && !keepsTwice, keepsTwice: keepsTwice, loss: max(loss, 0.03),
            lossIfCongested: max(0.015, 1 - arrives / left), at: now)
    }

    @_noAllocation @_noLocks
    private mutating func watchTrial(_ seen: PathObservation) {
        guard let verdict = trial?.observe(seen), let ended = trial else { return }
        trial = nil
        episode = Episode()
        raisedAt = now
        switch verdict {
        case .constant:
            // Loss that has fallen by much, but not as far as expected, may indicate an even narrower path.
            if ended.loss >= Self.greatLoss, ended.lossSeen < ended.loss * 0.8,
                bitrateBps > configuration.minimumBitrateBps
            {
                beginTrial(ended.bitrateBps, ended.sendsTwice, loss: ended.lossSeen)
                return
            }
            // So what was thought too much was not.
            bitrateBps = clamped(max(ended.bitrateBps, ceiling?.bitrateBps ?? 0))
            ceiling = nil
            constantLoss = max(max(constantLoss, ended.loss), shortLoss)
            retryFrom = now.advanced(byNanoseconds: retryPause)
            retryPause = min(2 * retryPause, Self.longestRetry)
        case .congestion:
            // Earlier losses do not describe the path in its present use.
            shortLoss = ended.lossSeen
            constantLoss /= 2
            retryPause = Self.shortestRetry
            noteCeiling(ended.bitrateBps, ended.sendsTwice)
        }
    }

    @_noAllocation @_noLocks
    private mutating func noteCeiling(_ bitrate: Int, _ sendsTwice: Bool) {
        guard sendsTwice else {
            ceiling = (bitrate, now)
            return
        }
        // Sending each frame once may fit at any bitrate.
        redundancyFrom = now.advanced(byNanoseconds: redundancyPause)
        redundancyPause = min(2 * redundancyPause, Self.longestPause)
    }

    /// A queue grows: sends less at once.
    @_noAllocation @_noLocks
    private mutating func lower() {
        if queueSteps <= 1 { noteCeiling(bitrateBps, sendsTwice) }
        bitrateBps = clamped(bitrateBps * 4 / 5)
        raisedAt = now
    }

    /// Sends more while all is calm: 10 % of the most each second, and near a bitrate that was too much 1 %.
    @_noAllocation @_noLocks
    private mutating func raise(_ isQueue: Bool) {
        guard bitrateBps < configuration.maximumBitrateBps else { return }
        guard !isQueue, shortLoss < constantLoss * 1.3 + 0.02 else {
            hold(isQueue)
            return
        }
        heldSince = nil
        guard let before = raisedAt else {
            raisedAt = now
            return
        }
        let seconds = min(before.nanoseconds(to: now) / Self.second, 2)
        guard seconds > 0 else { return }
        raisedAt = now
        if let known = ceiling, known.at.nanoseconds(to: now) >= Self.ceilingMemory { ceiling = nil }
        // Once it has been passed, it is none.
        if let known = ceiling, bitrateBps > known.bitrateBps { ceiling = nil }
        let isNearCeiling = bitrateBps >= (ceiling?.bitrateBps ?? .max) / 100 * 85
        bitrateBps = clamped(bitrateBps + configuration.maximumBitrateBps * Int(seconds) / (isNearCeiling ? 100 : 10))
    }

    /// Leaves the bitrate as it is. Loss that persists although the bitrate was lowered is not caused by it, and no
    /// longer keeps it low.
    @_noAllocation @_noLocks
    private mutating func hold(_ isQueue: Bool) {
        raisedAt = now
        guard !isQueue, let since = heldSince else {
            heldSince = isQueue ? nil : now
            return
        }
        guard since.nanoseconds(to: now) >= Self.holdNanoseconds else { return }
        heldSince = nil
        ceiling = nil
        constantLoss = max(constantLoss, shortLoss)
    }
}
