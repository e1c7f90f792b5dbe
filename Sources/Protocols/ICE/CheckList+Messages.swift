internal import Core

/// Incoming checks, and answers to outgoing ones.
extension CheckList {
    // MARK: Requests (RFC 8445 §7.3)

    /// Handles and answers a request whose protection with our password was verified.
    mutating func handle(
        request: STUNMessage, _ key: CandidatePair.Key, peerFragment: String, _ locals: [LocalCandidate],
        _ commons: inout AgentCommons, at now: Instant
    ) {
        let secret = STUNKey(shortTerm: local.password)
        guard resolveRoles(request, &commons) else {
            let refusal = STUNBuilder(refusing: request, .roleConflict)
            commons.send(refusal.finish(key: secret, fingerprint: true), from: key.base, to: key.remote)
            return
        }
        var answer = STUNBuilder(.success, answering: request)
        answer.append(.xorMappedAddress, key.remote)
        commons.send(answer.finish(key: secret, fingerprint: true), from: key.base, to: key.remote)
        commons.statistics.requestsGranted += 1

        let priority = request.uint32(.priority) ?? 0
        let nominates = request.contains(.useCandidate)
        if let remote {
            guard remote.usernameFragment == peerFragment else { return }
            peerChecked(key, priority, nominates: nominates, locals, &commons, at: now)
        } else if earlyChecks.count < Self.maximumEarlyChecks {
            earlyChecks.append(
                EarlyCheck(key: key, priority: priority, nominates: nominates, peerFragment: peerFragment))
        }
    }

    /// Detects that both sides have the same role, and decides which one changes it (RFC 8445 §7.3.1.1).
    ///
    /// - Returns: false if the peer must change.
    private mutating func resolveRoles(_ request: STUNMessage, _ commons: inout AgentCommons) -> Bool {
        let rival = request.uint64(commons.isControlling ? .iceControlling : .iceControlled)
        guard let rival else { return true }
        // The greater number controls.
        let weShouldControl = commons.tieBreaker >= rival
        guard weShouldControl != commons.isControlling else { return false }
        commons.isControlling = weShouldControl
        roleChanged(&commons)
        return true
    }

    /// The peer has checked this pair, so we check it, too (RFC 8445 §7.3.1.3, §7.3.1.4).
    mutating func peerChecked(
        _ key: CandidatePair.Key, _ priority: UInt32, nominates: Bool, _ locals: [LocalCandidate],
        _ commons: inout AgentCommons, at now: Instant
    ) {
        if index(of: key) == nil {
            let here = locals.filter { $0.base == key.base }
            if let known = remoteCandidates.first(where: { $0.address == key.remote }) {
                // Learned from a check to another local base.
                for local in here { addPair(local, known, &commons) }
            } else {
                let candidate = Candidate(
                    foundation: "prflx\(remoteCandidates.count)", priority: priority, address: key.remote,
                    type: .peerReflexive)
                add(remote: candidate, here, &commons)
            }
        }
        guard let index = index(of: key) else { return }
        pairs[index].hasBeenChecked = true
        if nominates, !commons.isControlling { pairs[index].peerNominatedAt = now }
        // Data that came through the relay shows that the server has a permission for that address.
        pairs[index].isPermitted = true
        switch pairs[index].state {
        case .frozen, .waiting, .failed:
            pairs[index].state = .waiting
            trigger(key)
        case .inProgress:
            // The path may have opened only now. If our check is still under way, its answer arrives before this time.
            let soon = (pairs[index].probes.last?.sentAt ?? now).advanced(by: .milliseconds(20))
            pairs[index].nextSend = min(pairs[index].nextSend ?? soon, max(now, soon))
        case .succeeded:
            if nominates, !commons.isControlling { peerNominated(index, at: now) }
            promptNomination(index, commons, at: now)
        }
    }

    /// Checks that prompt the peer, on each pair.
    private static let maximumPrompts = 3

    /// Checks the best valid pair again, directly after our answer to the peer's check.
    ///
    /// Some controlling peers (Pion) nominate when a check reaches them on a pair that is valid for them, and otherwise
    /// only at their own ticks, 200 ms apart. All our first checks may have arrived before the pair was valid for them.
    private mutating func promptNomination(_ index: Int, _ commons: AgentCommons, at now: Instant) {
        guard !commons.isControlling, nominated == nil, pairs[index].hasBeenChecked,
            pairs[index].prompts < Self.maximumPrompts, pairs.firstIndex(where: { $0.isValid }) == index
        else { return }
        pairs[index].prompts += 1
        pairs[index].nextSend = now
    }

    private mutating func trigger(_ key: CandidatePair.Key) {
        if !triggered.contains(key) { triggered.append(key) }
    }

    /// Lifetime of a peer's nomination. Within it, only a nomination of a better pair replaces it.
    private static let requestLifetime = Duration.milliseconds(2_500)

    /// The peer nominates a valid pair, or nominated it before it was valid (RFC 8445 §7.3.1.5).
    ///
    /// A peer of RFC 5245 may nominate every pair; then the best one counts. A peer that changes its decision nominates
    /// another pair when the first is silent, or has not been nominated for a while. An old nomination counts only
    /// while there is no other.
    mutating func peerNominated(_ index: Int, at now: Instant) {
        let pair = pairs[index]
        guard let present = self.pair(nominated), present.isValid, present.key != pair.key,
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

    // MARK: Responses (RFC 8445 §7.2.5)

    func isAwaiting(_ id: TransactionID) -> Bool {
        pairs.contains { $0.probes.contains { $0.id == id } }
    }

    /// Takes the answer to a check, if it is one.
    mutating func handle(
        response: STUNMessage, _ key: CandidatePair.Key, _ commons: inout AgentCommons, at now: Instant
    ) {
        guard let remote,
            let index = pairs.firstIndex(where: { $0.probes.contains { $0.id == response.transactionID } }),
            let probe = pairs[index].probes.first(where: { $0.id == response.transactionID })
        else { return }
        // Like a forged answer, a forged refusal must not end a check.
        guard response.integrity(STUNKey(shortTerm: remote.password)) == .valid, response.fingerprint != .invalid else {
            commons.statistics.responsesUnauthenticated += 1
            return
        }
        commons.statistics.checksAnswered += 1
        if response.messageClass == .failure {
            refused(index, probe, response.failure?.code, &commons, at: now)
            return
        }
        guard pairs[index].key == key, response.address(.xorMappedAddress) != nil else {
            // Answered by another address, or without a mandatory attribute: no path for data (RFC 8445 §7.2.5.2.1).
            if !pairs[index].isValid { pairs[index].fail() }
            return
        }
        let hasBeenValid = pairs[index].isValid
        pairs[index].succeed(probe, at: now)
        lastAnswerAt = now
        if firstValidAt == nil { firstValidAt = now }
        if probe.nominates, commons.isControlling, probe.isControlling, nominating == key {
            nominated = key
            nominating = nil
        }
        // A pair that the peer nominated before it was valid.
        if !commons.isControlling, pairs[index].peerNominatedAt != nil, !hasBeenValid { peerNominated(index, at: now) }
        planLiveness(index, &commons, at: now)
        if !hasBeenValid { promptNomination(index, commons, at: now) }
        let foundation = pairs[index].foundation
        for other in pairs.indices where pairs[other].state == .frozen && pairs[other].foundation == foundation {
            pairs[other].state = .waiting
        }
    }

    private mutating func refused(
        _ index: Int, _ probe: CandidatePair.Probe, _ code: STUNErrorCode?, _ commons: inout AgentCommons,
        at now: Instant
    ) {
        pairs[index].probes.removeAll { $0.id == probe.id }
        let key = pairs[index].key
        switch code {
        case .roleConflict:
            if commons.isControlling == probe.isControlling {
                commons.isControlling.toggle()
                // Sorts the pairs: after it `index` names another one.
                roleChanged(&commons)
            }
            guard let current = self.index(of: key), !pairs[current].isValid else { return }
            pairs[current].state = .waiting
            pairs[current].nextSend = nil
            trigger(key)
        default:
            // A valid pair is left to its consent.
            if !pairs[index].isValid { pairs[index].fail() }
        }
    }
}
