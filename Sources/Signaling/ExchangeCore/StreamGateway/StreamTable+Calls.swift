import enum CallControl.CallFailureCause
import enum CallControl.RejectReason
import JSON
import SDP
import SignalWire
import Core

/// Handles what the exchange delivers to streams: invites, calls and signals.
extension StreamTable {
    mutating func take(
        _ delivery: Delivery, _ session: StreamSession, at now: Instant, into outbox: inout [Output]
    ) {
        switch delivery {
        case .response(RequestID.invite, .invite(let result)): invited(result.invite, session, into: &outbox)
        case .refusal(RequestID.invite?, let error): fail(session, Self.failure(error), into: &outbox)
        case .refusal(RequestID.offer?, let error):
            guard case .restarting(let accepted, _, _, _) = session.state else { return }
            giveUp(error.known == .tooLarge ? .tooLarge : .noRestart, accepted, session, into: &outbox)
        case .response, .refusal: break
        case .event(let event): take(event, session, at: now, into: &outbox)
        case .closed: fail(session, .failed, into: &outbox)
        }
    }

    private mutating func invited(_ invite: InviteID, _ session: StreamSession, into outbox: inout [Output]) {
        var session = session
        switch session.state {
        case .inviting(let ticket):
            session.state = .ringing(invite, ticket)
            update(session)
        case .withdrawing: cancel(invite, of: session, into: &outbox)
        case .ringing, .gathering, .up, .restarting: break
        }
    }

    private static func failure(_ error: RPCError) -> StreamFailure {
        switch error.known {
        case .unknownUser?: .unknownUser
        case .noDeviceOnline?: .noDeviceOnline
        case .tooManyRequests?: .tooManyStreams
        case .tooLarge?: .tooLarge
        case .notAllowed?: .barred
        // The login ended while the request was under way.
        case .tokenExpired?: .tokenExpired
        case .notAuthenticated?, .tokenRejected?, .tokenRevoked?: .notAuthenticated
        default: .failed  // Codes that an invite is not refused with.
        }
    }

    /// The failure for a device's reject. Causes that lie in the offer are reported to the client, because it can make
    /// another.
    private static func failure(rejectedWith data: JSONValue?) -> StreamFailure {
        switch data?["reason"]?.string.flatMap(RejectReason.init(rawValue:)) ?? .declined {
        case .busy: return .busy
        case .declined: return .declined
        case .noAnswer: return .noAnswer
        case .failed:
            let cause = data?["cause"]?.string.flatMap(CallFailureCause.init(rawValue:))
            guard let cause, cause.isInDescription else { return .deviceFailed }
            return .unusable(cause.sentence)
        }
    }

    private mutating func take(
        _ event: ExchangeEvent, _ session: StreamSession, at now: Instant, into outbox: inout [Output]
    ) {
        switch (event, session.state) {
        case (.inviteAccepted(let answer), .ringing(let invite, let ticket)) where answer.invite == invite:
            accepted(answer, ticket, session, at: now, into: &outbox)
        case (.inviteRejected(let answer), .ringing(let invite, _)) where answer.invite == invite:
            fail(session, Self.failure(rejectedWith: answer.data), into: &outbox)
        case (.inviteTimedOut(let end), .ringing(let invite, _)) where end.invite == invite:
            fail(session, .noAnswer, into: &outbox)
        case (.callSignal(let signal), _) where signal.invite == session.accepted?.invite:
            take(signal, session, at: now, into: &outbox)
        case (.callEnded(let end), _) where end.invite == session.accepted?.invite:
            fail(session, .hungUp, into: &outbox)
        case (.inviteAccepted, _), (.inviteRejected, _), (.inviteTimedOut, _), (.callSignal, _), (.callEnded, _),
            (.inviteReceived, _), (.inviteHandled, _), (.inviteCancelled, _), (.inviteMissed, _), (.inviteEnded, _),
            (.inviteModified, _), (.groupChanged, _), (.connectionCreated, _), (.connectionDestroyed, _),
            (.roomSignal, _), (.streamDropped, _), (.streamResumed, _), (.moveRequested, _), (.tokenExpiring, _),
            (.presenceChanged, _),
            (.notification, _), (.unknown, _):
            break
        }
    }

    private mutating func accepted(
        _ answered: InviteAnswered, _ ticket: TraceID, _ session: StreamSession, at now: Instant,
        into outbox: inout [Output]
    ) {
        let call = StreamSession.Accepted(invite: answered.invite, at: now)
        guard let answer = Self.description(answered.data?["answer"]) else {
            reply(.failed(.unusableAnswer), to: session, into: &outbox)
            var session = session
            session.state = .up(call)
            return hangUp(session, reason: "acceptFailed", at: now, into: &outbox)
        }
        gather(answer, call, ticket, isRestart: false, session, at: now, into: &outbox)
    }

    /// The description in an answer, if it is one that a stream can use.
    private static func description(_ data: JSONValue?) -> SessionDescription? {
        guard let text = data?["sdp"]?.string else { return nil }
        do throws(SDPError) {
            let answer = try SessionDescription(parsing: text)
            return answer.credentials == nil ? nil : answer
        } catch { return nil }
    }

    // MARK: - Candidates

    /// Waits for the device's candidates, unless it has none to come.
    private mutating func gather(
        _ answer: SessionDescription, _ call: StreamSession.Accepted, _ ticket: TraceID, isRestart: Bool,
        _ session: StreamSession, at now: Instant, into outbox: inout [Output]
    ) {
        var session = session
        let gathering = StreamSession.Gathering(
            ticket: ticket, answer: answer, enough: now.advanced(by: settings.gathering),
            limit: now.advanced(by: settings.gatheringAtMost), isRestart: isRestart)
        session.state = .gathering(call, gathering)
        update(session)
        if answer.hasEnded { finish(gathering, call, session, into: &outbox) }
    }

    private mutating func take(
        _ signal: CallSignalled, _ session: StreamSession, at now: Instant, into outbox: inout [Output]
    ) {
        var session = session
        switch (signal.type, session.state) {
        case ("candidate", .gathering(let call, var gathering)):
            let isEnd = signal.data.map { gathering.answer.take(candidate: $0) } ?? false
            session.state = .gathering(call, gathering)
            update(session)
            if isEnd || gathering.due <= now { finish(gathering, call, session, into: &outbox) }
        case ("answer", .restarting(let call, let ticket, let offer, _)):
            guard let answer = Self.description(signal.data) else {
                return giveUp(.noRestart, call, session, into: &outbox)
            }
            session.offer = offer
            session.generation += 1
            gather(answer, call, ticket, isRestart: true, session, at: now, into: &outbox)
        case ("candidate", _): countLateCandidate()
        default: break  // An offer of the device's: a stream's client cannot be asked anything (RFC 9725 §3).
        }
    }

    private mutating func finish(
        _ gathering: StreamSession.Gathering, _ call: StreamSession.Accepted, _ session: StreamSession,
        into outbox: inout [Output]
    ) {
        let tag = session.entityTag
        if gathering.isRestart {
            let answer = gathering.answer
            let fragment = answer.fragment.text(mid: answer.carrier?.mid ?? "0", options: answer.iceOptions)
            reply(.restarted(fragment: fragment, entityTag: tag), to: session, into: &outbox)
        } else {
            let opening = session.opening
            // The answer is one-way, whichever directions the device's answer has.
            let text = gathering.answer.oneWay(opening.kind.offered.reversed).serialized()
            reply(.created(opening.id, opening.kind, answer: text, entityTag: tag), to: session, into: &outbox)
        }
        adopt(call, session)
    }

    /// From now on nothing is awaited.
    mutating func adopt(_ call: StreamSession.Accepted, _ session: StreamSession) {
        var session = session
        session.state = .up(call)
        update(session)
    }

    /// What was waited for did not come.
    mutating func expire(_ session: StreamSession, into outbox: inout [Output]) {
        switch session.state {
        case .gathering(let call, let gathering): finish(gathering, call, session, into: &outbox)
        case .restarting(let call, _, _, _): giveUp(.noRestart, call, session, into: &outbox)
        case .inviting, .withdrawing, .ringing, .up: break
        }
    }

    private mutating func giveUp(
        _ failure: StreamFailure, _ call: StreamSession.Accepted, _ session: StreamSession,
        into outbox: inout [Output]
    ) {
        reply(.failed(failure), to: session, into: &outbox)
        adopt(call, session)
    }

    // MARK: - PATCH

    /// Passes candidates on, or restarts ICE (RFC 9725 §4.3).
    mutating func patch(
        _ id: StreamID, _ fragment: ICEFragment, _ ifMatch: [String], _ ticket: TraceID, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard var session = sessions[id] else { return outbox.append(.reply(ticket, .failed(.unknownSession))) }
        guard !ifMatch.isEmpty else { return outbox.append(.reply(ticket, .failed(.conditionMissing))) }
        guard case .up(let call) = session.state else { return outbox.append(.reply(ticket, .failed(.underWay))) }
        let isNew = fragment.credentials.map { $0 != session.offer.credentials } ?? false
        // The RFC's example of a restart has the star in quotes; no session here has such a tag.
        switch (ifMatch == ["*"] || ifMatch == ["\"*\""], isNew) {
        case (true, true):
            guard let credentials = fragment.credentials else { return }
            let offer = session.offer.restarted(by: fragment, with: credentials)
            session.state = .restarting(call, ticket, offer, until: now.advanced(by: settings.restarting))
            update(session)
            let data: JSONValue = ["type": "offer", "sdp": .string(offer.serialized())]
            signal("offer", data, RequestID.offer, call, session, into: &outbox)
        case (false, _) where !ifMatch.contains(session.entityTag):
            outbox.append(.reply(ticket, .failed(.conditionFailed)))
        case (false, true):
            let problem = "new ICE credentials restart ICE, which requires If-Match: *"
            outbox.append(.reply(ticket, .failed(.unusable(problem))))
        case (_, false):
            trickle(fragment, call, session, into: &outbox)
            outbox.append(.reply(ticket, .taken))
        }
    }

    private mutating func trickle(
        _ fragment: ICEFragment, _ call: StreamSession.Accepted, _ session: StreamSession,
        into outbox: inout [Output]
    ) {
        func data(_ candidate: String, mid: String?) -> JSONValue {
            let place = session.offer.section(mid: mid, index: nil) ?? 0
            let name = mid ?? session.offer.media[safely: place]?.mid ?? "0"
            return ["candidate": .string(candidate), "sdpMid": .string(name), "sdpMLineIndex": .integer(Int64(place))]
        }
        for candidate in fragment.candidates {
            let data = data("candidate:\(candidate.value)", mid: candidate.mid)
            signal("candidate", data, RequestID.other, call, session, into: &outbox)
        }
        if fragment.hasEnded { signal("candidate", data("", mid: nil), RequestID.other, call, session, into: &outbox) }
    }

    private func signal(
        _ type: String, _ data: JSONValue, _ id: RPCID, _ call: StreamSession.Accepted, _ session: StreamSession,
        into outbox: inout [Output]
    ) {
        let signal = CallSignal(invite: call.invite, type: type, data: data)
        outbox.append(.request(session.opening.connection, id, .callSignal(signal)))
    }
}

extension Array {
    fileprivate subscript(safely index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
