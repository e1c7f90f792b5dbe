import SignalWire
import Timekeeping

/// Signals and hang-ups.
extension ExchangeCore {
    /// Passes a signal to the peer of a call, or of an invite that rings (CALL-1: candidates need not wait).
    mutating func passSignal(
        _ params: CallSignal, from session: Session, at now: Instant, into outbox: inout [Output]
    ) throws(RPCError) {
        try Self.check(params, isInternal: session.isInternal)
        let endpoint = session.endpoint
        let event = ExchangeEvent.callSignal(
            CallSignalled(invite: params.invite, type: params.type, data: params.data, from: endpoint.user))
        if let call = calls[params.invite] {
            guard let peer = call.peer(of: endpoint) else {
                throw RPCError(.notYours, "This device is not in that call.")
            }
            tell(peer, event, at: now, into: &outbox)
            return
        }
        guard let record = invites[params.invite], !record.isEnded else { throw Self.unknownCall }
        if record.inviter == endpoint {
            for user in record.pending { tell(user, record.ringing(of: user), event, at: now, into: &outbox) }
        } else if record.state(of: endpoint.user) == .pending {
            tell(record.inviter, event, at: now, into: &outbox)
        } else {
            throw RPCError(.notYours, "This device is neither inviter nor invitee.")
        }
    }

    private static func check(_ params: CallSignal, isInternal: Bool) throws(RPCError) {
        guard params.type.utf8.count <= SignalLimits.signalTypeBytes else {
            throw RPCError(
                .tooLarge, "type has at most \(SignalLimits.signalTypeBytes) bytes.",
                limit: SignalLimits.signalTypeBytes)
        }
        guard let data = params.data else { return }
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
        guard let call = calls[params.invite] else { throw Self.unknownCall }
        guard call.peer(of: session.endpoint) != nil else {
            throw RPCError(.notYours, "This device is not in that call.")
        }
        guard params.reason.utf8.count <= SignalLimits.nameBytes else {
            throw RPCError(
                .tooLarge, "reason has at most \(SignalLimits.nameBytes) bytes.", limit: SignalLimits.nameBytes)
        }
        guard params.durationMilliseconds >= 0 else {
            throw RPCError(.invalidParams, "duration_ms must not be negative.")
        }
        end(
            call, by: session.endpoint, reason: params.reason, duration: params.durationMilliseconds, at: now,
            into: &outbox)
    }

    /// Ends a call and tells the other side.
    mutating func end(
        _ call: Call, by endpoint: Endpoint, reason: String, duration: Int64, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard let peer = call.peer(of: endpoint) else { return }
        calls.remove(call)
        let event = CallEnded(
            invite: call.invite, reason: reason, durationMilliseconds: duration, from: endpoint.user)
        tell(peer, .callEnded(event), at: now, into: &outbox)
        outbox.append(.note(.callEnded(call.invite, reason: reason, durationMilliseconds: duration)))
    }

    /// Drops a call that nobody can hang up any more, since both its devices have been gone for the resume window; a
    /// device that the exchange stands for is never gone by itself, and hears of it.
    mutating func dropOrphan(_ invite: InviteID, at now: Instant, into outbox: inout [Output]) {
        guard let call = calls[invite] else { return }
        let left = [call.inviter, call.invitee].compactMap { sessions.session(at: $0) }
        guard left.allSatisfy(\.isInternal) else { return }
        calls.remove(call)
        let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
        for session in left {
            let event = CallEnded(
                invite: invite, reason: "connectionLost", durationMilliseconds: duration,
                from: call.peer(of: session.endpoint)?.user ?? "")
            tell(session.endpoint, .callEnded(event), at: now, into: &outbox)
        }
        outbox.append(.note(.callEnded(invite, reason: "connectionLost", durationMilliseconds: duration)))
    }

    private static let unknownCall = RPCError(
        .unknownCall, "The invite has not become a call, or the call is over.")
}
