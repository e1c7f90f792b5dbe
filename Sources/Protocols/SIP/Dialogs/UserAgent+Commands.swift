internal import Core

/// The commands of the calls' owner.
extension UserAgent {
    mutating func handle(
        _ command: CallCommand, _ id: SIPCall, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        if case .place(let uri, let offer, let flow, let replaces, let more) = command {
            var headers = more
            if let replaces {
                headers.append("Replaces", replaces.description)
                headers.append("Require", "replaces")
            }
            return place(id, to: uri, offer: offer, flow: flow, headers: headers, now, &outbox)
        }
        switch calls[id]?.stage {
        case .calling(let calling)?:
            if case .end(let cause) = command { cancel(id, calling, cause, .local, now, &outbox) }
        case .ringing(let ringing)?: handle(command, id, ringing, now, &outbox)
        case .talking(let talking)?:
            if talking.endsWithCause == nil { handle(command, id, talking, now, &outbox) }
        case .mortal?, nil: break
        }
    }

    private mutating func handle(
        _ command: CallCommand, _ id: SIPCall, _ ringing: Call.Ringing, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        switch command {
        case .ring(let answer): step(id, ringing, .ring(answer), now, &outbox)
        case .accept(let description): step(id, ringing, .accept(description), now, &outbox)
        case .refuse(let status):
            guard (300...699).contains(status) else { return }
            refuse(id, ringing, status, .local, now, &outbox)
        case .end(let cause): refuse(id, ringing, 603, .local, cause: cause, now, &outbox)
        case .place, .offer, .withdrawOffer, .answer, .refuseOffer, .digit, .transfer, .acceptTransfer, .refuseTransfer,
            .probe:
            break
        }
    }

    private mutating func handle(
        _ command: CallCommand, _ id: SIPCall, _ talking: Call.Talking, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        switch command {
        case .end(let cause):
            // A callee may not send BYE before it has the ACK (RFC 3261 §15).
            guard !talking.isCaller, talking.unacknowledged != nil else {
                return end(id, talking, .local, cause: cause, now, &outbox)
            }
            tell(id, .ended(.local), now, &outbox)
            talking.endsWithCause = .some(cause)
            keep(id, .talking(talking))
        case .offer(let description): offer(id, description, isRefresh: false, now, &outbox)
        case .withdrawOffer:
            guard let postponed = talking.postponed, !postponed.isRefresh else { return }
            talking.postponed = nil
            talking.refreshLater(at: now)
            keep(id, .talking(talking))
        case .answer(let description): answer(id, talking, description, now, &outbox)
        case .refuseOffer: answer(id, talking, nil, now, &outbox)
        case .digit(let digit, let milliseconds):
            guard let digit = InfoDigit(digit, milliseconds: milliseconds) else { return }
            if talking.digits.press(digit) {
                send(digit, id, talking, now, &outbox)
            } else {
                keep(id, .talking(talking))
            }
        case .transfer(let uri, let other): transfer(id, talking, uri, other, now, &outbox)
        case .acceptTransfer(let number, let offer, let flow, let headers):
            acceptTransfer(id, talking, number, offer, flow ?? talking.dialog.flow, headers, now, &outbox)
        case .refuseTransfer:
            guard let referral = talking.referral else { return }
            talking.referral = nil
            keep(id, .talking(talking))
            respond(referral.transaction, SIPResponse(603, to: referral.request), now, &outbox)
        case .probe: probe(id, talking, now, &outbox)
        case .place, .ring, .accept, .refuse: break
        }
    }

    /// Probes the peer in the dialog with OPTIONS, which it answers as it would an INVITE (RFC 3261 §11). The session
    /// is unchanged.
    private mutating func probe(
        _ id: SIPCall, _ talking: Call.Talking, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        var request = talking.dialog.request(.options)
        request.headers.append("Accept", configuration.screen.accept)
        keep(id, .talking(talking))
        send(request, .probe, id, talking.dialog.flow, now, &outbox)
    }

    /// Sends the next digit that waits, now that the one before was answered.
    mutating func sendNextDigit(_ id: SIPCall, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        guard case .talking(var talking)? = calls[id]?.stage else { return }
        guard let digit = talking.digits.next(), talking.endsWithCause == nil else {
            return keep(id, .talking(talking))
        }
        send(digit, id, talking, now, &outbox)
    }

    private mutating func send(
        _ digit: InfoDigit, _ id: SIPCall, _ talking: Call.Talking, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        var request = talking.dialog.request(.info)
        request.headers.append("Content-Type", MediaType.dtmfRelay.description)
        request.body = digit.body
        keep(id, .talking(talking))
        send(request, .info, id, talking.dialog.flow, now, &outbox)
    }

    /// Offers by re-INVITE, or refreshes the session. While another exchange is in progress, or the call's flow is
    /// gone, the owner's offer waits.
    ///
    /// - Returns: Whether a request went out.
    @discardableResult
    mutating func offer(
        _ id: SIPCall, _ description: [UInt8], isRefresh: Bool, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) -> Bool {
        guard case .talking(var talking)? = calls[id]?.stage else { return false }
        guard case .stable = talking.negotiation, talking.postponed == nil, talking.unacknowledged == nil,
            !messages.isLost(talking.dialog.flow)
        else {
            if !isRefresh { postpone(id, talking, description, now, &outbox) }
            return false
        }
        // A refresh by UPDATE needs no description (RFC 4028 §7.4).
        let usesUpdate = isRefresh && talking.dialog.allows(.update)
        var request = talking.dialog.request(usesUpdate ? .update : .invite)
        if !usesUpdate {
            request.headers.append("Content-Type", MediaType.sdp.description)
            request.body = isRefresh ? DescriptionRole.asOffer(description) : description
        }
        if let timer = talking.timer {
            let expires = SessionExpires(seconds: timer.seconds, refresher: timer.weRefresh ? .uac : .uas)
            request.headers.append("Session-Expires", expires.description)
            if let least = timer.least { request.headers.append("Min-SE", String(least)) }
        }
        let flow = talking.dialog.flow
        let number: UInt64
        (number, request) = messages.register(request, usesUpdate ? .update : .reinvite, id, flow, attempts: 0)
        talking.negotiation = .sent(
            transaction: number, description: usesUpdate ? nil : description, isRefresh: isRefresh)
        keep(id, .talking(talking))
        take(messages.start(number, request, flow, at: now), now, &outbox)
        return true
    }

    /// Keeps the owner's offer until it can be made. It replaces a refresh that waits, because it refreshes the session
    /// too.
    private mutating func postpone(
        _ id: SIPCall, _ talking: Call.Talking, _ description: [UInt8], _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        if let other = talking.postponed, !other.isRefresh { return tell(id, .offerRefused(491), now, &outbox) }
        var talking = talking
        talking.postponed = Call.Talking.PostponedOffer(
            until: talking.postponed?.until ?? now.advanced(by: Call.Talking.PostponedOffer.step),
            description: description, isRefresh: false)
        keep(id, .talking(talking))
    }

    private mutating func transfer(
        _ id: SIPCall, _ talking: Call.Talking, _ uri: AnyURI, _ other: SIPCall?, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        var talking = talking
        var target = uri
        var replaces: Replaces?
        if let other {
            guard case .talking(let consulted)? = calls[other]?.stage, other != id else {
                return tell(id, .transferRefused(481), now, &outbox)
            }
            // As the consulted peer sees the dialog: its own tag is the one that we call remote.
            replaces = Replaces(
                callID: consulted.dialog.callID, toTag: consulted.dialog.remoteTag,
                fromTag: consulted.dialog.localTag)
            target = consulted.dialog.target
        }
        var request = talking.dialog.request(.refer)
        request.headers.append("Refer-To", ReferTarget.text(target, replaces))
        request.headers.append("Referred-By", "<\(configuration.address.uri)>")
        keep(id, .talking(talking))
        send(request, .refer, id, talking.dialog.flow, now, &outbox)
    }

    private mutating func acceptTransfer(
        _ id: SIPCall, _ talking: Call.Talking, _ number: UInt64, _ offer: [UInt8], _ flow: SIPFlow,
        _ more: SIPHeaders, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        guard let referral = talking.referral, calls[.outgoing(number)] == nil,
            let address = referral.request.headers.addresses("Refer-To")?.first,
            let (uri, replaces) = ReferTarget.read(address.uri)
        else { return }
        var talking = talking
        talking.referral = nil
        keep(id, .talking(talking))
        respond(referral.transaction, SIPResponse(202, to: referral.request), now, &outbox)
        notify(id, 100, isFinal: false, now, &outbox)
        var headers = more
        if let replaces { headers.append("Replaces", replaces.description) }
        if let by = referral.request.headers["Referred-By"] { headers.append("Referred-By", by) }
        calls.beginTransfer(by: .outgoing(number), of: id)
        place(.outgoing(number), to: ReferTarget.called(uri), offer: offer, flow: flow, headers: headers, now, &outbox)
    }
}
