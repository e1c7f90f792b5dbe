internal import Core

/// The pair that carries data, and the one on which both sides agree (RFC 8445 §8).
///
/// A nominated pair is kept while it answers. Without one, the best pair that answers is selected.
struct PairSelection: Sendable {
    /// Lifetime of a peer's nomination. Within it, only a nomination of a better pair replaces it.
    private static let requestLifetime = Duration.milliseconds(2_500)

    /// The pair on which data is sent.
    private(set) var selected: CandidatePair.Key?
    /// The pair that both sides have selected.
    private(set) var nominated: CandidatePair.Key?
    /// The pair that we are nominating.
    private(set) var nominating: CandidatePair.Key?
    private var firstValidAt: Instant?

    /// Whether any pair has worked.
    var hasBeenValid: Bool { firstValidAt != nil }

    // MARK: Selecting

    /// Decides on the pair in use.
    mutating func select(among pairs: PairTable, _ settings: ICEConfiguration, at now: Instant) {
        if pairs.pair(nominated)?.isValid != true { nominated = nil }
        if pairs.pair(nominating)?.isValid != true { nominating = nil }
        selected = choice(among: pairs, settings, at: now)
    }

    private func choice(
        among pairs: PairTable, _ settings: ICEConfiguration, at now: Instant
    ) -> CandidatePair.Key? {
        if let present = pairs.pair(nominated) {
            if present.answers(settings, at: now) { return present.key }
            // Silent for too long. Change only to a pair that has answered since.
            let silentSince = present.unansweredSince ?? now
            let fresh = pairs.first { other in
                other.answers(settings, at: now) && (other.lastAnswer.map { $0 > silentSince } ?? false)
            }
            return fresh?.key ?? pairs.pair(selected).flatMap { $0.isValid ? $0.key : nil } ?? present.key
        }
        if let best = best(of: pairs, settings, at: now) { return best.key }
        // Nothing answers any more: keep the present pair until its consent expires.
        if let present = pairs.pair(selected), present.isValid { return present.key }
        return pairs.first { $0.isValid }?.key
    }

    /// The best pair that answers, except pairs that have only just recovered.
    private func best(of pairs: PairTable, _ settings: ICEConfiguration, at now: Instant) -> CandidatePair? {
        let answering = pairs.filter { $0.answers(settings, at: now) }
        return answering.first { $0.isSteady(at: now) } ?? answering.first
    }

    // MARK: Nominating, in the controlling role

    /// Begins to nominate the best pair once that is due (RFC 8445 §8.1.1).
    ///
    /// - Parameter isComplete: Neither side finds further candidates.
    /// - Returns: The pair to send a check on, which nominates it.
    mutating func nominate(
        among pairs: PairTable, isComplete: Bool, _ settings: ICEConfiguration, at now: Instant
    ) -> Int? {
        let best = pairs.pair(nominated) == nil ? pairs.pair(selected) : best(of: pairs, settings, at: now)
        guard let selected, let best else { return nil }
        if let present = pairs.pair(nominated) {
            // Settled: changed only for a better pair, or for any that works when the present one does not.
            let isBetter = best.priority > present.priority
            guard best.key != present.key, isBetter || selected != present.key else {
                nominating = nil
                return nil
            }
        } else if !isTime(toNominate: best, among: pairs, isComplete: isComplete, settings, at: now) {
            return nil
        }
        guard nominating != best.key, best.isValid else { return nil }
        nominating = best.key
        return pairs.index(of: best.key)
    }

    private func isTime(
        toNominate pair: CandidatePair, among pairs: PairTable, isComplete: Bool, _ settings: ICEConfiguration,
        at now: Instant
    ) -> Bool {
        guard let graceEnd = graceEnd(pair, settings) else { return false }
        if now >= graceEnd { return true }
        let mayImprove = pairs.contains { $0.priority > pair.priority && $0.isOpen }
        if mayImprove { return false }
        return pair.localType == .host && pair.remoteType == .host || isComplete
    }

    private func graceEnd(_ pair: CandidatePair, _ settings: ICEConfiguration) -> Instant? {
        firstValidAt?.advanced(by: pair.isRelayed ? settings.relayedGrace : settings.directGrace)
    }

    /// When the wait for a better pair ends.
    func nextDeadline(_ pairs: PairTable, _ settings: ICEConfiguration) -> Instant? {
        guard nominated == nil, let best = pairs.pair(selected) else { return nil }
        return graceEnd(best, settings)
    }

    /// A check was answered, which makes its pair valid.
    ///
    /// - Parameter nominates: The check nominated the pair, in the role that we still have.
    mutating func answered(_ key: CandidatePair.Key, nominates: Bool, at now: Instant) {
        if firstValidAt == nil { firstValidAt = now }
        guard nominates, nominating == key else { return }
        nominated = key
        nominating = nil
    }

    mutating func roleChanged() { nominating = nil }

    // MARK: The peer's nominations, in the controlled role

    /// The peer nominates a valid pair, or nominated it before it was valid (RFC 8445 §7.3.1.5).
    ///
    /// A peer of RFC 5245 may nominate every pair; then the best one counts. A peer that changes its decision nominates
    /// another pair when the first is silent, or has not been nominated for a while. An old nomination counts only
    /// while there is no other.
    mutating func peerNominated(_ pair: CandidatePair, among pairs: PairTable, at now: Instant) {
        guard let present = pairs.pair(nominated), present.isValid, present.key != pair.key,
            let asked = pair.peerNominatedAt, let presentAsked = present.peerNominatedAt
        else {
            nominated = pair.key
            return
        }
        guard asked.duration(to: now) <= Self.requestLifetime else { return }
        let isForgotten = presentAsked.duration(to: now) > Self.requestLifetime
        let isBetter = pair.priority >= present.priority || present.silence(at: now) > .milliseconds(400)
        if isForgotten || isBetter { nominated = pair.key }
    }
}
