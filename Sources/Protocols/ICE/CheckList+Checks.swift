internal import Core

/// Sending checks (RFC 8445 §6.1.4, §7.2.2).
extension CheckList {
    private static let retryInterval = Duration.seconds(30)

    /// Sends the checks that are due: retransmissions first, then triggered checks, then ordinary checks.
    mutating func sendDueChecks(_ commons: inout AgentCommons, at now: Instant) {
        guard remote != nil else { return }
        for index in pairs.indices {
            expire(index, commons.configuration, at: now)
            guard let due = pairs[index].nextSend, due <= now else { continue }
            sendCheck(index, &commons, at: now)
        }
        while let key = triggered.first {
            guard let index = index(of: key), pairs[index].isOpen, pairs[index].isPermitted else {
                triggered.removeFirst()
                continue
            }
            guard triggeredPace.take(at: now) else { break }
            triggered.removeFirst()
            begin(index, &commons, at: now)
        }
        while let index = nextInTurn(), ordinaryPace.take(at: now) { begin(index, &commons, at: now) }
    }

    /// The best pair that waits; else the best frozen one, preferably of a foundation that is not being checked.
    private func nextInTurn() -> Int? {
        if let waiting = pairs.firstIndex(where: { $0.state == .waiting && $0.isPermitted }) { return waiting }
        guard pairs.contains(where: { $0.state == .frozen }) else { return nil }
        let busy = Set(pairs.filter(\.isInProgress).map(\.foundation))
        return pairs.firstIndex { $0.state == .frozen && $0.isPermitted && !busy.contains($0.foundation) }
    }

    private mutating func begin(_ index: Int, _ commons: inout AgentCommons, at now: Instant) {
        let settings = commons.configuration
        // With many pairs at once the repeats, too, must not come faster than the pace (RFC 8445 §14.3).
        let busy = pairs.count { $0.isOpen }
        let interval = max(settings.retransmission, settings.pacing * busy)
        pairs[index].state = .inProgress(interval: interval, end: now.advanced(by: settings.checkTimeout))
        sendCheck(index, &commons, at: now)
    }

    /// Gives up pairs that are unanswered for too long; those that have worked before are retried later.
    private mutating func expire(_ index: Int, _ settings: ICEConfiguration, at now: Instant) {
        switch pairs[index].state {
        case .inProgress(_, let end) where now >= end: pairs[index].fail()
        case .succeeded(let lastAnswer) where now >= lastAnswer.advanced(by: settings.consentTimeout):
            pairs[index].fail()
        case .failed:
            guard let retryAt = pairs[index].retryAt, now >= retryAt else { return }
            pairs[index].retryAt = nil
            pairs[index].state = .waiting
            return
        case .frozen, .waiting, .inProgress, .succeeded: return
        }
        let hasWorked = pairs[index].smoothedRoundTrip != nil
        pairs[index].retryAt = hasWorked ? now.advanced(by: Self.retryInterval) : nil
    }

    /// Sends one check on a pair and plans the next.
    mutating func sendCheck(_ index: Int, _ commons: inout AgentCommons, at now: Instant) {
        guard let remote else { return }
        let pair = pairs[index]
        // Repeated while the nomination is valid, so that a peer that has selected another pair learns of it.
        let nominates = commons.isControlling && (nominating ?? nominated) == pair.key
        let probe = CandidatePair.Probe(
            id: commons.transactionID(), sentAt: now, nominates: nominates, isControlling: commons.isControlling)
        var builder = STUNBuilder(.request, .binding, probe.id)
        builder.append(.username, "\(remote.usernameFragment):\(local.usernameFragment)")
        // As if the peer were to learn a new candidate of this base from it (RFC 8445 §7.1.1).
        builder.append(
            .priority, CandidateType.peerReflexive.preference << 24 | pair.localPriority & 0x00FF_FFFF)
        builder.append(commons.isControlling ? .iceControlling : .iceControlled, commons.tieBreaker)
        if nominates { builder.append(.useCandidate, []) }
        let bytes = builder.finish(key: STUNKey(shortTerm: remote.password), fingerprint: true)
        commons.send(bytes, from: pair.key.base, to: pair.key.remote)
        commons.statistics.checksSent += 1
        pairs[index].note(probe)
        planRepeat(index, commons.configuration, at: now)
    }

    /// Plans when a check is repeated if it stays unanswered.
    private mutating func planRepeat(_ index: Int, _ settings: ICEConfiguration, at now: Instant) {
        switch pairs[index].state {
        case .inProgress(let interval, let end):
            pairs[index].nextSend = now.advanced(by: interval)
            // Never sooner than the first interval, which may be long when there are many pairs.
            let longer = min(interval * 2, max(interval, settings.maximumRetransmission))
            pairs[index].state = .inProgress(interval: longer, end: end)
        case .succeeded:
            let roundTrip = pairs[index].smoothedRoundTrip ?? .zero
            let quick = max(roundTrip * 2, nominating == pairs[index].key ? .milliseconds(50) : .milliseconds(200))
            // Quickly at first, to learn soon whether the path is dead, then as often as consent asks.
            let silence = pairs[index].silence(at: now)
            let wait = silence < .seconds(3) ? quick : max(quick, .seconds(2))
            pairs[index].nextSend = now.advanced(by: wait)
        case .frozen, .waiting, .failed: pairs[index].nextSend = nil
        }
    }

    /// Plans the next check of a pair that has just answered.
    mutating func planLiveness(_ index: Int, _ commons: inout AgentCommons, at now: Instant) {
        let settings = commons.configuration
        let key = pairs[index].key
        if key == nominating {
            // That was an answer to an earlier check; the one that nominates is repeated until it is answered, too.
            pairs[index].nextSend = pairs[index].nextSend ?? now
        } else if key == selected {
            let hasBackup = pairs.contains { $0.isValid && $0.key != key && $0.unansweredSince == nil }
            let interval = hasBackup ? settings.livenessInterval : settings.consentInterval
            pairs[index].nextSend = now.advanced(by: commons.varied(interval))
        } else {
            // The best few are kept alive, to change to. Any other is forgotten when its consent has run out.
            let rank = pairs[..<index].count { $0.isValid && $0.key != selected }
            let isKept = rank < 4
            pairs[index].nextSend = isKept ? now.advanced(by: commons.varied(settings.consentInterval)) : nil
        }
    }

    /// Retries failed pairs: the network may have changed, or the peer's packets have opened a path.
    mutating func revive(at now: Instant) {
        lastRevival = now
        for index in pairs.indices where pairs[index].state == .failed { pairs[index].state = .waiting }
    }

    /// When `sendDueChecks` has something to do.
    func nextSend(_ settings: ICEConfiguration) -> Instant? {
        guard remote != nil else { return nil }
        var next: Instant?
        func consider(_ time: Instant) { next = min(next ?? time, time) }
        for pair in pairs {
            if let due = pair.nextSend { consider(due) }
            switch pair.state {
            case .inProgress(_, let end): consider(end)
            case .succeeded(let lastAnswer): consider(lastAnswer.advanced(by: settings.consentTimeout))
            case .failed:
                if let retryAt = pair.retryAt { consider(retryAt) }
            case .frozen, .waiting: break
            }
        }
        if !triggered.isEmpty { consider(triggeredPace.nextAt) }
        if nextInTurn() != nil { consider(ordinaryPace.nextAt) }
        return next
    }
}
