@testable import ExchangeCore
import JSON
import SignalWire
import Core

/// Looks at all that came of one step.
extension Oracle {
    /// Judges what came of a frame, or of something else that happened.
    ///
    /// - Parameter isDelivered: Whether clients get any of it; if not, the process died after it was written.
    func judge(_ outputs: [ExchangeCore.Output], of frame: Frame? = nil, isDelivered: Bool = true) throws {
        var answers = 0
        var hasHeard = false
        let echoed = frame.map { Secrets.all(in: $0.bytes) } ?? []
        let wasOpen = frame.map { open.contains($0.connection) && closed[$0.connection] == nil } ?? false
        for output in outputs {
            switch output {
            case .respond(let connection, let id, let response):
                let bytes = try response.message(id: id)
                try answer(frame, connection, bytes, hasHeard, &answers)
                if let frame { try accept(bytes, to: frame, echoed, isDelivered) }
            case .refuse(let connection, let id, let error):
                let bytes = SignalCoding.failure(id: id, error)
                try answer(frame, connection, bytes, hasHeard, &answers)
                try judge(Secrets.all(in: bytes), to: seat(on: connection)?.place.bearer, but: echoed, "a refusal")
                if let frame { try refused(frame, error) }
            case .event(let connections, let event):
                if connections.contains(where: { $0 == frame?.connection }) { hasHeard = true }
                if isDelivered { try hear(event, on: connections, resumes: frame?.method == "session.start") }
            case .close(let connection, let reason): try close(connection, reason)
            case .note(let note): try hear(note)
            case .obeyed, .traced: break
            case .push(let push): try judge(push)
            case .persist(.event(let event)): note(event)
            case .persist(.callForgotten(let invite, let invitee)):
                try callEnds(invite.text, invitee.text, isOrphan: wasOrphaned(invite, outputs))
            case .persist: break
            }
        }
        if let frame, wasOpen { try require(answers == 1, "\(answers) answers to \(frame.summary)") }
        try settle(isDelivered)
    }

    private func answer(
        _ frame: Frame?, _ connection: ConnectionID, _ bytes: [UInt8], _ hasHeard: Bool, _ answers: inout Int
    ) throws(Violation) {
        answers += 1
        try require(connection == frame?.connection, "\(connection.name) is answered and has not asked")
        try require(!hasHeard, "an event came before the answer that it follows from")
        try require(bytes.count <= SignalLimits.deliveredBytes, "an answer has \(bytes.count) bytes")
        guard let frame, frame.flaw == nil else { return }
        struct Answer: Decodable { var id: JSONValue }
        let id = try? SignalCoding.decode(Answer.self, from: bytes, within: .delivery).id
        try require(id == frame.id, "the answer has another id than \(frame.summary)")
    }

    private func accept(_ bytes: [UInt8], to frame: Frame, _ echoed: Set<String>, _ isDelivered: Bool) throws {
        try require(frame.flaw == nil, "accepted, and should be refused with \(String(describing: frame.flaw))")
        let heard = try SignalCoding.decode(HeardResult.self, from: bytes, within: .delivery).result
        count(frame.method)
        try apply(frame, heard, hasMore: HeardResult.hasMore(bytes))
        try judge(
            Secrets.all(in: bytes), to: seat(on: frame.connection)?.place.bearer, but: echoed,
            "the answer to \(frame.method)")
    }

    private func refused(_ frame: Frame, _ error: RPCError) throws(Violation) {
        count("refused: \(error.data?.name ?? "")")
        if frame.method == "session.start", let (number, _) = grant(of: frame.text("token")) {
            logins[number].isShownPerhaps = true
        }
        if let flaw = frame.flaw {
            try require(error.known == flaw, "refused with \(error), and should be with \(flaw): \(frame.summary)")
        }
        if frame.method == "invite.send" { try judgeStrangersShare(frame, error) }
        if let excuses = frame.excuses {
            let isExcused = error.known.map(excuses.contains) ?? false
            try require(isExcused, "a correct client's \(frame.summary) is refused: \(error)")
        }
    }

    // MARK: - Events

    /// - Parameter resumes: Somebody begins a session, which may be told of what was before it.
    private func hear(_ told: DeliveredEvent, on connections: [ConnectionID], resumes: Bool) throws {
        let bytes = told.message
        try require(bytes.count <= SignalLimits.deliveredBytes, "an event has \(bytes.count) bytes")
        let event = try SignalCoding.decode(HeardEvent.self, from: bytes, within: .delivery)
        let secrets = Secrets.all(in: bytes)
        let (key, params) = (event.key, event.params)
        try require(Set(connections).count == connections.count, "\(key) is sent twice on a connection")
        for connection in connections where closed[connection] == nil {
            guard let seat = seat(on: connection) else {
                if let bearer = endedNow[connection] {
                    try judge(secrets, to: bearer, key)
                    continue
                }
                throw Violation(description: "\(key) goes to \(connection.name), which has no session")
            }
            count(params.type)
            try judge(params, to: seat, isOld: resumes && connections.count == 1)
            try judge(secrets, to: seat.place.bearer, key)
            try require(
                params.sequence > seat.floor,
                "\(key) has the number \(params.sequence) after \(seat.floor) on \(connection.name)")
            // A device may be in several calls with others of its own user.
            let isOwn = params.type == "callEnded" && params.data.from == seat.user
            if event.isUnique, !isOwn, let before = seats[seat.id]?.told.updateValue(params.sequence, forKey: key) {
                try require(before == params.sequence, "\(key) came as \(before) and again as \(params.sequence)")
            }
            seats[seat.id]?.floor = params.sequence
            seats[seat.id]?.heard = max(seat.heard, params.sequence)
            seats[seat.id]?.missing.remove(key)
            due.remove(Duty(seat: seat.id, key: key))
        }
    }

    /// Whether this kind of event may come to somebody at all.
    ///
    /// - Parameter isOld: It may have happened before, so that it is for those of a group that is no more, too.
    private func judge(_ params: HeardEvent.Params, to seat: Seat, isOld: Bool) throws(Violation) {
        let data = params.data
        if !seat.place.bearer.hasAccount {
            let kinds = [
                "roomSignal", "connectionCreated", "connectionDestroyed", "streamDropped", "streamResumed",
                "tokenExpiring", "moveRequested",
            ]
            try require(kinds.contains(params.type) && data.invite == nil, "\(seat.place) hears \(params.type)")
            if let bound = seat.room, let room = data.room {
                try require(bound == room, "\(seat.place) of room \(bound) hears of room \(room)")
            }
        }
        let invite = data.invite.flatMap { invites[$0] }
        let isInGroup =
            isMember(seat.user, of: invite?.group) || (isOld && invite?.formerMembers.contains(seat.user) == true)
        switch params.type {
        case "inviteReceived":
            let isParty = invite.map { $0.invitees.contains(seat.user) } ?? false || isInGroup
            // What a device was told when it registered it may ask for again, registered or not, in a later session as well.
            let mayHear = seat.isRegistered || (isOld && onceRegistered.contains(seat.place))
            try require(isParty && mayHear, "\(seat.place) hears inviteReceived of \(String(describing: invite))")
            try require(invite?.inviter != seat.place, "\(seat.place) hears of its own invite")
        case "inviteAccepted", "inviteRejected":
            let isParty = invite.map { $0.inviter == seat.place || isInGroup } ?? true
            try require(isParty, "\(seat.place) hears \(params.type) of \(String(describing: invite?.inviter))")
        case "inviteEnded":
            try require(invite.map { $0.inviter == seat.place } ?? true, "\(seat.place) hears inviteEnded")
        case "inviteHandled":
            let isParty = invite.map { $0.invitees.contains(seat.user) } ?? true
            try require(isParty && data.device != seat.place.device, "\(seat.place) hears inviteHandled")
        case "presenceChanged":
            try require(seat.hearsPresence, "\(seat.place) hears presenceChanged and has not asked for it")
        case "streamDropped", "streamResumed": allowPeer(data, to: seat)
        default: break
        }
    }

    private func isMember(_ user: String, of group: String?) -> Bool {
        group.flatMap { groups[$0]?.everybody.contains(user) } ?? false
    }

    /// A device goes or comes back: its peers in calls are told so by its connection's name, those that are away when they
    /// come back, whether the call is over by then or not.
    func allowPeers(_ seat: Seat?) {
        guard let seat else { return }
        allow([seat.name], calls.values.joined().compactMap { $0.peer(of: seat.place)?.bearer })
    }

    /// The peer of a call knows the other's connection by its name.
    private func allowPeer(_ data: HeardEvent.Body, to seat: Seat) {
        guard let invite = data.invite, let name = data.connection, let user = data.user else { return }
        let isPeer = (calls[invite] ?? []).contains { $0.peer(of: seat.place)?.bearer == account(user) }
        if isPeer { allow([name], [seat.place.bearer]) }
    }

    /// A call was dropped because neither of its devices has come back.
    private func wasOrphaned(_ id: InviteID, _ outputs: [ExchangeCore.Output]) -> Bool {
        outputs.contains { if case .note(.callEnded(id, _, "connectionLost", _)) = $0 { true } else { false } }
    }

    private func note(_ event: StoredEvent) {
        let bearer = bearer(of: event.principal)
        load[bearer, default: []].append((now, event.body.bytes))
    }

    private func bearer(of principal: Principal) -> Bearer {
        switch principal.kind {
        case .account: account(principal.user.text)
        case .guest(let login): .guest(login: logins.firstIndex { $0.digest == login } ?? -1)
        case .visitor(let room): .visitor(principal.user.text, room: room.text)
        }
    }

    // MARK: - The rest

    private func judge(_ push: StoredPush) throws(Violation) {
        count("push")
        let owner = account(push.user.text)
        try require(accounts.contains(push.user.text), "\(push.user) is pushed to and has no account")
        try judge(Secrets.all(in: Array(push.target.token.secret.utf8)), to: owner, "a push's token")
        try judge(Secrets.all(in: Array((push.payload?.text ?? "").utf8)), to: owner, "a push's payload")
    }

    private func hear(_ note: ExchangeNote) throws(Violation) {
        switch note {
        case .inviteTimedOut(let id): try timeOut(id.text)
        case .inviteGaveWay(let id, let user): try gaveWay(id.text, with: user.text)
        case .inviteCancelled(let id): withdrawn(id.text)
        case .sessionStarted(let endpoint, let connection, _): startedAs = (connection, bearer(of: endpoint.principal))
        case .inviteEndedByOperator(let id):
            try require(endedByOperator.contains(id.text), "\(id) is ended for an operator that has not asked")
        case .loginEnded, .sessionEnded, .sessionLost, .inviteSent, .inviteAnswered, .callEnded, .participantRemoved,
            .memberRemoved, .moveRequested, .connectionRefused, .tokenExpired, .pushMade, .pushFailed, .pushDied:
            break
        }
    }

    private func close(_ connection: ConnectionID, _ reason: CloseReason) throws(Violation) {
        count("closed: \(reason.text)")
        mustClose.remove(connection)
        guard open.contains(connection) else { return }
        closed[connection] = reason
        switch reason {
        case .loggedOut, .sessionEnded: if let id = seatByConnection[connection] { try endsByLogout(id) }
        case .tokenExpired:
            if let seat = seat(on: connection) {
                let isOver = seat.tokenEnds <= now.advanced(by: .milliseconds(1))
                try require(isOver, "\(seat.place) is closed before its token ends")
            }
            lose(connection)
        case .policy("too many messages"): lose(connection)
        case .policy, .tokenRejected, .goingDown, .protocolError, .tooBig, .notKept:
            for duty in due where duty.seat == seatByConnection[connection] {
                seats[duty.seat]?.missing.insert(duty.key)
                due.remove(duty)
            }
        }
    }

    /// Everything that this step owes has come.
    private func settle(_ isDelivered: Bool) throws(Violation) {
        endedNow = [:]
        endedByOperator = []
        guard isDelivered else { return restart() }
        for duty in due {
            let seat = seats[duty.seat]
            throw Violation(description: "\(seat.map { "\($0.place)" } ?? "") is not told \(duty.key)")
        }
        if let connection = mustClose.first { throw Violation(description: "\(connection.name) stays open") }
    }
}
