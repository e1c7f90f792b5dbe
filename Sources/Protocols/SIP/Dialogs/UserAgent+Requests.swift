internal import Core

/// Requests of peers.
extension UserAgent {
    mutating func receive(
        _ request: SIPRequest, _ transaction: TransactionID, _ flow: SIPFlow, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        if var refusal = configuration.screen.refusal(of: request) {
            if request.headers.to?.tag == nil, let to = refusal.headers["To"] {
                refusal.headers.set("To", to + ";tag=" + messages.tag())
            }
            return respond(transaction, refusal, now, &outbox)
        }
        guard let tag = request.headers.to?.tag else {
            switch request.method {
            case .invite: receiveInvite(request, transaction, flow, now, &outbox)
            case .options: options(request, transaction, toTag: messages.tag(), now, &outbox)
            // A transfer outside of a call has no call to transfer.
            case .refer: refuse(403, request, transaction, now, &outbox)
            case .subscribe: outbox.append(.subscription(request, transaction, flow))
            default: refuse(481, request, transaction, now, &outbox)
            }
            return
        }
        if request.method == .subscribe, renewSubscription(request, transaction, flow, now, &outbox) { return }
        guard let callID = request.headers.callID, let id = calls.call(callID, localTag: tag), let call = calls[id]
        else { return respond(transaction, SIPResponse(481, to: request), now, &outbox) }
        // Other hosts get the same answer as if there was no such call.
        let remote = request.headers.from?.tag
        guard messages.isPeer(flow, of: call, with: remote, request.method, at: now) else {
            return respond(transaction, SIPResponse(481, to: request), now, &outbox)
        }
        switch call.stage {
        case .talking(var talking) where talking.dialog.isRemote(tag: remote):
            guard talking.dialog.take(request) else { return disordered(request, transaction, now, &outbox) }
            receive(request, transaction, id, talking: talking, now, &outbox)
        case .ringing(var ringing) where ringing.dialog.isRemote(tag: remote):
            guard ringing.dialog.take(request) else { return disordered(request, transaction, now, &outbox) }
            receive(request, transaction, id, ringing: ringing, now, &outbox)
        case .mortal(let mortal) where mortal.dialog.isRemote(tag: remote):
            // Both ended the call at once (RFC 5407 §3.2.1).
            let status = request.method == .bye ? 200 : 481
            respond(transaction, SIPResponse(status, to: request), now, &outbox)
        case .calling(var calling):
            guard let remote, var fork = calling.forks[remote] else {
                return respond(transaction, SIPResponse(481, to: request), now, &outbox)
            }
            guard fork.dialog.take(request) else { return disordered(request, transaction, now, &outbox) }
            calling.forks[remote] = fork
            keep(id, .calling(calling))
            receiveEarly(request, transaction, id, now, &outbox)
        case .talking, .ringing, .mortal: respond(transaction, SIPResponse(481, to: request), now, &outbox)
        }
    }

    /// A request of the peer that we call, before it accepts.
    private mutating func receiveEarly(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        switch request.method {
        case .info: receiveInfo(request, transaction, id, now, &outbox)
        case .options: options(request, transaction, toTag: nil, now, &outbox)
        case .update:
            // Offers before the call is accepted are not served.
            let hasOffer = SIPMessage.request(request).sessionDescription != nil
            respond(transaction, SIPResponse(hasOffer ? 488 : 200, to: request), now, &outbox)
        default: respond(transaction, SIPResponse(403, to: request), now, &outbox)
        }
    }

    private mutating func disordered(
        _ request: SIPRequest, _ transaction: TransactionID, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        respond(transaction, SIPResponse(500, to: request), now, &outbox)
    }

    private mutating func options(
        _ request: SIPRequest, _ transaction: TransactionID, toTag: String?, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        // The status is that of an INVITE (RFC 3261 §11.2).
        var response = SIPResponse(calls.isFull ? 486 : 200, to: request, toTag: toTag)
        if let flow = messages.table.flow(of: transaction) {
            messages.addContact(&response.headers, as: response.headers.to, by: flow)
        }
        messages.addAbilities(&response.headers)
        response.headers.append("Accept", configuration.screen.accept)
        respond(transaction, response, now, &outbox)
    }

    // MARK: In a confirmed dialog

    private mutating func receive(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, talking: Call.Talking, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        keep(id, .talking(talking))
        if let cause = talking.endsWithCause, request.method != .bye {
            return receive(request, transaction, id, ending: talking, cause, now, &outbox)
        }
        switch request.method {
        case .bye:
            respond(transaction, SIPResponse(200, to: request), now, &outbox)
            end(id, talking, .remote(cause: request.headers.reasonCause), bye: false, now, &outbox)
        case .invite, .update: receiveOffer(request, transaction, id, talking, now, &outbox)
        case .info: receiveInfo(request, transaction, id, now, &outbox)
        case .options: options(request, transaction, toTag: nil, now, &outbox)
        case .refer: receiveRefer(request, transaction, id, talking, now, &outbox)
        case .notify: receiveNotify(request, transaction, id, now, &outbox)
        case .prack:
            let isAwaited = request.headers.reliableAck.map {
                $0.response == talking.unacknowledgedRing?.headers.reliableSequence
            }
            respond(transaction, SIPResponse(isAwaited == true ? 200 : 481, to: request), now, &outbox)
        default: respond(transaction, SIPResponse(403, to: request), now, &outbox)
        }
    }

    /// The owner has ended the call, and the BYE waits for an ACK. A re-INVITE, like the ACK, proves that the caller
    /// has our 2xx.
    private mutating func receive(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, ending talking: Call.Talking,
        _ cause: Int?, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        respond(transaction, SIPResponse(request.method == .invite ? 487 : 481, to: request), now, &outbox)
        if request.method == .invite { end(id, talking, .local, cause: cause, now, &outbox) }
    }

    /// A re-INVITE or an UPDATE: one at a time, in either direction (RFC 3261 §14.2, RFC 3311 §5.2).
    private mutating func receiveOffer(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, _ talking: Call.Talking, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        let offer = SIPMessage.request(request).sessionDescription
        if let asked = request.headers.sessionExpires, asked.seconds < configuration.shortestSessionSeconds,
            request.headers.has(option: "timer", in: "Supported")
        {
            var response = SIPResponse(422, to: request)
            response.headers.append("Min-SE", String(configuration.shortestSessionSeconds))
            return respond(transaction, response, now, &outbox)
        }
        if request.method == .update, offer == nil {
            // Only a new target, or the session's timer.
            var response = SIPResponse(200, to: request)
            talking.dialog.refresh(request.headers)
            talking.timer = answerTimer(request, &response, now) ?? talking.timer
            keep(id, .talking(talking))
            return respond(transaction, response, now, &outbox)
        }
        switch talking.negotiation {
        case .sent: return respond(transaction, SIPResponse(491, to: request), now, &outbox)
        case .received:
            var response = SIPResponse(500, to: request)
            response.headers.append("Retry-After", String(messages.number() % 11))
            return respond(transaction, response, now, &outbox)
        case .stable: break
        }
        // Our 2xx has an offer that only the ACK answers (RFC 5407 §3.1.5, RFC 6141 §4).
        if let waiting = talking.unacknowledged, waiting.isOffer {
            return respond(transaction, SIPResponse(491, to: request), now, &outbox)
        }
        talking.negotiation = .received(request, transaction)
        // A re-INVITE proves that the peer has our 2xx and that its ACK was lost: the wait for the ACK ends.
        let acknowledges = request.method == .invite && talking.unacknowledged != nil
        if acknowledges {
            talking.unacknowledged = nil
            talking.acknowledgedFrom = request.headers.topVia?.source
        }
        keep(id, .talking(talking))
        if acknowledges { tell(id, .confirmed(nil), now, &outbox) }
        tell(id, .offered(offer), now, &outbox)
    }

    /// The owner's answer to an offer, or `nil` to refuse it.
    mutating func answer(
        _ id: SIPCall, _ talking: Call.Talking, _ description: [UInt8]?, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        guard case .received(let request, let transaction) = talking.negotiation else { return }
        var talking = talking
        talking.negotiation = .stable
        guard let description else {
            keep(id, .talking(talking))
            return respond(transaction, SIPResponse(488, to: request), now, &outbox)
        }
        // A request that is refused changes no target (RFC 6141 §4).
        talking.dialog.refresh(request.headers)
        var response = SIPResponse(200, to: request)
        for line in request.headers.lines("Record-Route") { response.headers.append("Record-Route", line) }
        response.headers.append("Content-Type", MediaType.sdp.description)
        response.body = description
        messages.addContact(&response.headers, as: response.headers.to, by: talking.dialog.flow)
        messages.addAbilities(&response.headers)
        talking.timer = answerTimer(request, &response, now) ?? talking.timer
        talking.description = description
        if request.method == .invite {
            talking.unacknowledged = Call.Talking.Unacknowledged(
                response: RepeatedResponse(
                    response, timers: configuration.timers, longest: configuration.timers.t2, at: now),
                transaction: transaction, sequence: request.headers.sequence?.number ?? 0,
                isOffer: SIPMessage.request(request).sessionDescription == nil)
        }
        keep(id, .talking(talking))
        respond(transaction, response, now, &outbox)
    }

    /// An ACK of our 2xx.
    mutating func acknowledged(
        _ request: SIPRequest, by flow: SIPFlow, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        guard let tag = request.headers.to?.tag, let callID = request.headers.callID,
            let id = calls.call(callID, localTag: tag), let call = calls[id], case .talking(var talking) = call.stage,
            talking.dialog.isRemote(tag: request.headers.from?.tag), let waiting = talking.unacknowledged,
            waiting.sequence == request.headers.sequence?.number,
            messages.isPeer(flow, of: call, with: request.headers.from?.tag, .ack, at: now)
        else { return }
        talking.unacknowledged = nil
        talking.acknowledgedFrom = request.headers.topVia?.source
        keep(id, .talking(talking))
        if let cause = talking.endsWithCause {
            return end(id, talking, .local, cause: cause, now, &outbox)
        }
        let answer = waiting.isOffer ? SIPMessage.request(request).sessionDescription : nil
        tell(id, .confirmed(answer), now, &outbox)
    }

    // MARK: Digits and transfers

    mutating func receiveInfo(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        respond(transaction, SIPResponse(200, to: request), now, &outbox)
        if let digit = InfoDigit(request) {
            tell(id, .digit(digit.digit, milliseconds: digit.milliseconds), now, &outbox)
        } else {
            tell(id, .info(request.headers.contentType, request.body), now, &outbox)
        }
    }

    private mutating func receiveRefer(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, _ talking: Call.Talking, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        guard let targets = request.headers.addresses("Refer-To"), targets.count == 1,
            request.headers.count("Refer-To") == 1
        else { return respond(transaction, SIPResponse(400, to: request), now, &outbox) }
        guard talking.referral == nil, !calls.isTransferring(id) else {
            return respond(transaction, SIPResponse(491, to: request), now, &outbox)
        }
        guard let (uri, replaces) = ReferTarget.read(targets[0].uri) else {
            return respond(transaction, SIPResponse(400, to: request), now, &outbox)
        }
        talking.referral = (request, transaction)
        keep(id, .talking(talking))
        tell(id, .transferRequested(uri, replaces: replaces), now, &outbox)
    }

    private mutating func receiveNotify(
        _ request: SIPRequest, _ transaction: TransactionID, _ id: SIPCall, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        guard request.headers.event?.token.isSame(as: "refer") == true else {
            return respond(transaction, SIPResponse(489, to: request), now, &outbox)
        }
        respond(transaction, SIPResponse(200, to: request), now, &outbox)
        let state = request.headers["Subscription-State"].flatMap(TokenWithParameters.init)
        let isOver = state?.token.isSame(as: "terminated") ?? false
        let told = ReferTarget.status(of: request.body)
        // Nothing comes after this, so a transfer that was in progress has failed.
        guard let status = isOver ? told.flatMap({ $0 >= 200 ? $0 : nil }) ?? 503 : told else { return }
        tell(id, .transferProgress(status, isFinal: isOver || status >= 200), now, &outbox)
    }

    /// Notifies a peer of the progress of the call that it asked for (RFC 3515 §2.4.4).
    mutating func notify(
        _ id: SIPCall, _ status: Int, isFinal: Bool, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        guard case .talking(var talking)? = calls[id]?.stage else { return }
        var request = talking.dialog.request(.notify)
        request.headers.append("Event", "refer")
        request.headers.append(
            "Subscription-State", isFinal ? "terminated;reason=noresource" : "active;expires=60")
        request.headers.append("Content-Type", "message/sipfrag;version=2.0")
        request.body = Array("SIP/2.0 \(status) \(StatusText.text(status))\r\n".utf8)
        keep(id, .talking(talking))
        send(request, .notify, id, talking.dialog.flow, now, &outbox)
    }
}

/// The content of `Refer-To`: the callee, and the dialog that the call replaces.
enum ReferTarget {
    /// Splits the target from its `Replaces`. Other headers stay in the URI, so that the owner refuses it: the peer would
    /// write them into our request.
    ///
    /// - Returns: Nil for no call, for a malformed `Replaces`, and for two (RFC 3891 §3).
    static func read(_ uri: AnyURI) -> (AnyURI, Replaces?)? {
        switch uri {
        case .tel: return (uri, nil)
        case .other: return nil
        case .sip(var target):
            var replaces: Replaces?
            if let text = target.headers["Replaces"] {
                guard let read = Replaces(SIPEscape.plain(text)) else { return nil }
                replaces = read
                target.headers["Replaces"] = nil
                guard !target.headers.contains("Replaces") else { return nil }
                // Telephones write it beside Replaces (RFC 5589 §7), of which it says nothing new.
                if target.headers["Require"]?.isSame(as: "replaces") == true { target.headers["Require"] = nil }
            }
            if let method = target.parameters["method"], method != SIPMethod.invite.rawValue { return nil }
            target.parameters["method"] = nil
            return (.sip(target), replaces)
        }
    }

    /// A target without headers of its peer's choice, as it is called.
    static func called(_ uri: AnyURI) -> AnyURI {
        guard case .sip(var target) = uri else { return uri }
        target.headers = SIPParameters()
        return .sip(target)
    }

    static func text(_ uri: AnyURI, _ replaces: Replaces?) -> String {
        guard let replaces, case .sip(var target) = uri else { return "<\(uri)>" }
        target.headers = SIPParameters([
            ("Replaces", PercentEscape.escaped(replaces.description, allowing: SIPEscape.isUnreserved))
        ])
        return "<\(target)>"
    }

    /// The status in a piece of a SIP message.
    static func status(of body: [UInt8]) -> Int? {
        let line = String(decoding: body.prefix(256).prefix { $0 != 13 && $0 != 10 }, as: UTF8.self)
        let parts = line.split(separator: " ")
        guard parts.count >= 2, String(parts[0]).isSame(as: "SIP/2.0"), let status = Int(parts[1]),
            (100...699).contains(status)
        else { return nil }
        return status
    }
}
