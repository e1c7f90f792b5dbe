internal import CallControl
internal import JSON
internal import SignalWire
internal import Tracing

extension SignalingEvent {
    /// What an event on the wire means.
    init(_ event: ExchangeEvent) {
        switch event {
        case .inviteReceived(let data): self = .inviteReceived(ReceivedInvite(data))
        case .inviteAccepted(let data): self = .inviteAccepted(InviteAnswer(accepted: data))
        case .inviteRejected(let data): self = .inviteRejected(InviteAnswer(rejected: data))
        case .inviteHandled(let data): self = .inviteHandled(InviteHandling(data))
        case .inviteCancelled(let data): self = .inviteCancelled(data.invite, data: data.data ?? .null)
        case .inviteTimedOut(let data):
            self = .inviteTimedOut(data.invite, invitees: data.invitees)
        case .inviteMissed(let data): self = .inviteMissed(data.invite, payload: data.payload ?? .null)
        case .inviteEnded(let data): self = .inviteEnded(data.invite)
        case .callSignal(let data):
            self = .callSignal(
                CallControl.CallSignal(
                    invite: data.invite, type: data.type, data: data.data ?? .null,
                    CallMessage(type: data.type, data.data ?? .null), from: data.from))
        case .callEnded(let data):
            self = .callEnded(
                CallHangUp(
                    invite: data.invite, reason: CallEndReason(told: data.reason),
                    cause: data.cause.flatMap(CallFailureCause.init(rawValue:)),
                    duration: .milliseconds(min(max(data.durationMilliseconds, 0), 1_000_000_000_000)),
                    from: data.from))
        case .connectionCreated(let data):
            self = .connectionCreated(
                room: data.room,
                CallControl.RoomParticipant(connection: data.connection, user: data.user, data: data.data))
        case .connectionDestroyed(let data):
            self = .connectionDestroyed(room: data.room, connection: data.connection, reason: data.reason)
        case .inviteModified(let data): self = .inviteModified(data.invite, data: data.data ?? .null)
        case .groupChanged(let data): self = .groupChanged(GroupChange(data))
        case .roomSignal(let data):
            self = .roomSignal(
                CallControl.RoomSignal(
                    room: data.room, type: data.type, data: data.data ?? .null, from: data.from,
                    user: data.user))
        case .streamDropped(let data): self = .streamDropped(StreamPeer(data))
        case .streamResumed(let data): self = .streamResumed(StreamPeer(data))
        case .moveRequested(let data):
            self = .moveRequested(
                within: .seconds(min(max(data.withinSeconds, 0), 86_400)), webSocketURL: data.webSocketURL)
        case .tokenExpiring(let data):
            // Answered by the driver; an application may like to know.
            self = .unknown(
                type: ExchangeEvent.Kind.tokenExpiring.rawValue, data: ["expires_in": .number(Double(data.expiresIn))])
        case .presenceChanged(let data):
            // Only for those who subscribe to it, and a device does not.
            self = .unknown(
                type: ExchangeEvent.Kind.presenceChanged.rawValue,
                data: ["user": .string(data.user.text), "reachable": .bool(data.reachable)])
        case .notification(let data): self = .notification(data.payload ?? .null)
        case .unknown(let type, let data): self = .unknown(type: type, data: data ?? .null)
        }
    }
}

extension GroupChange {
    fileprivate init(_ data: GroupChanged) {
        let kind: Kind =
            switch data.change {
            case .created: .created
            case .joined: .joined
            case .left: .left
            case .dismissed: .dismissed
            }
        self.init(
            group: data.group, kind: kind, user: data.user,
            members: data.members ?? [])
    }
}

extension StreamPeer {
    fileprivate init(_ data: StreamChange) {
        self.init(
            room: data.room, invite: data.invite, connection: data.connection,
            user: data.user)
    }
}

extension ReceivedInvite {
    fileprivate init(_ data: InviteReceived) {
        // 0 means never (INV-9); the wait never exceeds the wire's limit, even if the number does.
        let seconds = min(data.ttlRemaining, SignalLimits.ttlSeconds)
        self.init(
            id: data.invite, inviter: data.inviter, group: data.group,
            invitees: data.invitees, offer: data.data?["offer"].map { CallDescription($0) },
            trunk: data.data?["trunk"].flatMap { TrunkCall($0) },
            transfer: data.data?["transfer"].flatMap { CallTransfer.Origin($0) },
            trace: data.data?["traceparent"]?.string.flatMap { TraceContext($0) },
            hops: CallHops(told: data.data?["hops"]), data: data.data ?? .null,
            remaining: seconds > 0 ? .seconds(seconds) : nil, payload: data.payload)
    }
}

extension CallHops {
    /// What is no number is none, and a number that is too large is too many.
    fileprivate init(told value: JSONValue?) { self.init(value?.integer.map { Int(clamping: $0) } ?? 0) }
}

extension InviteAnswer {
    fileprivate init(accepted data: InviteAnswered) {
        self.init(
            invite: data.invite, invitee: data.invitee, device: data.device,
            answer: data.data?["answer"].map { CallDescription($0) }, data: data.data ?? .null)
    }

    fileprivate init(rejected data: InviteAnswered) {
        self.init(
            invite: data.invite, invitee: data.invitee, device: data.device,
            rejection: InviteRejection(data.data ?? .null), data: data.data ?? .null)
    }
}

extension InviteHandling {
    fileprivate init(_ data: InviteHandled) {
        let action: Action =
            switch data.action {
            case .accepted: .accepted
            case .rejected: .rejected
            }
        self.init(invite: data.invite, device: data.device, action: action)
    }
}

extension SessionGrant {
    /// What the exchange made of a session's start.
    init(_ result: SessionStart.Result) {
        self.init(
            session: result.session, connection: result.connection, user: result.user,
            publicIDs: result.publicIDs, isResumed: result.resumed,
            sequence: Int64(clamping: result.sequence), keepalive: .clampedSeconds(result.keepaliveSeconds),
            isAnonymous: result.isAnonymous)
    }
}

extension CallControl.ConnectionResources {
    /// What the event manager gave.
    init(_ resources: SignalWire.ConnectionResources) {
        self.init(
            webSocketURL: resources.webSocketURL,
            iceServers: resources.iceServers.map {
                CallControl.ICEServer(urls: $0.urls, username: $0.username, credential: $0.credential?.secret)
            },
            iceServersLifetime: resources.iceServersSeconds.map { .clampedSeconds($0) },
            keepalive: .clampedSeconds(resources.keepaliveSeconds),
            resumeWindow: .clampedSeconds(resources.resumeWindowSeconds))
    }
}

extension DeviceDescription {
    /// This device, as it registers itself.
    init(_ device: HandsetServiceConfiguration.Device) throws(SignalingError) {
        let activity = DeviceRegister.activity
        var capabilities: [Capability] = []
        for name in device.capabilities {
            capabilities.append(try Capability(name, of: "a capability", doing: activity))
        }
        self.init(
            id: device.id, name: device.name, capabilities: capabilities)
    }
}

extension SessionStart {
    /// What the device does by it, to be read after "cannot".
    static let activity = "start a session"

    /// The start of a session with this login.
    init(
        _ configuration: HandsetServiceConfiguration, _ login: RESTClient.Login, _ resume: ResumePoint?
    ) throws(SignalingError) {
        self.init(
            token: login.token, device: try DeviceDescription(configuration.device),
            resume: resume.map { .init($0) },
            user: try .of(login.user, "the user's id", doing: Self.activity),
            application: try .of(configuration.application.key, "the app key", doing: Self.activity))
    }
}

extension DeviceRegister {
    /// What the device does by it, to be read after "cannot".
    static let activity = "register the device"

    /// The registration of this device.
    ///
    /// - Parameter isWarm: Whether this program has connected before.
    init(_ configuration: HandsetServiceConfiguration, isWarm: Bool) throws(SignalingError) {
        self.init(
            device: try DeviceDescription(configuration.device),
            start: isWarm || configuration.start == .warm ? .warm : .cold,
            push: try configuration.device.push?.map { target throws(SignalingError) in
                let kind = try PushKind(target.kind, of: "a push token's kind", doing: Self.activity)
                return PushTarget(kind: kind, token: Redacted(target.token))
            })
    }
}

extension InviteSend {
    /// An invite on the wire, where 0 means no time limit.
    init(_ options: InviteOptions) {
        self.init(
            to: options.invitees, group: options.group, data: options.sentData,
            ttl: options.timeToLive?.wireSeconds ?? 0,
            payload: options.payload, timeoutPayload: options.timeoutPayload,
            onlineOnly: options.isOnlineOnly ? true : nil,
            idempotencyKey: options.idempotencyKey)
    }
}

extension SessionStart.Resume {
    /// The point to resume from.
    init(_ point: ResumePoint) {
        self.init(session: point.session, after: UInt64(clamping: point.after))
    }
}

extension Duration {
    /// A number of seconds from the wire, between one second and a day.
    fileprivate static func clampedSeconds(_ seconds: Int) -> Duration { .seconds(min(max(seconds, 1), 86_400)) }

    /// Seconds for the wire; a limit that has run out already stays one.
    fileprivate var wireSeconds: Double {
        max(0.001, Double(components.seconds) + Double(components.attoseconds) / 1e18)
    }
}
