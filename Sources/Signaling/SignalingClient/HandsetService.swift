public import CallControl
internal import HTTPTransport
public import JSON
public import Logging
public import NIOCore
internal import NIOPosix
internal import SignalWire

/// Handset's own exchange, as a signaling service: REST login, then JSON-RPC over one WebSocket.
///
/// Everything it does happens on one event loop of the caller's. Disconnect before letting go of it: until then it keeps
/// the connection up.
public final class HandsetService: SignalingService {
    /// What the exchange says, in order.
    public let events: SignalingEvents

    private let loop: any EventLoop
    private let rest: RESTClient
    private let logger: Logger
    private let driver: NIOLoopBoundBox<ServiceDriver>

    /// Makes a service that is not connected.
    ///
    /// - Throws: ``SignalingError`` if an address or the trust root file cannot be used.
    public init(
        _ configuration: HandsetServiceConfiguration, group: any EventLoopGroup, logger: Logger
    ) throws(SignalingError) {
        let addresses = configuration.addresses
        for address in [addresses.authentication, addresses.identity, addresses.events] + configuration.moreServers {
            try HandsetServiceConfiguration.check(address: address, configuration.plainText)
        }
        let trust = try TLSTrust.of(configuration.trustRootFile)
        let hub = EventHub<SignalingEvent>()
        let loop = group.next()
        events = SignalingEvents(hub: hub)
        self.loop = loop
        self.logger = logger
        let rest = RESTClient(configuration: configuration, trust: trust, loop: loop)
        self.rest = rest
        driver = NIOLoopBoundBox.makeBoxSendingValue(
            ServiceDriver(rest, hub: hub, logger: logger), eventLoop: loop)
    }

    /// Makes a service that is not connected, on an event loop that all such share.
    public convenience init(
        _ configuration: HandsetServiceConfiguration, logger: Logger
    ) throws(SignalingError) {
        try self.init(configuration, group: MultiThreadedEventLoopGroup.singleton, logger: logger)
    }

    deinit { events.hub.finish() }

    /// The state of the connection.
    public var connectionState: ConnectionState {
        get async { await look(orElse: .notConnected) { $0.connectionState } }
    }

    /// Who this device is to the exchange; `nil` until it has connected.
    public var session: SessionGrant? { get async { await look(orElse: nil) { $0.session } } }

    /// Servers that help media through firewalls.
    public var iceServers: [CallControl.ICEServer] { get async { await look(orElse: []) { $0.iceServers } } }

    /// Logs in, connects, registers the device, and returns when the connection is established.
    public func connect() async throws(SignalingError) {
        try await ask { driver, promise in driver.connect(promise) }
    }

    /// Tries at once what waits for its next attempt, and asks an established connection for a sign of life.
    public func networkChanged() async {
        let driver = driver
        try? await loop.submit { driver.value.networkChanged() }.get()
    }

    /// Says goodbye, closes, and returns when it is closed; within a second even if the exchange is silent. With
    /// ``HandsetServiceConfiguration/endsLogin`` it logs out, too, which takes ``logoutTime`` at most.
    public func disconnect() async {
        await close()
        guard rest.configuration.endsLogin else { return }
        let driver = driver
        guard let login = try? await loop.submit({ driver.value.takeOwnLogin() }).get() else { return }
        var rest = rest
        rest.timeout = Self.logoutTime
        do throws(ServiceFailure) {
            try await rest.anywhere { rest async throws(ServiceFailure) in try await rest.logOut(login) }
        } catch {
            logger.debug("The login stays valid until it expires", metadata: ["error": "\(error.error)"])
        }
    }

    /// How long the end of a login that nothing keeps may take.
    static let logoutTime = TimeAmount.seconds(2)

    private func close() async {
        try? await ask { driver, promise in driver.disconnect(promise) }
    }

    /// Disconnects, revokes the login at the exchange and deletes it here (contract AUTH-9).
    ///
    /// - Throws: ``SignalingError`` if the exchange could not be reached: the token is deleted here all the same, and
    ///   stays valid there until it expires.
    public func logOut() async throws(SignalingError) {
        await close()
        let driver = driver
        let forgotten = try? await loop.submit { driver.value.forgetLogin() }.get()
        if let error = forgotten?.error { throw error }
        guard let login = forgotten?.login else { return }
        do throws(ServiceFailure) {
            try await rest.anywhere { rest async throws(ServiceFailure) in try await rest.logOut(login) }
        } catch {
            throw error.error
        }
    }

    /// Unregisters the device.
    public func unregister() async throws(SignalingError) {
        try await notify(DeviceUnregister(), doing: "unregister the device")
    }

    /// Sends an invite.
    public nonisolated(nonsending) func invite(_ options: InviteOptions) async throws(SignalingError) -> SentInvite {
        let activity = "invite \(options.to)"
        let message = InviteSend(options)
        let hub = events.hub
        let sent = try await ask { (driver, promise: EventLoopPromise<InviteSend.Result>) in
            driver.request(message, doing: activity, promise) { sent in
                hub.publish(.inviteSent(sent.invite, idempotencyKey: options.idempotencyKey))
            }
        }
        return SentInvite(id: sent.invite, invitees: sent.invitees)
    }

    /// Accepts an invite.
    public nonisolated(nonsending) func accept(_ invite: InviteID, _ acceptance: InviteAcceptance)
        async throws(SignalingError)
    {
        try await notify(InviteAccept(invite: invite, data: acceptance.data), .answer, doing: "accept the invite")
    }

    /// Rejects an invite.
    public nonisolated(nonsending) func reject(_ invite: InviteID, _ rejection: InviteRejection)
        async throws(SignalingError)
    {
        try await notify(InviteReject(invite: invite, data: rejection.data), .answer, doing: "reject the invite")
    }

    /// Changes what a pending invite says.
    public nonisolated(nonsending) func modify(_ invite: InviteID, data: JSONValue) async throws(SignalingError) {
        try await notify(InviteModify(invite: invite, data: data), .queued, doing: "change the invite")
    }

    /// Takes an invite back.
    public nonisolated(nonsending) func cancel(_ invite: InviteID, _ withdrawal: InviteWithdrawal)
        async throws(SignalingError)
    {
        try await notify(InviteCancel(invite: invite, data: withdrawal.data), .lasting, doing: "cancel the invite")
    }

    /// Sends a message to the peer of a call.
    public nonisolated(nonsending) func send(_ signal: CallControl.CallSignal, retryAfterReconnect: Bool)
        async throws(SignalingError)
    {
        let activity = "send a signal to the peer"
        let message = try SignalWire.CallSignal(signal, doing: activity)
        try await notify(message, retryAfterReconnect ? .queued : .atOnce, doing: activity)
    }

    /// Asks the exchange whether the peer of a call is connected, and has the peer hang up if it does not know the call any more. An
    /// exchange that does not know the question has answered, too.
    public nonisolated(nonsending) func probe(_ invite: InviteID, peer: UserID?) async throws(SignalingError)
        -> PeerProbe
    {
        let message = CallProbe(invite: invite, peer: peer)
        do throws(SignalingError) {
            let result = try await ask { (driver, promise: EventLoopPromise<CallProbe.Result>) in
                driver.request(message, doing: "probe the peer", promise)
            }
            guard result.present else { return .failed(.peerGone) }
        } catch {
            if error.code == .unknownCall || error.code == .unknownInvite { return .failed(.unknownCall) }
            guard error.code == .invalidRequest else { throw error }
        }
        // It need not arrive: the next probe sends another one.
        let signal = CallControl.CallSignal(invite: invite, .probe, peer: peer)
        try? await send(signal, retryAfterReconnect: false)
        return .answered()
    }

    /// Notifies the peer of a call that it ended.
    public nonisolated(nonsending) func hangUp(_ details: CallHangUp) async throws(SignalingError) {
        let milliseconds =
            details.duration.components.seconds * 1_000 + details.duration.components.attoseconds
            / 1_000_000_000_000_000
        let message = CallEnd(
            invite: details.invite, reason: details.reason.rawValue, cause: details.cause?.rawValue,
            durationMilliseconds: milliseconds,
            peer: details.peer)
        try await notify(message, .lasting, doing: "hang up")
    }
}

// MARK: To the loop and back

extension HandsetService {
    nonisolated(nonsending) func notify<Method: RPCMethod>(
        _ message: Method, _ policy: SendPolicy = .atOnce, doing activity: String
    ) async throws(SignalingError) where Method.Result == Empty {
        _ = try await ask { (driver, promise: EventLoopPromise<Empty>) in
            driver.request(message, policy, doing: activity, promise)
        }
    }

    nonisolated(nonsending) func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (ServiceDriver, EventLoopPromise<Answer>) -> Void
    ) async throws(SignalingError) -> Answer {
        do {
            return try await begin(question).get()
        } catch let error as SignalingError {
            throw error
        } catch {
            throw SignalingError(.internalError, activity: "ask the exchange", cause: "\(error)")
        }
    }

    /// Brings a question to the loop; questions of one task are asked in its order.
    func begin<Answer: Sendable>(
        _ question: @escaping @Sendable (ServiceDriver, EventLoopPromise<Answer>) -> Void
    ) -> EventLoopFuture<Answer> {
        let promise = loop.makePromise(of: Answer.self)
        let driver = driver
        loop.execute { question(driver.value, promise) }
        return promise.futureResult
    }

    private func look<Answer: Sendable>(
        orElse fallback: Answer, _ glance: @escaping @Sendable (ServiceDriver) -> Answer
    ) async -> Answer {
        let driver = driver
        return (try? await loop.submit { glance(driver.value) }.get()) ?? fallback
    }
}

extension HandsetService: RoomSignaling, GroupSignaling {
    /// The exchange's rooms.
    public var roomSignaling: (any RoomSignaling)? { self }

    /// The exchange's groups.
    public var groupSignaling: (any GroupSignaling)? { self }

    /// Joins a room.
    public func join(room: RoomName, data: String?) async throws(SignalingError) -> [RoomParticipant] {
        var participants: [RoomJoin.Participant] = []
        var after: UInt64?
        repeat {
            let page = try await ask { [after] (driver, promise: EventLoopPromise<RoomJoin.Result>) in
                driver.join(RoomJoin(room: room, data: data, after: after), promise)
            }
            participants += page.participants
            after = page.next
        } while after != nil
        return participants.map(CallControl.RoomParticipant.init)
    }

    /// Leaves a room.
    public func leave(room: RoomName) async throws(SignalingError) {
        let leave = RoomLeave(room: room)
        _ = try await ask { (driver, promise: EventLoopPromise<Empty>) in
            driver.leave(leave, promise)
        }
    }

    /// Sends a signal in a room.
    public func send(_ signal: CallControl.RoomSignal, retryAfterReconnect: Bool) async throws(SignalingError) {
        let message = SignalWire.RoomSignal(room: signal.room, to: signal.to, type: signal.type, data: signal.data)
        try await notify(
            message, retryAfterReconnect ? .queued : .atOnce, doing: "send a signal in the room \(signal.room)")
    }

    /// Makes a group.
    public func createGroup(
        _ id: GroupID?, name: String?, members: [UserID]
    ) async throws(SignalingError) -> GroupID {
        let create = GroupCreate(group: id, name: name, members: members)
        let created = try await ask { (driver, promise: EventLoopPromise<GroupCreate.Result>) in
            driver.request(create, doing: "make a group", promise)
        }
        return created.group
    }

    /// Joins a group.
    public func join(group: GroupID) async throws(SignalingError) {
        try await notify(GroupJoin(group: group), doing: "join the group \(group)")
    }

    /// Leaves a group.
    public func leave(group: GroupID) async throws(SignalingError) {
        try await notify(GroupLeave(group: group), doing: "leave the group \(group)")
    }

    /// Ends a group.
    public func dismiss(group: GroupID) async throws(SignalingError) {
        try await notify(GroupDismiss(group: group), doing: "dismiss the group \(group)")
    }

    /// A group with its members.
    public func group(_ id: GroupID) async throws(SignalingError) -> Group {
        let question = GroupMembers(group: id)
        let found = try await ask { (driver, promise: EventLoopPromise<GroupMembers.Result>) in
            driver.request(question, doing: "ask who is in the group \(id)", promise)
        }
        return Group(
            id: found.group, name: found.name, owner: found.owner, members: found.members)
    }

    /// The groups that this user is in.
    public func groups() async throws(SignalingError) -> [Group] {
        var groups: [GroupList.Entry] = []
        var after: GroupID?
        repeat {
            let page = try await ask { [after] (driver, promise: EventLoopPromise<GroupList.Result>) in
                driver.request(GroupList(after: after), doing: "list the groups", promise)
            }
            groups += page.groups
            after = page.next
        } while after != nil
        return groups.map { Group(id: $0.group, name: $0.name, owner: $0.owner) }
    }
}

extension CallControl.RoomParticipant {
    /// A room's participant, from the wire.
    init(_ participant: RoomJoin.Participant) {
        self.init(connection: participant.connection, user: participant.user, data: participant.data)
    }
}
