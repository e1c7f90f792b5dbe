import SignalWire
import Core

/// What a piece of work costs the exchange: 1, plus 1 for each change that is written and each connection that receives
/// an event, plus 1 for a fixed number of bytes that are read, kept, answered with, or sent as events. An event with
/// several receivers is kept once, and counts once. If the work takes longer than that allows for, it costs the time it
/// takes.
package struct WorkCost {
    /// Bytes that are read, kept or answered with for 1.
    private static let bytesPerUnit = 4_096
    /// Bytes that are sent as events for 1: those are copied, and nothing more.
    static let sentBytesPerUnit = 16_384
    /// How long a piece of work may take per unit of cost. This limits a round's duration for any JSON: a list of small
    /// numbers takes a hundred times as long to read as a string of as many bytes.
    static let timePerUnit = Duration.microseconds(50)

    /// Bytes of the message that asks for it.
    package let messageBytes: Int
    /// How long it was worked on before it had its turn.
    package var time = Duration.zero
    private var pieces = 0
    private var bytes = 0
    private var sentBytes = 0
    private var lastBody: UInt64?

    /// The work that a message of this size causes.
    package init(messageBytes: Int = 0) { self.messageBytes = messageBytes }

    /// The cost up to which a message of an unknown payer is read at once, to find out the payer: more than any valid
    /// `session.start` or request for a token costs.
    package static let littleReading = 8
    /// Commas and opening brackets that take as long to read as ``timePerUnit``: each value but the first has one before it.
    private static let marksPerUnit = 24

    /// What it will cost at most to read JSON text, seen without reading it.
    package static func reading(_ text: [UInt8]) -> Int {
        var marks = 0
        for byte in text where byte == UInt8(ascii: ",") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") {
            marks += 1
        }
        return 1 + text.count / bytesPerUnit + marks / marksPerUnit
    }

    /// The expected cost of a message that makes `pieces` changes and events.
    static func expected(pieces: Int, bytes: Int, answerBytes: Int = 0) -> Int {
        var cost = WorkCost(messageBytes: bytes + answerBytes)
        cost.pieces = pieces
        if pieces > 0 { cost.bytes += bytes }
        // About half of them are events that are sent.
        cost.sentBytes = pieces * bytes / 2
        return cost.units
    }

    /// Adds what came of it.
    package mutating func add(_ outputs: [ExchangeCore.Output]) {
        for output in outputs {
            switch output {
            case .persist(.event(let event)):
                pieces += 1
                if event.body.number != lastBody { bytes += Weight.body(event.body) }
                lastBody = event.body.number
            case .persist(let change):
                pieces += 1
                bytes += Weight.of(change)
            case .push(let push):
                pieces += 1
                bytes += Weight.of(push)
            case .event(let connections, let event):
                pieces += connections.count
                sentBytes += connections.count * event.body.bytes
            case .respond(_, _, let response): bytes += response.bytes
            case .refuse, .close, .obeyed, .note, .traced: break
            }
        }
    }

    /// The cost, if its turn took this long.
    package func units(after turn: Duration = .zero) -> Int {
        max(units, Int(clamping: (time + turn).nanoseconds / Self.timePerUnit.nanoseconds))
    }

    private var units: Int {
        1 + pieces + (messageBytes + bytes) / Self.bytesPerUnit + sentBytes / Self.sentBytesPerUnit
    }
}

extension ExchangeCore {
    /// The estimated cost of a client's input, so that an input that notifies many clients waits for its turn. The
    /// actual cost is charged when it is done.
    package mutating func expectedCost(of input: Input, bytes: Int) -> Int {
        switch input {
        case .request(let connection, _, let request):
            WorkCost.expected(
                pieces: expectedPieces(of: request, from: connection), bytes: bytes,
                answerBytes: Self.expectedAnswerBytes(to: request))
        case .disconnected(let connection): WorkCost.expected(pieces: peers(of: connection), bytes: 0)
        case .ordered(_, let order): WorkCost.expected(pieces: expectedPieces(of: order), bytes: 0)
        case .due(.sessionIsForgotten(let session)): WorkCost.expected(pieces: 2 + peers(of: session), bytes: 0)
        case .due(.inviteTimesOut(let invite)):
            WorkCost.expected(pieces: 4 * (invites[invite]?.invitees.count ?? 0), bytes: 0)
        default: 1
        }
    }

    private static func expectedAnswerBytes(to request: ClientRequest) -> Int {
        if case .inviteList = request { SignalLimits.pageBytes } else { 0 }
    }

    private func expectedPieces(of request: ClientRequest, from connection: ConnectionID) -> Int {
        switch request {
        case .roomSignal(let signal): signal.to == nil ? 2 * rooms.occupants(of: signal.room).count : 2
        case .roomJoin(let join): 2 * rooms.occupants(of: join.room).count
        case .roomLeave(let leave): 2 * rooms.occupants(of: leave.room).count
        case .sessionEnd: peers(of: connection)
        case .inviteSend(let invite):
            4 * (invite.group.flatMap { groups[$0]?.members.count } ?? invite.to.count)
        case .inviteCancel(let cancel): 4 * (invites[cancel.invite]?.invitees.count ?? 0)
        case .inviteModify(let modify): 4 * (invites[modify.invite]?.invitees.count ?? 0)
        case .groupJoin(let join): 2 * (groups[join.group]?.members.count ?? 0)
        case .groupLeave(let leave): 2 * (groups[leave.group]?.members.count ?? 0)
        case .groupDismiss(let dismiss): 2 * (groups[dismiss.group]?.members.count ?? 0)
        case .sessionStart(let start): 4 + peers(of: start)
        case .sessionRenew, .deviceRegister, .deviceUnregister, .inviteAccept, .inviteReject,
            .inviteList, .callSignal, .callProbe, .callEnd, .groupCreate, .groupMembers, .groupList, .presenceSubscribe,
            .presenceUnsubscribe, .ping:
            4
        }
    }

    private func expectedPieces(of order: OperatorOrder) -> Int {
        switch order {
        case .logOut(let user): 4 + peers(of: .account(user)) { _ in true }
        case .endSession(let user, let device): 4 + peers(of: .account(user)) { $0.endpoint.device == device }
        case .endInvite(let invite): 4 * (invites[invite]?.invitees.count ?? 1)
        case .endCall: 4
        case .removeFromRoom(let room, let user, _):
            4 + 2 * rooms.occupants(of: room).count
                * max(1, rooms.occupants(of: room).count { $0.endpoint.user == user })
        case .removeFromGroup(let group, _): 4 + 2 * groups.members(of: group).count
        case .move(let user, _, _, _): 4 + sessions.principals(called: user).reduce(0) { $0 + sessions.count(of: $1) }
        }
    }

    private func peers(of principal: Principal, where holds: (Session) -> Bool) -> Int {
        let own = sessions.sessions(of: principal) + sessions.detached(of: principal).map(\.session)
        return own.filter(holds).reduce(0) { $0 + 2 + peers(of: $1.id) }
    }

    /// The number of peers to notify when the session on a connection ends.
    private func peers(of connection: ConnectionID) -> Int {
        sessions[connection].map { 2 + peers(of: $0.id) } ?? 0
    }

    /// The number of peers to notify when a device replaces its earlier connection, or is back too late.
    private func peers(of start: SessionStart) -> Int {
        let digest = SecretDigest(of: start.token.secret)
        guard let login = accounts.login(of: digest), let grant = accounts.grant(of: login) else { return 0 }
        let endpoint = Endpoint(.account(grant.user), start.device.id)
        let detached = sessions.detached(of: endpoint.principal).filter { $0.session.endpoint == endpoint }
        let ids = [sessions.session(at: endpoint)?.id].compactMap { $0 } + detached.map(\.session.id)
        return ids.reduce(0) { $0 + peers(of: $1) }
    }

    private func peers(of session: SessionID) -> Int {
        rooms.rooms(of: session).reduce(0) { $0 + rooms.occupants(of: $1).count }
    }
}
