internal import Core

/// Outgoing calls, until they are accepted.
extension UserAgent {
    mutating func place(
        _ id: SIPCall, to uri: AnyURI, offer: [UInt8], flow: SIPFlow, headers: SIPHeaders, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        guard calls[id] == nil, case .outgoing = id, let callID = callID(of: id) else { return }
        guard !calls.isFull else { return tell(id, .ended(.failed), now, &outbox) }
        var request = SIPRequest(method: .invite, uri: uri, body: offer)
        request.headers.append("Max-Forwards", headers["Max-Forwards"] ?? "70")
        for route in messages.routes { request.headers.append("Route", route.description) }
        var from = configuration.address
        from.tag = messages.tag()
        request.headers.append("From", from.description)
        request.headers.append("To", NameAddress(uri).description)
        request.headers.append("Call-ID", callID)
        request.headers.append(
            "CSeq", CSeq(UInt32(truncatingIfNeeded: messages.number() & 0xFFFF) + 1, .invite).description)
        request.headers.append("Content-Type", MediaType.sdp.description)
        if let seconds = configuration.sessionSeconds {
            request.headers.append("Session-Expires", String(seconds))
            request.headers.append("Min-SE", String(configuration.shortestSessionSeconds))
        }
        for header in headers.all where header.name != "Max-Forwards" {
            request.headers.append(header.name, header.value)
        }
        let plan = InvitePlan(
            offer: offer, flow: flow, ringLimit: now.advanced(by: configuration.ringLimit),
            targets: RedirectionTargets(uri))
        invite(id, request, plan, attempts: 0, now, &outbox)
    }

    /// The parts of an INVITE that stay the same when it is sent again.
    private struct InvitePlan {
        let offer: [UInt8]
        let flow: SIPFlow
        let ringLimit: Instant
        var targets: RedirectionTargets

        init(offer: [UInt8], flow: SIPFlow, ringLimit: Instant, targets: RedirectionTargets) {
            self.offer = offer
            self.flow = flow
            self.ringLimit = ringLimit
            self.targets = targets
        }

        init(_ calling: Call.Calling) {
            self.init(
                offer: calling.offer, flow: calling.flow, ringLimit: calling.ringLimit, targets: calling.targets)
        }
    }

    /// Sends an INVITE that makes a dialog, for the first time or again with a higher number.
    private mutating func invite(
        _ id: SIPCall, _ request: SIPRequest, _ plan: InvitePlan, attempts: Int, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        let flow = plan.flow
        let (number, request) = messages.register(request, .invite, id, flow, attempts: attempts)
        if let callID = request.headers.callID, let tag = request.headers.from?.tag {
            calls.bind(callID, localTag: tag, to: id)
        }
        keep(
            id,
            .calling(
                Call.Calling(
                    request: request, transaction: number, offer: plan.offer, flow: flow, ringLimit: plan.ringLimit,
                    targets: plan.targets)))
        take(messages.start(number, request, flow, at: now), now, &outbox)
    }

    /// Ends an outgoing call that was not accepted. The CANCEL waits for a provisional response (RFC 3261 §9.1).
    mutating func cancel(
        _ id: SIPCall, _ calling: Call.Calling, _ cause: Int?, _ end: CallEnd, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        guard calling.end == nil else { return }
        var calling = calling
        calling.end = Call.Calling.Ending(cause: cause)
        keep(id, .calling(calling))
        tell(id, .ended(end), now, &outbox)
        sendCancel(id, calling, now, &outbox)
    }

    private mutating func sendCancel(
        _ id: SIPCall, _ calling: Call.Calling, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        guard calling.hasProvisional, let end = calling.end, !end.isSent else { return }
        var calling = calling
        calling.end?.isSent = true
        keep(id, .calling(calling))
        var headers = SIPHeaders()
        if let cause = end.cause { headers.append("Reason", "SIP;cause=\(cause)") }
        let use = RequestUse(kind: .cancel, call: id, request: calling.request, flow: calling.flow)
        take(messages.cancel(calling.transaction, use, headers, at: now), now, &outbox)
    }

    /// A response to an INVITE that is to make a dialog.
    mutating func receiveInviteResponse(
        _ response: SIPResponse, _ number: UInt64, _ use: RequestUse, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        if response.isSuccess { return receiveAcceptance(response, number, use, now, &outbox) }
        guard case .calling(var calling)? = calls[use.call]?.stage, calling.transaction == number else {
            if !response.isProvisional { messages.forget(number) }
            return
        }
        if response.isProvisional {
            calling.hasProvisional = true
            keep(use.call, .calling(calling))
            if calling.end != nil { return sendCancel(use.call, calling, now, &outbox) }
            return receiveProgress(response, use.call, calling, now, &outbox)
        }
        messages.forget(number)
        guard calling.end == nil else { return forget(use.call) }
        if let again = amended(use, response) {
            return invite(use.call, again, InvitePlan(calling), attempts: use.attempts + 1, now, &outbox)
        }
        var plan = InvitePlan(calling)
        if let again = redirected(use, response, &plan.targets) {
            return invite(use.call, again, plan, attempts: 0, now, &outbox)
        }
        let isUnauthorized = response.status == 401 || response.status == 407
        let contacts = (response.headers.contacts ?? []).map(\.uri)
        tell(
            use.call, .ended(isUnauthorized ? .unauthorized : .refused(response.status, contacts: contacts)), now,
            &outbox)
        forget(use.call)
    }

    /// The INVITE as it is sent again after a challenge (401, 407) or with a longer session interval (422).
    private mutating func amended(_ use: RequestUse, _ response: SIPResponse) -> SIPRequest? {
        guard use.attempts < 5, let sequence = use.request.headers.sequence else { return nil }
        var request = use.request
        switch response.status {
        case 401, 407: guard messages.takeChallenge(response, to: use) else { return nil }
        case 422:
            guard let least = response.headers.number("Min-SE"), let asked = request.headers.sessionExpires,
                least > asked.seconds, least <= SIPLimits.seconds
            else { return nil }
            request.headers.set("Session-Expires", String(least))
            request.headers.set("Min-SE", String(least))
        default: return nil
        }
        request.headers.set("CSeq", CSeq(sequence.number + 1, .invite).description)
        return request
    }

    /// The INVITE to the next address of a redirection. It goes to our server, which applies its rules to it as to any
    /// other.
    private func redirected(
        _ use: RequestUse, _ response: SIPResponse, _ targets: inout RedirectionTargets
    ) -> SIPRequest? {
        // 6xx is final for the callee everywhere, so no redirection follows.
        guard use.flow.isToServer, response.status < 600, let domain = configuration.address.uri.sip?.host,
            let sequence = use.request.headers.sequence
        else { return nil }
        targets.take(response, admitting: configuration.redirectionTargets, of: domain)
        guard let uri = targets.next() else { return nil }
        var request = use.request
        request.uri = uri
        request.headers.set("CSeq", CSeq(sequence.number + 1, .invite).description)
        return request
    }

    private mutating func receiveProgress(
        _ response: SIPResponse, _ id: SIPCall, _ calling: Call.Calling, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        guard response.status > 100, let tag = response.headers.to?.tag else {
            if response.status > 100 { tell(id, .progress(response.status, early: nil), now, &outbox) }
            return
        }
        var calling = calling
        guard var fork = fork(tag, response, calling) else { return }
        let description = SIPMessage.response(response).sessionDescription
        let early: [UInt8]?
        if response.headers.has(option: "100rel", in: "Require"), let sequence = response.headers.reliableSequence {
            // Reliable responses that are not in order come again in order, and repetitions were acknowledged (RFC 3262
            // §4).
            if let last = fork.lastReliable, sequence != last &+ 1 { return }
            fork.lastReliable = sequence
            early = fork.take(description, isReliable: true)
            var prack = fork.dialog.request(.prack)
            let invite = CSeq(calling.request.headers.sequence?.number ?? 0, .invite)
            prack.headers.append("RAck", RAck(response: sequence, sequence: invite).description)
            calling.forks[tag] = fork
            keep(id, .calling(calling))
            send(prack, .prack, id, calling.flow, now, &outbox)
        } else {
            early = fork.take(description, isReliable: false)
            calling.forks[tag] = fork
            keep(id, .calling(calling))
        }
        tell(id, .progress(response.status, early: early), now, &outbox)
    }

    /// The early dialog of a response; `nil` beyond ``SIPLimits/forks``.
    private func fork(_ tag: String, _ response: SIPResponse, _ calling: Call.Calling) -> Call.Calling.Fork? {
        if let known = calling.forks[tag] { return known }
        guard calling.forks.count < SIPLimits.forks,
            var dialog = Dialog(request: calling.request, response: response, flow: calling.flow)
        else { return nil }
        for other in calling.forks.values { dialog.raiseSequence(to: other.dialog.localSequence) }
        return Call.Calling.Fork(dialog: dialog)
    }

    /// Handles a 2xx: the first of the call, a repetition, or one of another fork, which is acknowledged and ended (RFC
    /// 3261 §13.2.2.4).
    private mutating func receiveAcceptance(
        _ response: SIPResponse, _ number: UInt64, _ use: RequestUse, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        let tag = response.headers.to?.tag ?? ""
        if let ack = use.acks[tag] {
            let flow = calls[use.call]?.flow ?? use.flow
            return pass(.sendWithoutTransaction(ack, flow), now, &outbox)
        }
        guard use.acks.count < SIPLimits.forks else { return }
        guard var dialog = Dialog(request: use.request, response: response, flow: use.flow) else {
            // With a malformed route there is no dialog, and so no party to send a BYE to.
            guard case .calling(let stage)? = calls[use.call]?.stage, stage.transaction == number else { return }
            messages.forget(number)
            if stage.end == nil { tell(use.call, .ended(.failed), now, &outbox) }
            return forget(use.call)
        }
        var calling: Call.Calling?
        if case .calling(let stage)? = calls[use.call]?.stage, stage.transaction == number { calling = stage }
        for fork in calling?.forks.values ?? [:].values { dialog.raiseSequence(to: fork.dialog.localSequence) }
        let ack = dialog.ack(of: use.request)
        take(messages.acknowledge(number, by: tag, ack, use.flow, at: now), now, &outbox)
        messages.succeeded(by: use.flow)
        guard let calling, calling.end == nil else {
            // The call was ended, or another fork was first.
            if calling != nil { forget(use.call) }
            return leave(calls.newIncoming(), dialog, now, &outbox)
        }
        var talking = Call.Talking(dialog: dialog, isCaller: true, description: calling.offer)
        if let expires = response.headers.sessionExpires, configuration.screen.options.contains("timer") {
            talking.timer = SessionTimer(
                seconds: max(expires.seconds, 90), weRefresh: expires.refresher != .uas, at: now)
        }
        keep(use.call, .talking(talking))
        let answer = SIPMessage.response(response).sessionDescription
        let fork = calling.forks[tag]
        tell(use.call, .accepted(fork?.answer ?? answer ?? fork?.preview), now, &outbox)
    }
}
