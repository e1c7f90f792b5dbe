internal import CallControl
internal import ICE
internal import JSON
internal import Logging
internal import MediaEngine
internal import NetworkAddress
internal import SDP
internal import SecureTransport
internal import SignalingClient

// A call's connection: ICE and DTLS, the candidates that go back and forth, and what is negotiated anew.
extension Device {
    /// Begins a call's connection, and lets its negotiation bring it.
    func connect(_ id: CallID, isControlling: Bool) throws {
        guard calls[id]?.connection == nil, let placement = calls[id]?.placement else { return }
        let credentials = media.makeCredentials()
        let plan = try media.connectionPlan(credentials, isControlling: isControlling)
        let (connection, candidates) = try engine.connect(plan, at: placement)
        calls[id]?.connection = connection
        calls[id]?.negotiation?.bring(credentials, candidates: candidates)
    }

    /// Begins the connection of a call whose peer offers DTLS and no ICE, at an address of the call's own.
    func connectDirectly(_ id: CallID) throws {
        guard calls[id]?.connection == nil, let placement = calls[id]?.placement else { return }
        let plan = try media.connectionPlan(media.makeCredentials(), isControlling: false)
        let (connection, addresses) = try engine.connectDirectly(plan, at: placement)
        calls[id]?.connection = connection
        calls[id]?.negotiation?.receive(atOneOf: addresses)
    }

    /// Tells a call's connection what was agreed, and the candidates that came early.
    func connect(_ id: CallID, to remote: RemoteConnection) {
        guard let connection = calls[id]?.connection else { return }
        engine.connect(connection, to: remote)
        give(calls[id]?.candidates.peerIsKnown() ?? [], to: connection)
    }

    private func give(_ candidates: [CandidateExchange.Candidate], to connection: MediaCallID) {
        for candidate in candidates {
            switch candidate {
            case .candidate(let text): engine.addCandidate(text, to: connection)
            case .end: engine.endCandidates(of: connection)
            }
        }
    }

    /// A call without ICE needs no connection, though its offer had looked like it.
    func dropConnection(of id: CallID) {
        guard let connection = calls[id]?.connection else { return }
        engine.stop(connection)
        calls[id]?.connection = nil
    }

    /// Candidates of ours may go out: the peer can tell whose they are.
    func peerKnows(_ id: CallID) {
        for data in calls[id]?.candidates.peerKnowsCall() ?? [] { signal("candidate", data, of: id) }
    }

    func found(_ candidate: String?, for id: CallID) {
        guard let mid = calls[id]?.negotiation?.mid else { return }
        for data in calls[id]?.candidates.found(candidate, mid: mid) ?? [] { signal("candidate", data, of: id) }
    }

    /// Takes what the peer signals about a call's media; false if it is something else.
    func take(_ signal: CallSignal) -> Bool {
        guard ["candidate", "offer", "answer"].contains(signal.type),
            let (id, call) = calls.first(where: { $0.value.invite == signal.invite })
        else { return false }
        // One of several who were asked, and not the one who got the call.
        guard call.machine.isWith(signal.from) else { return true }
        switch signal.type {
        case "candidate":
            let candidates = calls[id]?.candidates.received(signal.data) ?? []
            if let connection = calls[id]?.connection { give(candidates, to: connection) }
        case "offer": answer(offer: signal.data, in: id)
        default: accept(answer: signal.data, in: id)
        }
        return true
    }

    /// The peer negotiates anew: hold, resume, another microphone, an ICE restart.
    private func answer(offer: JSONValue, in id: CallID) {
        guard var call = calls[id], var negotiation = call.negotiation, let stream = call.media else { return }
        if negotiation.hasOffered {
            // Offers have crossed: the inviter's counts (docs/protocol.md).
            if call.machine.isOutgoing { return }
            negotiation.yield()
        }
        do {
            let changes = try negotiation.receive(offer)
            if changes.contains(.ice), let connection = call.connection {
                let credentials = media.makeCredentials()
                engine.restart(connection, with: credentials)
                // The candidates follow one by one, as they did not have to the first time.
                negotiation.bring(credentials, candidates: [])
            }
            if changes.contains(.keys) { media.renewAssociation(of: &negotiation) }
            let (answer, audio) = try negotiation.answer()
            let owesRestart = negotiation.takeOwedRestart(after: changes)
            call.negotiation = negotiation
            calls[id] = call
            if changes.renewsConnection, let connection = call.connection,
                let remote = try negotiation.remote(for: audio)
            {
                engine.connect(connection, to: remote.keepingKeys(unless: changes.contains(.keys)))
            }
            if changes.contains(.direction) {
                engine.setDirection(stream, sends: audio.direction.sends, receives: audio.direction.receives)
            }
            try apply(changes, audio, to: id)
            signal("answer", answer, of: id)
            if owesRestart { restartICE(of: id) }
        } catch {
            logger.warning(
                "The peer's new offer cannot be taken; the call goes on as it was",
                metadata: ["call": "\(id)", "error": "\(error)"])
        }
    }

    func signal(_ type: String, _ data: JSONValue, of id: CallID) {
        guard let call = calls[id], let invite = call.invite else { return }
        let peer = call.machine.namedPeer
        let earlier = call.signalling
        calls[id]?.signalling = Task { [service, logger] in
            // In order: candidates come before their end.
            await earlier?.value
            do throws(SignalingError) {
                try await service.send(CallSignal(invite: invite, type: type, data: data, peer: peer))
            } catch {
                logger.debug("A signal did not reach the peer", metadata: ["type": "\(type)", "error": "\(error)"])
            }
        }
    }
}

extension NegotiationChanges {
    /// The connection is to hear of it: ICE begins anew, or a DTLS association does.
    var renewsConnection: Bool { contains(.ice) || contains(.keys) }
}

extension RemoteConnection {
    /// The same with the DTLS association of before, unless there is to be a new one (RFC 8842 §3.1).
    func keepingKeys(unless areNew: Bool) -> RemoteConnection {
        guard !areNew else { return self }
        var copy = self
        copy.handshake = nil
        return copy
    }
}
