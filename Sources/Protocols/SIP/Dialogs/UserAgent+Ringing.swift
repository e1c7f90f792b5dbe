internal import Core

/// Calls of peers, until they are accepted.
extension UserAgent {
    mutating func receiveInvite(
        _ request: SIPRequest, _ transaction: TransactionID, _ flow: SIPFlow, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        let tag = messages.tag()
        func refusal(_ status: Int) -> SIPResponse { SIPResponse(status, to: request, toTag: tag) }
        // The same request came by two routes (RFC 3261 §8.2.2.2).
        if calls.contains(where: { $0.isMerged(with: request) }) {
            return respond(transaction, refusal(482), now, &outbox)
        }
        if configuration.passesOn, let status = passingRefusal(of: request) {
            return respond(transaction, refusal(status), now, &outbox)
        }
        let replacing: SIPCall?
        switch replaced(by: request, flow, now) {
        case .refused(let status): return respond(transaction, refusal(status), now, &outbox)
        case .none: replacing = nil
        case .call(let call): replacing = call
        }
        guard !calls.isFull else { return respond(transaction, refusal(486), now, &outbox) }
        if let asked = request.headers.sessionExpires, asked.seconds < configuration.shortestSessionSeconds,
            request.headers.has(option: "timer", in: "Supported")
        {
            var response = refusal(422)
            response.headers.append("Min-SE", String(configuration.shortestSessionSeconds))
            return respond(transaction, response, now, &outbox)
        }
        let first = UInt32(truncatingIfNeeded: messages.number() & 0xFFFF)
        guard let dialog = Dialog(request: request, localTag: tag, firstSequence: first, flow: flow),
            let from = request.headers.from
        else { return respond(transaction, refusal(400), now, &outbox) }
        let id = calls.newIncoming()
        calls.bind(dialog.callID, localTag: tag, to: id)
        keep(
            id,
            .ringing(
                Call.Ringing(
                    request: request, transaction: transaction, dialog: dialog, replacing: replacing,
                    ringLimit: now.advanced(by: configuration.ringLimit), nextReliable: first + 1)))
        let offer = SIPMessage.request(request).sessionDescription
        tell(id, .incoming(from: from, offer: offer, replacing: replacing), now, &outbox)
    }

    /// The status that refuses to relay an INVITE (RFC 3261 §16.3); `nil` if it may be relayed.
    private func passingRefusal(of request: SIPRequest) -> Int? {
        if request.headers["Max-Forwards"].flatMap({ Int($0) }) == 0 { return 483 }
        // Our own INVITE has come back.
        if calls.contains(where: { $0.isPlaced(with: request.headers.callID) }) { return 482 }
        return request.headers.count("Replaces") > 0 ? 603 : nil
    }

    private enum Replacement {
        case none
        case call(SIPCall)
        case refused(Int)
    }

    /// The call that an INVITE replaces (RFC 3891 §3).
    private mutating func replaced(by request: SIPRequest, _ flow: SIPFlow, _ now: Instant) -> Replacement {
        guard request.headers.count("Replaces") > 0 else { return .none }
        // Two of them, and one beside a Join, contradict each other (RFC 3891 §3, RFC 3911 §4).
        guard let replaces = request.headers.replaces, request.headers.count("Join") == 0 else { return .refused(400) }
        guard let id = calls.call(replaces.callID, localTag: replaces.toTag), let call = calls[id] else {
            return .refused(481)
        }
        // A host that has read the dialog's tags is not thereby its peer (RFC 3891 §3, §8).
        guard messages.isPeer(flow, of: call, with: replaces.fromTag, .invite, at: now) else { return .refused(481) }
        switch call.stage {
        case .talking(let talking):
            guard talking.dialog.isRemote(tag: replaces.fromTag) else { return .refused(481) }
            return replaces.isEarlyOnly ? .refused(486) : .call(id)
        case .calling(let calling):
            return calling.end == nil && calling.forks[replaces.fromTag] != nil ? .call(id) : .refused(481)
        // Only the party that initiated an early dialog may have it replaced (RFC 3891 §3), and here the peer initiated it.
        case .ringing: return .refused(481)
        case .mortal: return .refused(603)
        }
    }

    /// Takes the owner's next step, now or when the PRACK of the previous response has come.
    mutating func step(
        _ id: SIPCall, _ ringing: Call.Ringing, _ step: Call.Ringing.Step, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var ringing = ringing
        guard ringing.unacknowledged == nil || step.passes(ringing) else {
            guard ringing.steps.count < 4 else { return }
            ringing.steps.append(step)
            return keep(id, .ringing(ringing))
        }
        switch step {
        case .ring(let answer): ring(id, ringing, answer, now, &outbox)
        case .accept(let description): accept(id, ringing, description, now, &outbox)
        }
    }

    private mutating func ring(
        _ id: SIPCall, _ ringing: Call.Ringing, _ answer: [UInt8]?, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var ringing = ringing
        let request = ringing.request
        let hasOffer = SIPMessage.request(request).sessionDescription != nil
        let isRequired = request.headers.has(option: "100rel", in: "Require")
        // The first reliable response would have to make the offer, which comes with the 2xx (RFC 3261 §13.2.1).
        guard hasOffer || !isRequired else { return }
        // An answer is given once; without an offer there is none to give.
        let answer = ringing.earlyAnswer == nil && hasOffer ? answer : nil
        var response = SIPResponse(answer == nil ? 180 : 183, to: request, toTag: ringing.dialog.localTag)
        copyRecordRoute(from: request, to: &response)
        if answer != nil { ringing.earlyAnswer = answer }
        /// The body's type comes last: programs that copy a description also copy the lines after it.
        func describe() {
            guard let answer else { return }
            response.headers.append("Content-Type", MediaType.sdp.description)
            response.body = answer
        }
        guard hasOffer, isRequired || request.headers.has(option: "100rel", in: "Supported"),
            configuration.screen.options.contains("100rel")
        else {
            keep(id, .ringing(ringing))
            describe()
            return respond(ringing.transaction, response, now, &outbox)
        }
        response.headers.append("Require", "100rel")
        response.headers.append("RSeq", String(ringing.nextReliable))
        ringing.nextReliable += 1
        ringing.isAnsweredReliably = ringing.isAnsweredReliably || answer != nil
        messages.addContact(&response.headers, as: response.headers.to, by: ringing.dialog.flow)
        messages.addAbilities(&response.headers)
        describe()
        // These are repeated without a longest interval (RFC 3262 §3).
        ringing.unacknowledged = RepeatedResponse(
            response, timers: configuration.timers, longest: configuration.timers.timeout, at: now)
        keep(id, .ringing(ringing))
        respond(ringing.transaction, response, now, &outbox)
    }

    private mutating func accept(
        _ id: SIPCall, _ ringing: Call.Ringing, _ description: [UInt8], _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        let request = ringing.request
        let description = ringing.earlyAnswer ?? description
        var response = SIPResponse(200, to: request, toTag: ringing.dialog.localTag)
        copyRecordRoute(from: request, to: &response)
        messages.addContact(&response.headers, as: response.headers.to, by: ringing.dialog.flow)
        messages.addAbilities(&response.headers)
        var talking = Call.Talking(dialog: ringing.dialog, isCaller: false, description: description)
        talking.timer = answerTimer(request, &response, now)
        if !ringing.isAnsweredReliably {
            response.headers.append("Content-Type", MediaType.sdp.description)
            response.body = description
        }
        talking.unacknowledgedRing = ringing.unacknowledged?.response
        talking.unacknowledged = Call.Talking.Unacknowledged(
            response: RepeatedResponse(
                response, timers: configuration.timers, longest: configuration.timers.t2, at: now),
            transaction: ringing.transaction, sequence: request.headers.sequence?.number ?? 0,
            isOffer: SIPMessage.request(request).sessionDescription == nil)
        keep(id, .talking(talking))
        respond(ringing.transaction, response, now, &outbox)
        if let replacing = ringing.replacing { giveUp(replacing, now, &outbox) }
    }

    /// Ends a call because another one replaced it.
    private mutating func giveUp(_ id: SIPCall, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        switch calls[id]?.stage {
        case .talking(let talking)?: end(id, talking, .replaced, now, &outbox)
        case .calling(let calling)?: cancel(id, calling, nil, .replaced, now, &outbox)
        case .ringing?, .mortal?, nil: break
        }
    }

    /// The terms of the session timer, which go into a 2xx.
    func answerTimer(_ request: SIPRequest, _ response: inout SIPResponse, _ now: Instant) -> SessionTimer? {
        guard configuration.screen.options.contains("timer"),
            let terms = SessionTerms.answer(
                request.headers, wanted: configuration.sessionSeconds,
                shortest: configuration.shortestSessionSeconds)
        else { return nil }
        response.headers.set("Session-Expires", terms.expires.description)
        if terms.isRequired { response.headers.set("Require", "timer") }
        return SessionTimer(seconds: terms.expires.seconds, weRefresh: terms.expires.refresher == .uas, at: now)
    }

    private func copyRecordRoute(from request: SIPRequest, to response: inout SIPResponse) {
        for line in request.headers.lines("Record-Route") { response.headers.append("Record-Route", line) }
    }

    mutating func fire(
        _ id: SIPCall, _ ringing: Call.Ringing, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var ringing = ringing
        guard ringing.ringLimit > now else { return refuse(id, ringing, 480, .unanswered, now, &outbox) }
        guard var waiting = ringing.unacknowledged, waiting.deadline <= now else { return }
        // The caller does not get what it must have (RFC 3262 §3).
        guard waiting.limit > now else { return refuse(id, ringing, 504, .lost, now, &outbox) }
        waiting.sent(at: now)
        ringing.unacknowledged = waiting
        keep(id, .ringing(ringing))
        pass(.respond(ringing.transaction, waiting.response), now, &outbox)
    }

    mutating func refuse(
        _ id: SIPCall, _ ringing: Call.Ringing, _ status: Int, _ end: CallEnd, cause: Int? = nil, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var response = SIPResponse(status, to: ringing.request, toTag: ringing.dialog.localTag)
        if let cause { response.headers.append("Reason", "SIP;cause=\(cause)") }
        tell(id, .ended(end), now, &outbox)
        forget(id)
        respond(ringing.transaction, response, now, &outbox)
    }

    /// A CANCEL, which is answered in any case, even if it does not end the INVITE (RFC 3261 §9.2).
    mutating func cancelled(
        _ request: SIPRequest, _ transaction: TransactionID, _ invite: TransactionID?, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        guard let invite else { return refuse(481, request, transaction, now, &outbox) }
        for (id, call) in calls.all {
            switch call.stage {
            case .ringing(let ringing) where ringing.transaction == invite:
                let tag = ringing.dialog.localTag
                respond(transaction, SIPResponse(200, to: request, toTag: tag), now, &outbox)
                return refuse(id, ringing, 487, .remote(cause: request.headers.reasonCause), now, &outbox)
            case .talking(var talking):
                guard case .received(let offered, invite) = talking.negotiation else { continue }
                talking.negotiation = .stable
                keep(id, .talking(talking))
                respond(transaction, SIPResponse(200, to: request, toTag: talking.dialog.localTag), now, &outbox)
                respond(invite, SIPResponse(487, to: offered), now, &outbox)
                return tell(id, .offerWithdrawn, now, &outbox)
            case .ringing, .calling, .mortal: continue
            }
        }
        // The INVITE has its final answer, so that nothing is cancelled (RFC 3261 §9.2).
        refuse(200, request, transaction, now, &outbox)
    }

    /// A request within the early dialog of a peer's call.
    mutating func receive(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, ringing: Call.Ringing, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var ringing = ringing
        switch request.method {
        case SIPMethod.prack:
            guard let ack = request.headers.reliableAck, let waiting = ringing.unacknowledged,
                waiting.response.headers.reliableSequence == ack.response,
                ack.sequence == ringing.request.headers.sequence
            else { return respond(transaction, SIPResponse(481, to: request), now, &outbox) }
            ringing.unacknowledged = nil
            let steps = ringing.steps
            ringing.steps = []
            keep(id, .ringing(ringing))
            respond(transaction, SIPResponse(200, to: request), now, &outbox)
            for next in steps {
                guard case .ringing(let ringing)? = calls[id]?.stage else { return }
                step(id, ringing, next, now, &outbox)
            }
        case SIPMethod.bye:
            keep(id, .ringing(ringing))
            respond(transaction, SIPResponse(200, to: request), now, &outbox)
            refuse(id, ringing, 487, .remote(cause: request.headers.reasonCause), now, &outbox)
        case SIPMethod.update where SIPMessage.request(request).sessionDescription == nil:
            ringing.dialog.refresh(request.headers)
            keep(id, .ringing(ringing))
            respond(transaction, SIPResponse(200, to: request), now, &outbox)
        case SIPMethod.update:
            // Offers before the call is accepted are not served.
            keep(id, .ringing(ringing))
            respond(transaction, SIPResponse(488, to: request), now, &outbox)
        case SIPMethod.invite:
            keep(id, .ringing(ringing))
            var response = SIPResponse(500, to: request)
            response.headers.append("Retry-After", String(messages.number() % 11))
            respond(transaction, response, now, &outbox)
        case SIPMethod.info:
            keep(id, .ringing(ringing))
            receiveInfo(request, transaction, id, now, &outbox)
        default:
            keep(id, .ringing(ringing))
            respond(transaction, SIPResponse(request.method == .options ? 200 : 403, to: request), now, &outbox)
        }
    }
}

extension Call.Ringing.Step {
    /// Whether the step need not wait for a PRACK: a 2xx need not, unless an early answer is under way (RFC 3262 §3).
    fileprivate func passes(_ ringing: Call.Ringing) -> Bool {
        guard case .accept = self else { return false }
        return ringing.earlyAnswer == nil && ringing.steps.isEmpty
    }
}

extension Call {
    /// Whether it is an outgoing call with that Call-ID that is not answered yet.
    fileprivate func isPlaced(with callID: String?) -> Bool {
        guard case .calling(let calling) = stage else { return false }
        return calling.request.headers.callID == callID
    }

    /// Whether an INVITE outside of dialogs is the one of this call, which came by another route.
    func isMerged(with request: SIPRequest) -> Bool {
        guard case .ringing(let ringing) = stage else { return false }
        let headers = ringing.request.headers
        return headers.callID == request.headers.callID && headers.sequence == request.headers.sequence
            && headers.from?.tag == request.headers.from?.tag
    }
}
