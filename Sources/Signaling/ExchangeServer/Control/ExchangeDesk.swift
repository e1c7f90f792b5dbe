import ControlWire
import Core
import ExchangeCore
import Glibc
import NIOCore
import Realtime
import SignalWire

/// One request of an operator, on the exchange's event loop. What is long to write is written elsewhere.
struct ExchangeDesk: Sendable {
    private let hub: NIOLoopBound<ExchangeHub>
    private let facts: ExchangeControl.Facts
    private let events: ControlEventsState

    init(_ hub: NIOLoopBound<ExchangeHub>, _ facts: ExchangeControl.Facts, _ events: ControlEventsState) {
        (self.hub, self.facts, self.events) = (hub, facts, events)
    }

    /// Carries out a request, and calls `then` once.
    func carryOut(_ work: ExchangeRequest, then: @escaping @Sendable (@escaping ExchangeControl.Outcome) -> Void) {
        switch work {
        case .status: status(then)
        case .users(let page): users(page, then)
        case .invites(let page): invites(page, then)
        case .calls(let page): calls(page, then)
        case .rooms(let page): rooms(page, then)
        case .groups(let page): groups(page, then)
        case .logOut(let user, let device): logOut(user, device, then)
        case .endInvite(let invite): endInvite(invite, then)
        case .endCall(let invite, let peer): endCall(invite, with: peer, then)
        case .removeFromRoom(let room, let user, let connection): remove(user, connection, fromRoom: room, then)
        case .removeFromGroup(let group, let user): remove(user, fromGroup: group, then)
        case .move(let move): self.move(move, then)
        }
    }

    private typealias Then = @Sendable (@escaping ExchangeControl.Outcome) -> Void

    private func status(_ then: Then) {
        let hub = hub.value
        let counters = hub.snapshot()
        let counts = hub.operatorCounts()
        let status = ExchangeWire.Status(
            version: facts.version, pid: Int(getpid()),
            uptime: facts.began.duration(to: MonotonicClock.now).seconds, url: facts.url, obstacles: hub.obstacles,
            users: counts.users, sessions: counters.openSessions, invites: counts.invites, calls: counters.openCalls,
            streams: counters.openStreams, counters: counters.byName, events: events)
        then { .json(status) }
    }

    // MARK: - Lists

    /// Reads a list when it is its turn.
    private func read(_ then: @escaping Then, _ body: @escaping (ExchangeHub) -> ExchangeControl.Outcome) {
        let isTaken = hub.value.read(body) { found in
            switch found {
            case .success(let outcome): then(outcome)
            case .failure(let error): then(Self.fault(.unavailable, error.message))
            }
        }
        if !isTaken { then(Self.fault(.tooMany, "too many requests wait for the exchange; try again later")) }
    }

    private func cursor(_ text: String?, _ then: Then) -> (OperatorCursor?, isGood: Bool) {
        guard let text else { return (nil, true) }
        if let cursor = OperatorCursor(text) { return (cursor, true) }
        then(Self.fault(.wrongValue, "after is no cursor; take the next of the page before"))
        return (nil, false)
    }

    private func users(_ page: ExchangeRequest.Page, _ then: @escaping Then) {
        read(then) { hub in
            let found = hub.users(after: page.after, atMost: page.limit)
            return { .json(ExchangeWire.Page(found.entries.map(ExchangeWire.User.init), next: found.next)) }
        }
    }

    private func invites(_ page: ExchangeRequest.Page, _ then: @escaping Then) {
        let (after, isGood) = cursor(page.after, then)
        guard isGood else { return }
        read(then) { hub in
            let found = hub.openInvites(after: after, atMost: page.limit)
            return { .json(ExchangeWire.Page(found.entries.map(ExchangeWire.Invite.init), next: found.next)) }
        }
    }

    private func calls(_ page: ExchangeRequest.Page, _ then: @escaping Then) {
        let (after, isGood) = cursor(page.after, then)
        guard isGood else { return }
        read(then) { hub in
            let found = hub.runningCalls(after: after, atMost: page.limit)
            return { .json(ExchangeWire.Page(found.entries.map(ExchangeWire.Call.init), next: found.next)) }
        }
    }

    private func rooms(_ page: ExchangeRequest.Page, _ then: @escaping Then) {
        read(then) { hub in
            let found = hub.rooms(after: page.after, atMost: page.limit)
            return { .json(ExchangeWire.Page(found.entries.map(ExchangeWire.Room.init), next: found.next)) }
        }
    }

    private func groups(_ page: ExchangeRequest.Page, _ then: @escaping Then) {
        let (after, isGood) = cursor(page.after, then)
        guard isGood else { return }
        read(then) { hub in
            let found = hub.groups(after: after, atMost: page.limit)
            return { .json(ExchangeWire.Page(found.entries.map(ExchangeWire.Group.init), next: found.next)) }
        }
    }

    // MARK: - Orders

    private func logOut(_ name: String, _ device: String?, _ then: @escaping Then) {
        guard let user = try? UserID(name) else { return then(Self.fault(.noSuchUser, "there is no such user")) }
        guard let device else { return obey(.logOut(user), then) }
        guard let device = try? DeviceID(device) else {
            return then(Self.fault(.noSuchDevice, "there is no such device"))
        }
        obey(.endSession(user, device), then)
    }

    private func endInvite(_ name: String, _ then: @escaping Then) {
        guard let invite = try? InviteID(name) else {
            return then(Self.fault(.noSuchInvite, "there is no such invite"))
        }
        obey(.endInvite(invite), then)
    }

    private func endCall(_ name: String, with peer: String?, _ then: @escaping Then) {
        guard let invite = try? InviteID(name) else { return then(Self.fault(.noSuchCall, "there is no such call")) }
        let user = peer.flatMap { try? UserID($0) }
        guard peer == nil || user != nil else { return then(Self.fault(.noSuchCall, "there is no such call")) }
        obey(.endCall(invite, with: user), then)
    }

    private func remove(
        _ name: String, _ connection: String?, fromRoom roomName: String, _ then: @escaping Then
    ) {
        guard let room = try? RoomName(roomName) else { return then(Self.outcome(of: .unknownRoom)) }
        let member = connection.map { try? ConnectionName($0) }
        guard let user = try? UserID(name), member != .some(nil) else { return then(Self.outcome(of: .noMember)) }
        obey(.removeFromRoom(room, user, member ?? nil), then)
    }

    private func remove(_ name: String, fromGroup groupName: String, _ then: @escaping Then) {
        guard let group = try? GroupID(groupName) else { return then(Self.outcome(of: .unknownGroup)) }
        guard let user = try? UserID(name) else { return then(Self.outcome(of: .noMember)) }
        obey(.removeFromGroup(group, user), then)
    }

    private func move(_ move: ExchangeRequest.Move, _ then: @escaping Then) {
        guard let user = try? UserID(move.user) else { return then(Self.outcome(of: .unknownUser)) }
        let device = move.device.map { try? DeviceID($0) }
        guard device != .some(nil) else { return then(Self.outcome(of: .noSession)) }
        obey(.move(user, device ?? nil, within: .seconds(move.withinSeconds), to: move.url), then) {
            .json(ExchangeWire.Asked(asked: $0))
        }
    }

    private func obey(
        _ order: OperatorOrder, _ then: @escaping Then,
        answer: @escaping @Sendable (Int) -> ControlHTTPAnswer = { .json(ExchangeWire.Done(ended: $0)) }
    ) {
        hub.value.obey(order) { outcome in
            switch outcome {
            case .obeyed(.done(let count)): then { answer(count) }
            case .obeyed(.refused(let refusal)): then(Self.outcome(of: refusal))
            case .unchanged(let error): then(Self.fault(.unavailable, error.message))
            case .unknown:
                then(
                    Self.fault(
                        .unconfirmed,
                        "the exchange's database has failed, or has another owner, and it is not known whether it was done; "
                            + "look at the lists"))
            }
        }
    }

    private static func outcome(of refusal: OperatorRefusal) -> ExchangeControl.Outcome {
        switch refusal {
        case .unknownUser: fault(.noSuchUser, "there is no user of that name")
        case .noSession: fault(.noSuchDevice, "the user has no device of that name with a session")
        case .unknownInvite: fault(.noSuchInvite, "there is no such invite, or it ended a long time ago")
        case .inviteEnded: fault(.wrongState, "the invite has ended")
        case .unknownCall: fault(.noSuchCall, "there is no such call, or it has ended")
        case .severalCalls: fault(.severalCalls, "several users have accepted the invite; name one of them: with")
        case .unknownRoom: fault(.noSuchRoom, "there is no one in a room of that name")
        case .unknownGroup: fault(.noSuchGroup, "there is no such group")
        case .noMember: fault(.noSuchMember, "the user is not in it, or not on that connection")
        case .isOwner: fault(.wrongState, "the owner cannot be removed from a group, only dismiss it")
        }
    }

    private static func fault(_ code: ControlFault.Code, _ message: String) -> ExchangeControl.Outcome {
        { ControlProblem(ControlFault(code, message)).answer }
    }
}

// MARK: - The wire

extension ExchangeWire.User {
    fileprivate init(_ user: OperatorView.User) {
        self.init(
            user: user.id.text, publicIDs: user.publicIDs.map(\.text),
            devices: user.devices.map { device in
                ExchangeWire.Device(
                    device: device.id.text, name: device.name, connected: device.isConnected,
                    registered: device.isRegistered, stream: device.isStream)
            })
    }
}

extension ExchangeWire.Invite {
    fileprivate init(_ invite: OperatorView.Invite) {
        self.init(
            invite: invite.id.text, from: invite.inviter.user.text, device: invite.inviter.device.text,
            to: invite.invitees.map(\.text), pending: invite.pending.map(\.text), group: invite.group?.text,
            age: Int(invite.age.milliseconds), remaining: invite.remaining.map { Int($0.milliseconds) })
    }
}

extension ExchangeWire.Call {
    fileprivate init(_ call: OperatorView.Call) {
        self.init(
            invite: call.invite.text, from: call.inviter.user.text, fromDevice: call.inviter.device.text,
            with: call.invitee.user.text, withDevice: call.invitee.device.text,
            duration: Int(call.duration.milliseconds))
    }
}

extension ExchangeWire.Room {
    fileprivate init(_ room: OperatorView.Room) {
        self.init(
            room: room.name.text,
            members: room.members.map { member in
                ExchangeWire.Member(
                    user: member.user.text, device: member.device.text, connection: member.connection.text,
                    role: member.role?.rawValue)
            })
    }
}

extension ExchangeWire.Group {
    fileprivate init(_ group: OperatorView.Group) {
        self.init(
            group: group.id.text, name: group.name, owner: group.owner.text, members: group.members.map(\.text))
    }
}

extension ExchangeCounters {
    /// What is counted since the start, by the names of docs/exchange-control.md.
    fileprivate var byName: [String: Int] {
        [
            "connections": connections, "refused_connections": refusedConnections, "logins": logins,
            "refused_logins": refusedLogins, "sessions": sessions, "requests": requests, "refusals": refusals,
            "malformed": malformed, "events": events, "invites": invites, "calls": calls, "pushes": pushes,
            "dead_pushes": deadPushes, "commits": commits, "slow_clients": slowClients, "dead_links": deadLinks,
        ]
    }
}
