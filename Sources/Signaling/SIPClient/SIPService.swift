public import CallControl
internal import HTTPTransport
public import Logging
public import NIOCore
internal import NIOPosix
internal import Realtime
internal import SIP
internal import SIPSignaling
public import SignalingClient

/// An account at a SIP server, as a signaling service (docs/sip.md).
///
/// Everything it does happens on one event loop of the caller's. Disconnect before letting go of it: until then it keeps
/// the registration up.
public final class SIPService: SignalingService {
    /// What happens, in order.
    public let events: SignalingEvents
    /// How calls over SIP differ from those of other services.
    public let traits: SignalingTraits

    private let loop: any EventLoop
    private let driver: NIOLoopBoundBox<SIPDriver>

    /// Makes a service that is not connected.
    ///
    /// - Throws: ``SignalingError`` if the address, the trust root file or the client certificate cannot be used.
    public init(
        _ configuration: SIPServiceConfiguration, group: any EventLoopGroup, logger: Logger
    ) throws(SignalingError) {
        var trust: TLSTrust
        do throws(TLSTrust.Unreadable) {
            trust = try TLSTrust(trustRootFile: configuration.trustRootFile)
        } catch {
            throw SignalingError(
                .badConfiguration, activity: "read the trust root file \"\(error.path)\"", cause: error.cause)
        }
        do throws(SIPServiceConfiguration.ClientCertificate.Fault) {
            if let certificate = configuration.certificate { trust = try certificate.shown(by: trust) }
        } catch {
            throw SignalingError(.badConfiguration, activity: "use the client certificate", cause: error.message)
        }
        var generator = SystemRandomNumberGenerator()
        let key = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        var account = configuration.account
        account.agent.transactionMemory = SIPLimits.transactionMemory(of: MachineMemory.limitBytes)
        guard let machine = AccountMachine(account, key: key) else {
            throw SignalingError(
                .badConfiguration, activity: "use the address \(configuration.account.address.uri)",
                cause: "it is not a SIP URI with a user", advice: "It should look like sip:alice@example.org.")
        }
        var traits = SignalingTraits.sip
        traits.takesStrangers = account.acceptsStrangers
        self.traits = traits
        let hub = EventHub<SignalingEvent>()
        let loop = group.next()
        events = SignalingEvents(hub: hub)
        self.loop = loop
        let edge = SIPEdge(
            on: loop, trust: trust, server: configuration.server, localPort: configuration.localPort,
            acceptsStrangers: configuration.account.acceptsStrangers)
        let resolver = SIPResolver(configuration, key: key + [8], on: loop)
        driver = NIOLoopBoundBox.makeBoxSendingValue(
            SIPDriver(machine, resolver: resolver, edge: edge, loop: loop, hub: hub, logger: logger),
            eventLoop: loop)
    }

    /// Makes a service that is not connected, on an event loop that all such share.
    public convenience init(_ configuration: SIPServiceConfiguration, logger: Logger) throws(SignalingError) {
        try self.init(configuration, group: MultiThreadedEventLoopGroup.singleton, logger: logger)
    }

    deinit { events.hub.finish() }

    /// How the connection is.
    public var connectionState: ConnectionState {
        get async { await look(orElse: .notConnected) { $0.connectionState } }
    }

    /// Who this device is to the server; `nil` until it has registered.
    public var session: SessionGrant? { get async { await look(orElse: nil) { $0.session } } }

    /// None: SIP servers name no servers for ICE.
    public var iceServers: [ICEServer] { get async { [] } }

    /// Opens a flow, registers, and returns when the device can be called.
    public func connect() async throws(SignalingError) { try await tell(.connect) }

    /// Removes the registration and closes; within a second even if the server is silent.
    public func disconnect() async { try? await tell(.disconnect) }

    /// Opens another flow if this one is from an address that is not ours any more, and tries at once what waits.
    public func networkChanged() async {
        let driver = driver
        try? await loop.submit { driver.value.networkChanged() }.get()
    }

    /// Does the same as ``disconnect()``: nothing is kept of a login.
    public func logOut() async throws(SignalingError) { try await tell(.disconnect) }

    /// Removes the registration and closes.
    public func unregister() async throws(SignalingError) { try await tell(.disconnect) }

    /// Sends an invite.
    public nonisolated(nonsending) func invite(_ options: InviteOptions) async throws(SignalingError) -> SentInvite {
        switch await ask(.invite(options)) {
        case .sent(let id, let invitees): return SentInvite(id: id, invitees: invitees)
        case .failed(let error): throw error
        case .done, .probed:
            throw SignalingError(.internalError, activity: "invite \(options.to)", cause: "it has no id")
        }
    }

    /// Accepts a call.
    public nonisolated(nonsending) func accept(
        _ invite: InviteID, _ acceptance: InviteAcceptance
    ) async throws(SignalingError) {
        try await tell(.accept(invite, acceptance))
    }

    /// Refuses a call.
    public nonisolated(nonsending) func reject(
        _ invite: InviteID, _ rejection: InviteRejection
    ) async throws(SignalingError) {
        try await tell(.reject(invite, rejection))
    }

    /// Takes a call back.
    public nonisolated(nonsending) func cancel(
        _ invite: InviteID, _ withdrawal: InviteWithdrawal
    ) async throws(SignalingError) {
        try await tell(.cancel(invite, withdrawal))
    }

    /// Sends an offer, an answer or a candidate to the peer of a call; others cannot be sent.
    public nonisolated(nonsending) func send(_ signal: CallSignal, retryAfterReconnect: Bool)
        async throws(SignalingError)
    {
        try await tell(.send(signal))
    }

    /// Asks the peer of a call by OPTIONS in the dialog. Without an answer it has failed after 32 s.
    public nonisolated(nonsending) func probe(_ invite: InviteID, peer: UserID?) async throws(SignalingError)
        -> PeerProbe
    {
        switch await ask(.probe(invite)) {
        case .probed(let probe): return probe
        case .failed(let error): throw error
        case .done, .sent: return .answered()
        }
    }

    /// Ends a call.
    public nonisolated(nonsending) func hangUp(_ details: CallHangUp) async throws(SignalingError) {
        try await tell(.hangUp(details))
    }
}

extension SIPService: MailboxSignaling {
    /// The service itself.
    public var mailboxSignaling: (any MailboxSignaling)? { self }

    /// Notifies subscribers, and those who are notified without asking (RFC 3842).
    public func notify(of messages: WaitingMessages?) async { _ = await ask(.notify(messages)) }
}

// MARK: To the loop and back

extension SIPService {
    private nonisolated(nonsending) func tell(_ request: AccountRequest) async throws(SignalingError) {
        if case .failed(let error) = await ask(request) { throw error }
    }

    private nonisolated(nonsending) func ask(_ request: AccountRequest) async -> AccountAnswer {
        let promise = loop.makePromise(of: AccountAnswer.self)
        let driver = driver
        loop.execute { driver.value.ask(request, promise) }
        do {
            return try await promise.futureResult.get()
        } catch {
            return .failed(SignalingError(.internalError, activity: "ask the SIP server", cause: "\(error)"))
        }
    }

    private func look<Answer: Sendable>(
        orElse fallback: Answer, _ glance: @escaping @Sendable (SIPDriver) -> Answer
    ) async -> Answer {
        let driver = driver
        return (try? await loop.submit { glance(driver.value) }.get()) ?? fallback
    }
}
