import JSON
import SignalWire
import Timekeeping

/// Signals and hang-ups.
extension ExchangeCore {
    /// Passes a signal to the peer of a call, or of an invite that rings (CALL-1: candidates need not wait).
    mutating func passSignal(
        _ params: CallSignal, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        try Self.checkSignal(type: params.type, params.data, isInternal: session.isInternal)
        let endpoint = session.endpoint
        let event = body(
            of: .callSignal(
                CallSignalled(invite: params.invite, type: params.type, data: params.data, from: endpoint.user)))
        if let call = try call(params.invite, params.peer, of: endpoint) {
            guard let peer = call.peer(of: endpoint) else { throw Self.unknownCall }
            try afford(cost(of: event, for: 1))
            return tell(peer, event, at: now, into: &outbox)
        }
        guard let record = invites[params.invite], !record.isEnded else {
            throw noCall(params.invite, for: endpoint)
        }
        if record.inviter == endpoint {
            let pending = record.pending.filter { params.peer == nil || params.peer == $0 }
            guard !pending.isEmpty else { throw Self.unknownCall }
            try afford(cost(of: event, for: pending.count))
            for user in pending { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        } else if record.state(of: endpoint.user) == .pending, session.isRegistered {
            try afford(cost(of: event, for: 1))
            tell(record.inviter, event, at: now, into: &outbox)
        } else {
            throw RPCError(.notYours, "This device is neither inviter nor invitee.")
        }
    }

    /// The call of an invite that a device is in, with `peer` if that is given; `nil` if it is in none.
    ///
    /// - Throws: `invalidParams` if the invite has become several calls, and the inviter does not say which it means.
    private func call(_ invite: InviteID, _ peer: UserID?, of endpoint: Endpoint) throws(RPCError) -> Call? {
        let own = calls.calls(of: invite).filter { $0.peer(of: endpoint) != nil }
        if let peer { return own.first { $0.peer(of: endpoint)?.user == peer } }
        if own.first?.inviter == endpoint, calls.isAmbiguous(invite) {
            throw RPCError(.invalidParams, "Several users have accepted the invite: peer must say whom this is for.")
        }
        return own.first
    }

    /// Why a device is in no call of an invite, or not in the one that it means.
    private func noCall(_ invite: InviteID, for endpoint: Endpoint) -> RPCError {
        let others = calls.calls(of: invite)
        let isParty = others.contains { $0.peer(of: endpoint) != nil }
        guard others.isEmpty || isParty else { return RPCError(.notYours, "This device is not in that call.") }
        return Self.unknownCall
    }

    static func checkSignal(type: String, _ data: JSONValue?, isInternal: Bool = false) throws(RPCError) {
        guard type.utf8.count <= SignalLimits.signalTypeBytes else {
            throw RPCError(
                .tooLarge, "type has at most \(SignalLimits.signalTypeBytes) bytes.",
                limit: SignalLimits.signalTypeBytes)
        }
        guard let data else { return }
        // What came in as JSON goes out as JSON: only its size is in question.
        let size = (try? SignalCoding.encode(data).count) ?? .max
        let limit = isInternal ? SignalLimits.streamSignalDataBytes : SignalLimits.signalDataBytes
        guard size <= limit else {
            throw RPCError(.tooLarge, "data has at most \(limit) bytes as JSON text.", limit: limit)
        }
    }

    mutating func endCall(
        _ params: CallEnd, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        guard let call = try call(params.invite, params.peer, of: session.endpoint) else {
            throw noCall(params.invite, for: session.endpoint)
        }
        guard CallEnd.reasons.contains(params.reason) else {
            throw RPCError(
                .invalidParams, "reason must be one of \(CallEnd.reasons.sorted().joined(separator: ", ")).")
        }
        guard params.cause.map(CallEnd.isCause) ?? true else {
            throw RPCError(.invalidParams, "cause is a word of at most \(SignalLimits.causeBytes) letters.")
        }
        guard params.durationMilliseconds >= 0 else {
            throw RPCError(.invalidParams, "duration_ms must not be negative.")
        }
        end(
            call, by: session.endpoint, reason: params.reason, cause: params.cause,
            duration: params.durationMilliseconds, at: now, into: &outbox)
    }

    /// Ends a call and tells the other side.
    mutating func end(
        _ call: Call, by endpoint: Endpoint, reason: String, cause: String? = nil, duration: Int64, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard let peer = call.peer(of: endpoint) else { return }
        calls.remove(call)
        recordEnd(
            of: call.invite, with: call.invitee.user, reason: reason, duration: duration, at: now, into: &outbox)
        let event = CallEnded(
            invite: call.invite, reason: reason, cause: cause, durationMilliseconds: duration, from: endpoint.user)
        tell(peer, .callEnded(event), at: now, into: &outbox)
        outbox.append(.note(.callEnded(call.invite, reason: reason, durationMilliseconds: duration)))
    }

    /// Drops a call that nobody can hang up any more, since both its devices have been gone for the resume window; a
    /// device that the exchange stands for is never gone by itself, and hears of it.
    mutating func dropOrphan(_ id: CallKey, at now: Instant, into outbox: inout [Output]) {
        guard let call = calls[id] else { return }
        actsFor = call.inviter.principal
        let invite = id.invite
        let ends = [call.inviter, call.invitee]
        let left = ends.compactMap { sessions.session(at: $0) }
        // A device that went later than the other has the whole window too, and asks for this again when that ends.
        guard left.allSatisfy(\.isInternal), !ends.contains(where: { sessions.canReturn($0, at: now) }) else { return }
        calls.remove(call)
        let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
        recordEnd(
            of: call.invite, with: call.invitee.user, reason: "connectionLost", duration: duration, at: now,
            into: &outbox)
        for session in left {
            guard let peer = call.peer(of: session.endpoint) else { continue }
            let event = CallEnded(
                invite: invite, reason: "connectionLost", durationMilliseconds: duration, from: peer.user)
            tell(session.endpoint, .callEnded(event), at: now, into: &outbox)
        }
        outbox.append(.note(.callEnded(invite, reason: "connectionLost", durationMilliseconds: duration)))
    }

    private static let unknownCall = RPCError(
        .unknownCall, "The invite has not become a call, or the call is over.")
}
