import JSON
import SignalWire

/// Checks of a request that do not depend on the state of the exchange.
enum RequestChecks {
    /// Checks a display name: any text is allowed, except what corrupts a log or a screen.
    static func check(name: String, _ member: String) throws(RPCError) {
        guard name.utf8.count <= SignalLimits.nameBytes else {
            throw RPCError(
                .tooLarge, "\(member) has at most \(SignalLimits.nameBytes) bytes.", limit: SignalLimits.nameBytes)
        }
        let isPlain = name.unicodeScalars.allSatisfy {
            $0.properties.generalCategory != .control && !$0.properties.isBidiControl
        }
        guard isPlain else {
            throw RPCError(.invalidParams, "\(member) must have no control and no bidirectional characters.")
        }
    }

    static func check(_ device: DeviceDescription) throws(RPCError) {
        try check(name: device.name, "device.name")
        guard device.capabilities.count <= SignalLimits.capabilities else {
            throw RPCError(
                .tooLarge, "A device lists at most \(SignalLimits.capabilities) capabilities.",
                limit: SignalLimits.capabilities)
        }
    }

    static func check(_ targets: [DeviceRegister.PushTarget]) throws(RPCError) {
        guard targets.count <= SignalLimits.pushTargets else {
            throw RPCError(
                .tooLarge, "A device has at most \(SignalLimits.pushTargets) push tokens.",
                limit: SignalLimits.pushTargets)
        }
        for target in targets {
            guard target.token.secret.utf8.count <= SignalLimits.pushTokenBytes else {
                throw RPCError(
                    .tooLarge, "A push token has at most \(SignalLimits.pushTokenBytes) bytes.",
                    limit: SignalLimits.pushTokenBytes)
            }
        }
    }

    /// A client that names the user or application of its token is refused if the token belongs to another (AUTH-4,
    /// AUTH-8).
    static func check(_ start: SessionStart, against grant: Grant) throws(RPCError) {
        if let user = start.user, user != grant.user {
            throw RPCError(.tokenRejected, "The token belongs to another user; log in as this one.")
        }
        if let application = start.application, application != grant.application {
            throw RPCError(.tokenRejected, "The token belongs to another application; log in with this one.")
        }
        try check(start.device)
    }

    static func check(_ create: GroupCreate) throws(RPCError) {
        if let name = create.name { try check(name: name, "name") }
        guard (create.members?.count ?? 0) < SignalLimits.groupMembers else {
            throw RPCError(
                .tooLarge, "A group has at most \(SignalLimits.groupMembers) members, its owner included.",
                limit: SignalLimits.groupMembers)
        }
    }

    static func check(_ join: RoomJoin) throws(RPCError) {
        guard (join.data?.utf8.count ?? 0) <= SignalLimits.connectionDataBytes else {
            throw RPCError(
                .tooLarge, "data has at most \(SignalLimits.connectionDataBytes) bytes.",
                limit: SignalLimits.connectionDataBytes)
        }
    }

    static func check(_ invite: InviteSend) throws(RPCError) {
        guard !invite.to.isEmpty else { throw RPCError(.invalidParams, "to must name at least one user.") }
        guard invite.to.count <= SignalLimits.invitees else {
            throw RPCError(
                .tooLarge, "An invite names at most \(SignalLimits.invitees) users.", limit: SignalLimits.invitees)
        }
        guard invite.ttl >= 0, invite.ttl <= SignalLimits.ttlSeconds else {
            throw RPCError(
                .invalidParams, "ttl must be from 0 (never) to \(Int(SignalLimits.ttlSeconds)) seconds.")
        }
    }

    /// Invite data is relayed unchanged, so it must fit every receiver's limits.
    static func check(inviteData data: [JSONValue?], from session: Session) throws(RPCError) {
        let limit = session.isInternal ? SignalLimits.streamInviteDataBytes : SignalLimits.inviteDataBytes
        let bytes = data.reduce(0) { $0 + ($1?.textBytes ?? 0) }
        guard bytes <= limit else {
            throw RPCError(
                .tooLarge,
                "The data of an invite or an answer has at most \(limit) bytes as JSON text; this has \(bytes).",
                limit: limit)
        }
    }

    static func check(signal type: String, _ data: JSONValue?, isInternal: Bool = false) throws(RPCError) {
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

    static func check(_ end: CallEnd) throws(RPCError) {
        guard CallEnd.reasons.contains(end.reason) else {
            throw RPCError(
                .invalidParams, "reason must be one of \(CallEnd.reasons.sorted().joined(separator: ", ")).")
        }
        guard end.cause.map(CallEnd.isCause) ?? true else {
            throw RPCError(.invalidParams, "cause must be a word of at most \(SignalLimits.causeBytes) letters.")
        }
        guard end.durationMilliseconds >= 0 else {
            throw RPCError(.invalidParams, "duration_ms must not be negative.")
        }
    }
}
