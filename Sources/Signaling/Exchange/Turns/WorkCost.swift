import ExchangeStore
import SignalWire

/// What a piece of work costs the exchange: 1, and for each change that is written and each event that is sent 1, and
/// again 1 for each 4096 bytes of the message that it came in, since that is told to each.
enum WorkCost {
    private static let bytesPerUnit = 4_096

    /// What a message of `bytes` costs that makes so many changes and events.
    static func of(pieces: Int, bytes: Int) -> Int { 1 + pieces * (1 + bytes / bytesPerUnit) }

    /// How many changes and events there are among outputs.
    static func pieces(of outputs: [ExchangeCore.Output]) -> Int {
        var pieces = 0
        for output in outputs {
            switch output {
            case .persist, .push: pieces += 1
            case .event(let connections, _): pieces += connections.count
            case .respond, .refuse, .close, .note: break
            }
        }
        return pieces
    }
}

extension ExchangeCore {
    /// What an input of a client's will cost, as far as can be told before: so that what is told to many waits for its
    /// turn. What it did cost is charged when it is done.
    func expectedCost(of input: Input, bytes: Int) -> Int {
        switch input {
        case .request(let connection, _, let request):
            WorkCost.of(pieces: expectedPieces(of: request, from: connection), bytes: bytes)
        case .disconnected(let connection): WorkCost.of(pieces: peers(of: connection), bytes: 0)
        default: 1
        }
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
            .inviteList, .callSignal, .callEnd, .groupCreate, .groupMembers, .groupList, .presenceSubscribe,
            .presenceUnsubscribe, .ping:
            4
        }
    }

    /// How many are told when the session on a connection is gone.
    private func peers(of connection: ConnectionID) -> Int {
        sessions[connection].map { 2 + peers(of: $0.id) } ?? 0
    }

    /// How many are told when a device takes the place of its earlier connection, or is back too late.
    private func peers(of start: SessionStart) -> Int {
        let digest = SecretDigest(of: start.token.secret)
        guard let login = tokens.login(of: digest), let grant = tokens.logins[login]?.grant else { return 0 }
        let endpoint = Endpoint(.account(grant.user), start.device.id)
        let detached = sessions.detached(of: endpoint.principal).filter { $0.session.endpoint == endpoint }
        let ids = [sessions.session(at: endpoint)?.id].compactMap { $0 } + detached.map(\.session.id)
        return ids.reduce(0) { $0 + peers(of: $1) }
    }

    private func peers(of session: SessionID) -> Int {
        rooms.rooms(of: session).reduce(0) { $0 + rooms.occupants(of: $1).count }
    }
}
