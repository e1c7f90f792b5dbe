internal import Core

/// The choice of the pair for data, and its nomination (RFC 8445 §8).
extension CheckList {
    /// If the selected pair is silent for longer, the other working pairs are checked at once.
    private static let closeLook = Duration.milliseconds(400)
    /// A pair that was silent once must answer for this duration before it is preferred again.
    private static let probation = Duration.seconds(5)
    /// If no other pair works, silence for this long makes failed pairs be tried again.
    private static let revivalDelay = Duration.seconds(2)

    /// Decides on the pair in use. Called after every input, so that due timers are noticed.
    mutating func settle(_ commons: inout AgentCommons, at now: Instant) {
        decidedAt = now
        guard remote != nil else { return }
        if pair(nominated)?.isValid != true { nominated = nil }
        if pair(nominating)?.isValid != true { nominating = nil }
        noteSilence(commons.configuration, at: now)
        let before = selected
        selected = choice(commons.configuration, at: now)
        if selected != before, let index = index(of: selected), pairs[index].unansweredSince == nil {
            planLiveness(index, &commons, at: now)
        }
        if commons.isControlling { nominate(&commons, at: now) }
        reviveIfNothingWorks(commons.configuration, at: now)
    }

    /// The media on the selected pair has stopped: does the pair still answer? The peer may merely have nothing to
    /// send.
    mutating func lookAtSelected(at now: Instant) {
        guard let index = index(of: selected), pairs[index].isValid else { return }
        pairs[index].isQuiet = true
        if pairs[index].unansweredSince == nil { pairs[index].nextSend = now }
    }

    private func answers(_ pair: CandidatePair, _ settings: ICEConfiguration, at now: Instant) -> Bool {
        pair.isValid && pair.silence(at: now) < pair.patience(settings)
    }

    /// The best pair that answers, except pairs that have only just recovered.
    private func best(_ settings: ICEConfiguration, at now: Instant) -> CandidatePair? {
        let answering = pairs.filter { answers($0, settings, at: now) }
        let steady = answering.first { pair in
            !pair.hasFaltered || (pair.steadySince.map { $0.duration(to: now) >= Self.probation } ?? false)
        }
        return steady ?? answering.first
    }

    private func choice(_ settings: ICEConfiguration, at now: Instant) -> CandidatePair.Key? {
        let best = best(settings, at: now)
        if let present = pair(nominated) {
            if answers(present, settings, at: now) { return present.key }
            // Silent for too long. Change only to a pair that has answered since.
            let silentSince = present.unansweredSince ?? now
            let fresh = pairs.first { other in
                answers(other, settings, at: now) && (other.lastAnswer.map { $0 > silentSince } ?? false)
            }
            return fresh?.key ?? pair(selected).flatMap { $0.isValid ? $0.key : nil } ?? present.key
        }
        if let best { return best.key }
        // Nothing answers any more: keep the present pair until its consent expires.
        if let present = pair(selected), present.isValid { return present.key }
        return pairs.first { $0.isValid }?.key
    }

    private mutating func noteSilence(_ settings: ICEConfiguration, at now: Instant) {
        for index in pairs.indices
        where pairs[index].isValid && !answers(pairs[index], settings, at: now) && pairs[index].steadySince != nil {
            pairs[index].steadySince = nil
            pairs[index].hasFaltered = true
        }
        guard let present = pair(selected), present.isValid, let silentSince = present.unansweredSince else { return }
        let closeLook = present.isQuiet ? .zero : Self.closeLook
        guard present.silence(at: now) >= closeLook else { return }
        for index in pairs.indices where pairs[index].isValid && pairs[index].unansweredSince == nil {
            // Once for each silence.
            if let answer = pairs[index].lastAnswer, answer <= silentSince.advanced(by: closeLook) {
                pairs[index].nextSend = now
            }
        }
    }

    /// Nominates the best pair once it is due (RFC 8445 §8.1.1).
    private mutating func nominate(_ commons: inout AgentCommons, at now: Instant) {
        let settings = commons.configuration
        guard let selected, let best = pair(nominated) == nil ? pair(selected) : best(settings, at: now) else { return }
        if let present = pair(nominated) {
            // Settled: changed only for a better pair, or for any that works when the present one does not.
            let isBetter = best.priority > present.priority
            guard best.key != present.key, isBetter || selected != present.key else {
                nominating = nil
                return
            }
        } else if !isTime(toNominate: best, settings, at: now) {
            return
        }
        guard nominating != best.key, let index = index(of: best.key), best.isValid else { return }
        nominating = best.key
        sendCheck(index, &commons, at: now)
    }

    private func isTime(toNominate pair: CandidatePair, _ settings: ICEConfiguration, at now: Instant) -> Bool {
        guard let graceEnd = graceEnd(pair, settings) else { return false }
        if now >= graceEnd { return true }
        let mayImprove = pairs.contains { $0.priority > pair.priority && $0.isOpen }
        if mayImprove { return false }
        return pair.localType == .host && pair.remoteType == .host || (remoteHasEnded && gatheringHasEnded)
    }

    private func graceEnd(_ pair: CandidatePair, _ settings: ICEConfiguration) -> Instant? {
        firstValidAt?.advanced(by: pair.isRelayed ? settings.relayedGrace : settings.directGrace)
    }

    private mutating func reviveIfNothingWorks(_ settings: ICEConfiguration, at now: Instant) {
        let isSilent = pair(selected).map { $0.silence(at: now) >= Self.revivalDelay } ?? true
        guard isSilent, !pairs.contains(where: { $0.isOpen }), !hasExpired(settings, at: now) else { return }
        if let lastRevival, lastRevival.duration(to: now) < Self.revivalDelay { return }
        revive(at: now)
    }

    /// Whether ICE has failed: no pair works or is being tried, and the time for it is up.
    func hasFailed(_ settings: ICEConfiguration, at now: Instant) -> Bool {
        selected == nil && hasExpired(settings, at: now) && !pairs.contains { $0.isOpen }
    }

    private func hasExpired(_ settings: ICEConfiguration, at now: Instant) -> Bool {
        guard pair(selected) == nil, let end = expiry(settings) else { return false }
        return now >= end
    }

    /// When to give up: when the patience timer ends (RFC 8863) or, once a pair has worked, when the peer's consent
    /// expires.
    private func expiry(_ settings: ICEConfiguration) -> Instant? {
        lastAnswerAt?.advanced(by: settings.consentTimeout) ?? startedAt?.advanced(by: settings.patience)
    }

    /// When a decision may be due without a packet.
    func nextDecision(_ settings: ICEConfiguration) -> Instant? {
        var times: [Instant] = []
        if let end = expiry(settings) { times.append(end) }
        if nominated == nil, let best = pair(selected), let end = graceEnd(best, settings) { times.append(end) }
        for pair in pairs where pair.isValid {
            if let since = pair.unansweredSince {
                times.append(since.advanced(by: pair.patience(settings)))
                guard pair.key == selected else { continue }
                times.append(since.advanced(by: Self.closeLook))
                times.append(since.advanced(by: Self.revivalDelay))
            } else if pair.hasFaltered, let since = pair.steadySince {
                times.append(since.advanced(by: Self.probation))
            }
        }
        if let lastRevival { times.append(lastRevival.advanced(by: Self.revivalDelay)) }
        return times.filter { $0 > decidedAt }.min()
    }
}
