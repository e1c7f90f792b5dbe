internal import Core

/// Responses to our requests.
extension UserAgent {
    mutating func receive(
        _ response: SIPResponse, _ number: UInt64, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        if finishNotice(number, response.status, response, now, &outbox) { return }
        guard let use = messages.request(number) else { return }
        if use.kind == .invite { return receiveInviteResponse(response, number, use, now, &outbox) }
        if use.kind == .reinvite, response.isSuccess {
            return receiveReinviteSuccess(response, number, use, now, &outbox)
        }
        guard !response.isProvisional else { return }
        messages.forget(number)
        if response.isSuccess { messages.succeeded(by: use.flow) }
        if response.status == 401 || response.status == 407, use.attempts < 5,
            messages.takeChallenge(response, to: use), resend(use, number, now, &outbox)
        {
            return
        }
        finish(use, number, response.status, response, now, &outbox)
    }

    /// No response came (408), or none can (503).
    mutating func failed(_ number: UInt64, _ status: Int, _ now: Instant, _ outbox: inout [UserAgentOutput]) {
        if finishNotice(number, status, nil, now, &outbox) { return }
        guard let use = messages.forget(number) else { return }
        if use.kind == .bye, case .mortal(let mortal)? = calls[use.call]?.stage {
            return lose(use, mortal, status, now, &outbox)
        }
        guard use.kind == .invite else { return finish(use, number, status, nil, now, &outbox) }
        guard case .calling(let calling)? = calls[use.call]?.stage, calling.transaction == number else { return }
        if calling.end == nil { tell(use.call, .ended(status == 408 ? .unanswered : .failed), now, &outbox) }
        forget(use.call)
    }

    /// A BYE got no answer. It is sent again on the call's present flow if that is another, else on the next flow.
    private mutating func lose(
        _ use: RequestUse, _ mortal: Call.Mortal, _ status: Int, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        if mortal.dialog.flow != use.flow, use.attempts < 5 {
            return repeatBye(use.call, mortal, use.request, attempts: use.attempts + 1, now, &outbox)
        }
        // Unanswered datagrams mean that the peer is gone. A dead connection may not have been noticed yet.
        guard use.flow.isToServer, status == 503 || use.flow.transport.isReliable else { return forget(use.call) }
        var mortal = mortal
        mortal.lost = Call.Mortal.Lost(bye: use.request, until: now.advanced(by: Call.Mortal.patience))
        keep(use.call, .mortal(mortal))
    }

    /// Sends a request of a dialog again, with credentials and a new number.
    private mutating func resend(
        _ use: RequestUse, _ number: UInt64, _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) -> Bool {
        guard let call = calls[use.call] else { return false }
        switch call.stage {
        case .talking(var talking):
            let request = renumbered(use.request, &talking.dialog)
            if case .sent(number, let description, let isRefresh) = talking.negotiation {
                let (next, again) = messages.register(request, use.kind, use.call, use.flow, attempts: use.attempts + 1)
                talking.negotiation = .sent(transaction: next, description: description, isRefresh: isRefresh)
                keep(use.call, .talking(talking))
                take(messages.start(next, again, use.flow, at: now), now, &outbox)
            } else {
                keep(use.call, .talking(talking))
                send(request, use.kind, use.call, use.flow, attempts: use.attempts + 1, now, &outbox)
            }
        case .mortal(let mortal):
            guard use.kind == .bye else { return false }
            repeatBye(use.call, mortal, use.request, attempts: use.attempts + 1, now, &outbox)
        case .calling(var calling):
            guard let tag = use.request.headers.to?.tag, var fork = calling.forks[tag] else { return false }
            let request = renumbered(use.request, &fork.dialog)
            calling.forks[tag] = fork
            keep(use.call, .calling(calling))
            send(request, use.kind, use.call, use.flow, attempts: use.attempts + 1, now, &outbox)
        case .ringing: return false
        }
        return true
    }

    func renumbered(_ request: SIPRequest, _ dialog: inout Dialog) -> SIPRequest {
        var request = request
        let number = dialog.request(request.method).headers["CSeq"]
        request.headers.set("CSeq", number)
        return request
    }

    /// The final response, or none, to a request other than the first INVITE.
    private mutating func finish(
        _ use: RequestUse, _ number: UInt64, _ status: Int, _ response: SIPResponse?, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        let id = use.call
        switch calls[id]?.stage {
        case .mortal?: if use.kind == .bye { forget(id) }
        case .talking(let talking)?:
            switch use.kind {
            case .reinvite, .update: finishOffer(id, talking, number, status, response, now, &outbox)
            case .refer where status >= 300: tell(id, .transferRefused(status), now, &outbox)
            case .info:
                if status >= 300 { tell(id, .digitRefused(status), now, &outbox) }
                sendNextDigit(id, now, &outbox)
            // The owner decides whether the result ends the call: the peer's media may have come back meanwhile.
            case .probe: tell(id, .probed(response == nil && status != 408 ? nil : status), now, &outbox)
            case .refer, .notify: break
            case .invite, .bye, .prack, .cancel: return
            }
            // The peer does not know the dialog, or is gone (RFC 3261 §12.2.1.2). INFO belongs to the call, and NOTIFY to the
            // subscription of a REFER, which ends alone (RFC 5057 §5). A digit without any answer ends no call: a peer may pass over
            // INFO, and one that is gone is noticed by its silence.
            let isGone =
                switch use.kind {
                case .reinvite, .update, .refer: status == 481 || status == 408
                case .info: status == 481 || status == 408 && response != nil
                case .invite, .bye, .prack, .cancel, .notify, .probe: false
                }
            guard isGone, case .talking(let talking)? = calls[id]?.stage else { return }
            end(id, talking, .lost, bye: status == 408, now, &outbox)
        case .calling?, .ringing?, nil: break
        }
    }

    private mutating func finishOffer(
        _ id: SIPCall, _ talking: Call.Talking, _ number: UInt64, _ status: Int, _ response: SIPResponse?,
        _ now: Instant, _ outbox: inout [UserAgentOutput]
    ) {
        guard case .sent(number, let description, let isRefresh) = talking.negotiation else { return }
        var talking = talking
        talking.negotiation = .stable
        if (200..<300).contains(status), let response {
            talking.dialog.refresh(response.headers)
            restartTimer(&talking, response.headers, now)
            return keep(id, .talking(talking))
        }
        if status == 491 {
            // The owner of the Call-ID waits longer, so that the offers do not meet again (RFC 3261 §14.1).
            let step = Int64(truncatingIfNeeded: messages.number() % (talking.isCaller ? 191 : 201))
            let wait = Duration.milliseconds((talking.isCaller ? 2_100 : 0) + 10 * step)
            // The owner's offer that waits for a refresh also refreshes the session.
            talking.postponed = Call.Talking.PostponedOffer(
                until: now.advanced(by: wait),
                description: talking.postponed?.description ?? description ?? talking.description,
                isRefresh: isRefresh && talking.postponed == nil)
            return keep(id, .talking(talking))
        }
        let least = status == 422 ? response?.headers.number("Min-SE") : nil
        if isRefresh {
            talking.timer = talking.timer?.refused(least: least, at: now)
        } else {
            talking.refreshLater(least: least, at: now)
        }
        keep(id, .talking(talking))
        if !isRefresh { tell(id, .offerRefused(status), now, &outbox) }
    }

    private mutating func receiveReinviteSuccess(
        _ response: SIPResponse, _ number: UInt64, _ use: RequestUse, _ now: Instant,
        _ outbox: inout [UserAgentOutput]
    ) {
        if let ack = use.acks[""] {
            let flow = calls[use.call]?.flow ?? use.flow
            return pass(.sendWithoutTransaction(ack, flow), now, &outbox)
        }
        messages.succeeded(by: use.flow)
        var stage = calls[use.call]?.stage
        // The new target already applies to the ACK.
        switch stage {
        case .talking(var talking)?:
            talking.dialog.refresh(response.headers)
            stage = .talking(talking)
        case .mortal(var mortal)?:
            mortal.dialog.refresh(response.headers)
            stage = .mortal(mortal)
        case .calling?, .ringing?, nil: return
        }
        let dialog: Dialog
        switch stage {
        case .talking(let talking)?: dialog = talking.dialog
        case .mortal(let mortal)?: dialog = mortal.dialog
        case .calling?, .ringing?, nil: return
        }
        let ack = dialog.ack(of: use.request)
        take(messages.acknowledge(number, by: "", ack, use.flow, at: now), now, &outbox)
        guard case .talking(var talking)? = stage,
            case .sent(number, let description, let isRefresh) = talking.negotiation
        else { return }
        talking.negotiation = .stable
        talking.description = description ?? talking.description
        restartTimer(&talking, response.headers, now)
        keep(use.call, .talking(talking))
        let answer = SIPMessage.response(response).sessionDescription
        // A refresh that changes nothing is not reported; a peer may still answer with other addresses.
        if !isRefresh || answer != nil { tell(use.call, .answered(answer), now, &outbox) }
    }

    /// Our 2xx that answers a refresh, or ends the timer if it has no `Session-Expires` (RFC 4028 §7.2).
    private func restartTimer(_ talking: inout Call.Talking, _ headers: SIPHeaders, _ now: Instant) {
        talking.timer = headers.sessionExpires.map {
            SessionTimer(seconds: max($0.seconds, 90), weRefresh: $0.refresher != .uas, at: now)
        }
    }
}
