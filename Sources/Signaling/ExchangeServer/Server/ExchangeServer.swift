// Exchange: the embedded signaling service. Accounts decide who may log in, the core what happens, the server moves
// bytes. One port carries REST and WebSocket; one event loop carries everything of one exchange.

package import ControlPlane
import Enrollment
public import ExchangeCore
import HTTPTransport
public import JSON
public import Logging
public import NIOCore
import NIOPosix
public import SignalWire
import Synchronization
package import Tracing

/// A running exchange.
public final class ExchangeServer: Sendable {
    /// The path at which the WebSocket opens.
    static let webSocketPath = "/v1/rtc"

    /// The port it listens on: the one that the system chose, if it was asked to.
    public let port: Int
    /// Where clients find it: `https://…` or `http://…`, with host and port.
    public let url: String
    /// The page at which a browser finds the web phone; `nil` if the exchange serves none.
    public let webPhoneURL: String?

    private let channel: any Channel
    private let hub: NIOLoopBound<ExchangeHub>
    /// The hub's.
    private let door: LoopDoor
    /// What else lives on the event loop.
    private let parts: NIOLoopBound<Parts>
    /// One reload after the other.
    private let configuration: Mutex<ExchangeConfiguration>
    private let passwordThread: NIOThreadPool
    private let disk: ExchangeDisk?
    private let pushSender: PushSender?
    /// Nil without the section `control`, and until it is started.
    private let control = Mutex<ExchangeControlServer?>(nil)

    private init(
        channel: any Channel, hub: NIOLoopBound<ExchangeHub>, door: LoopDoor, parts: NIOLoopBound<Parts>,
        passwordThread: NIOThreadPool, disk: ExchangeDisk?, pushSender: PushSender?,
        configuration: ExchangeConfiguration, certificateNames: [String]
    ) {
        self.channel = channel
        self.hub = hub
        self.door = door
        self.parts = parts
        self.configuration = Mutex(configuration)
        self.passwordThread = passwordThread
        self.disk = disk
        self.pushSender = pushSender
        port = channel.localAddress?.port ?? configuration.port
        url = configuration.url(host: configuration.host, port: port)
        webPhoneURL = configuration.webPhoneURL(port: port, certificateNames: certificateNames)
    }

    /// Starts an exchange; when this returns, it accepts connections.
    ///
    /// - Parameters:
    ///   - group: One of its event loops will carry the exchange.
    ///   - logger: Gets calls and sessions at `info`, invites at `debug`; never a secret.
    ///   - version: The program's, for its operator.
    ///   - standingBy: Called when another process owns the database, with that process's name. This one refuses
    ///     requests until it owns the database; cancelling the task ends that.
    /// - Throws: ``ExchangeError`` if it may not or cannot listen, its database cannot be used, or its users file is missing
    ///   although an earlier run had users of it.
    public static func start(
        _ configuration: ExchangeConfiguration, on group: any EventLoopGroup, logger: Logger,
        version: String = "unknown", standingBy: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws(ExchangeError) -> ExchangeServer {
        let address = try configuration.resolveListenAddress()
        let certificate = try PreparedCertificate(configuration)
        let loop = group.next()
        let standby = StandbyServer(configuration, at: address, certificate, on: loop, logger: logger)
        let disk: ExchangeDisk?
        do throws(ExchangeError) {
            disk = try await ExchangeDisk.open(configuration, logger) { owner async throws(ExchangeError) in
                try await standby.stand(by: owner)
                standingBy(owner.name)
            }
        } catch {
            await standby.stop()
            throw error
        }
        // Its clients ask again where the exchange listens in a moment.
        await standby.stop()
        do throws(ExchangeError) {
            if let missed = disk?.usersFileIsMissed(configuration) { throw missed }
            try disk?.noteFileUsers(configuration)
        } catch {
            await disk?.close()
            throw error
        }
        let server = try await start(configuration, address, certificate, disk, on: loop, logger)
        do throws(ExchangeError) {
            try await server.startControl(configuration.control, version: version, logger)
        } catch {
            // Devices need an exchange that has just taken over more than its operator does.
            guard configuration.postgres != nil else {
                await server.stop()
                throw error
            }
            logger.critical(
                "The control interface cannot be used; the exchange serves without it", metadata: ["error": "\(error)"])
        }
        return server
    }

    private func startControl(
        _ configuration: ControlSection?, version: String, _ logger: Logger
    ) async throws(ExchangeError) {
        guard let configuration else { return }
        let facts = ExchangeControl.Facts(version: version, url: url)
        let started = try await ExchangeControlServer.start(
            configuration, of: hub, on: channel.eventLoop, facts, logger: logger)
        control.withLock { $0 = started }
    }

    /// The port of the control interface on TCP; nil without one.
    var controlPort: Int? { control.withLock { $0 }?.port }

    private static func start(
        _ configuration: ExchangeConfiguration, _ address: SocketAddress, _ certificate: PreparedCertificate,
        _ disk: ExchangeDisk?, on loop: any EventLoop, _ logger: Logger
    ) async throws(ExchangeError) -> ExchangeServer {
        let passwordThread = NIOThreadPool(numberOfThreads: 1)
        passwordThread.start()
        let pushSender = configuration.push.webhooks.isEmpty ? nil : PushSender(configuration.push, on: loop)
        do {
            let (hub, door) = try await loop.submit {
                let hub = ExchangeHub(
                    loop: loop, configuration: configuration, logger: logger,
                    journal: disk.map {
                        let disk = DatabaseThread(store: $0.store, thread: $0.thread, loop: loop)
                        let limits = CommitGate.Limits(bytes: configuration.memoryShares.journal)
                        return (CommitGate(disk, loop: loop, limits: limits), $0.saved)
                    },
                    pushSender: pushSender)
                return (NIOLoopBound(hub, eventLoop: loop), hub.door)
            }.get()
            let (front, listener) = try await loop.submit {
                let front = ExchangeFront(
                    hub.value, configuration, certificate, thread: passwordThread, logger: logger)
                hub.value.use(front.admission)
                return (
                    NIOLoopBound(front, eventLoop: loop),
                    NIOLoopBound(front.listener(certificate.identity?.context), eventLoop: loop)
                )
            }.get()
            let channel = try await HTTPListener.listen(at: address, with: listener, on: loop)
            let parts = try await loop.submit {
                let parts = Parts(
                    configuration, certificate, front.value, listener.value, hub: hub.value, logger: logger)
                return NIOLoopBound(parts, eventLoop: loop)
            }.get()
            await disk?.noteServing()
            let shares = configuration.memoryShares
            logger.debug("Memory limits are set", metadata: ["kept_memory_mib": "\(shares.kept >> 20)"])
            return ExchangeServer(
                channel: channel, hub: hub, door: door, parts: parts, passwordThread: passwordThread, disk: disk,
                pushSender: pushSender, configuration: configuration,
                certificateNames: certificate.identity?.names ?? [])
        } catch {
            try? await passwordThread.shutdownGracefully()
            await pushSender?.stop()
            await disk?.close()
            throw ExchangeError(configuration.listenAddress.explain(error))
        }
    }

    /// Applies another configuration's ``ExchangeConfiguration/adoptedKeys`` while the exchange runs. Sessions and
    /// calls continue. All other settings stay as they are.
    ///
    /// - Returns: Whether the certificate was applied, too; false if one of the two configurations has none.
    /// - Throws: ``ExchangeError`` if the new certificate is unusable; then nothing has changed.
    public func adopt(_ new: ExchangeConfiguration) async throws(ExchangeError) -> Bool {
        let old = configuration.withLock { $0 }
        let takesCertificate = old.isEncrypted == new.isEncrypted
        let certificate = takesCertificate ? try PreparedCertificate(new) : .none
        let merged = old.adopting(new, certificate: takesCertificate)
        configuration.withLock { $0 = merged }
        try? await channel.eventLoop.submit { [hub, parts] in
            hub.value.adopt(merged)
            parts.value.adopt(merged, certificate)
        }.get()
        return takesCertificate
    }

    /// Has the webhooks of another configuration from now on. Those that remain continue where they are.
    ///
    /// - Returns: False if they wait for the next start, because there is no folder in which events wait for them yet.
    public func adoptWebhooks(of new: ExchangeConfiguration) async -> Bool {
        guard let section = new.control, let control = control.withLock({ $0 }) else { return false }
        return await control.adopt(section.webhooks)
    }

    /// What its control interface has counted since the start; nil without one.
    package func controlFigures() async -> ControlFigures? { await control.withLock { $0 }?.figures() }

    /// What a person with a browser on another machine must do, in one sentence.
    public var browserAdvice: String {
        let configuration = configuration.withLock { $0 }
        guard configuration.isEncrypted else {
            return configuration.plainText == .allowed
                ? "A browser on another machine needs https:// in front of this exchange to use its microphone."
                : "A browser on another machine cannot reach this exchange; give it a certificate, and another address to "
                    + "listen on."
        }
        guard let authority = configuration.ownAuthority else {
            return "A browser on another machine opens \(url), and needs nothing more if it trusts who has signed the "
                + "certificate."
        }
        let fingerprint = (try? configuration.authorityFingerprint())?.text ?? "not known"
        return
            "A browser on another machine opens https://\(authority.names.first ?? "…"):\(port)\(RootPage.path) to learn how "
            + "to trust this exchange's authority, whose fingerprint is \(fingerprint)."
    }

    /// What it has counted so far.
    public func counters() async -> ExchangeCounters {
        let counters = channel.eventLoop.submit { [hub] in hub.value.snapshot() }
        return (try? await counters.get()) ?? ExchangeCounters()
    }

    /// What keeps it from serving its clients now, in sentences; nothing if it serves them.
    public func obstacles() async -> [String] {
        let obstacles = channel.eventLoop.submit { [hub] in hub.value.obstacles }
        return (try? await obstacles.get()) ?? ["the exchange has ended"]
    }

    /// Calls `then` once another process has taken the database over. Then this exchange has dropped its clients and answers nothing
    /// more; it can only be stopped.
    public func whenTakenOver(_ then: @escaping @Sendable (StoreError) -> Void) {
        channel.eventLoop.execute { [hub] in hub.value.taken = then }
    }

    /// Sends a payload to every connected device of a user, unchanged (CONN-11).
    ///
    /// - Parameter user: The user's own id.
    public func notify(user: UserID, payload: JSONValue) {
        channel.eventLoop.execute { [hub] in hub.value.notify(user: user, payload: payload) }
    }

    /// Hands the exchange's part of the trace of each call to `take` from now on, if its configuration has a section `traces`. `take` is
    /// called on the exchange's event loop, and must return at once.
    package func traceCalls(_ take: @escaping @Sendable (Trace) -> Void) {
        guard let configuration = configuration.withLock({ $0 }).traces else { return }
        channel.eventLoop.execute { [hub] in
            var generator = SystemRandomNumberGenerator()
            hub.value.traceCalls(InviteTraces(configuration, seed: generator.next()), take)
        }
    }

    /// Asks every connected device to connect again (CONN-12).
    ///
    /// - Parameters:
    ///   - time: How long they have.
    ///   - url: The WebSocket's address to go to; without it where they find this one.
    public func requestMoves(within time: Duration, to url: String? = nil) {
        channel.eventLoop.execute { [hub] in hub.value.requestMoves(within: time, to: url) }
    }

    /// Stops accepting connections, asks clients to move and closes them (close code 1001), and returns within a second, or
    /// two more if the disk of the control interface's history is slow.
    ///
    /// With a standby it serves for up to three seconds more, until that one is ready to follow, and then waits for up to two until it
    /// serves: clients are asked to move there.
    public func stop() async {
        let control = control.withLock { $0 }
        await control?.stopAccepting()
        let successor = await successor()
        try? await channel.close()
        var isFollowed = false
        if let disk, disk.isShared {
            let url = successor?.process.url.flatMap { Self.webSocketURL(of: $0) }
            try? await channel.eventLoop.flatSubmit { [hub] in hub.value.handOver(to: url) }.get()
            isFollowed = await disk.giveAway(to: successor)
            await disk.close()
        }
        let stopped = channel.eventLoop.flatSubmit { [hub, isFollowed] in hub.value.stop(isFollowed: isFollowed) }
        try? await stopped.get()
        await pushSender?.stop()
        try? await passwordThread.shutdownGracefully()
        try? await channel.eventLoop.submit { [hub] in
            hub.value.endOrders()
            hub.value.endTraces()
        }.get()
        await control?.close()
        if disk?.isShared == false { await disk?.close() }
        door.close()
    }

    /// The standby that continues, once it is ready; nil without one.
    private func successor() async -> PostgresStore.Standby? {
        guard let disk, await disk.hasStandby() else { return nil }
        try? await channel.eventLoop.flatSubmit { [hub] in hub.value.prepareHandOver() }.get()
        return await disk.successor()
    }

    /// Where the WebSocket of the exchange at an address opens.
    private static func webSocketURL(of url: String) -> String? {
        guard url.hasPrefix("http") else { return nil }
        let base = url.hasSuffix("/") ? String(url.dropLast()) : url
        return "ws\(base.dropFirst("http".count))\(webSocketPath)"
    }
}

extension ExchangeServer {
    /// What of an exchange looks at files, and answers clients. On the hub's event loop.
    final class Parts {
        private let front: ExchangeFront
        /// `nil` without a users file.
        private let users: UsersWatch?
        /// `nil` without TLS.
        private let certificate: CertificateKeeper?

        init(
            _ configuration: ExchangeConfiguration, _ certificate: PreparedCertificate, _ front: ExchangeFront,
            _ listener: HTTPListener, hub: ExchangeHub, logger: Logger
        ) {
            self.front = front
            users = configuration.usersFile.map {
                UsersWatch(
                    UsersReader($0, wasRead: !configuration.fileUsers.isEmpty), beside: configuration.users, hub: hub,
                    logger: logger)
            }
            self.certificate = certificate.identity.map { identity in
                CertificateKeeper(
                    configuration, certificate, identity, front: front, listener: listener, hub: hub, logger: logger)
            }
            users?.start()
            self.certificate?.start()
        }

        /// What may change while the exchange runs is as here from now on.
        func adopt(_ configuration: ExchangeConfiguration, _ prepared: PreparedCertificate) {
            front.adopt(configuration)
            users?.adopt(configured: configuration.users)
            certificate?.adopt(configuration, prepared)
        }
    }
}

extension ExchangeConfiguration {
    /// Keys of a file's root that a running exchange takes from another configuration.
    public static let adoptedKeys: Set<String> = [
        "certificate", "users", "apps", "api_keys", "anonymous", "ice_servers", "allowed_origins", "allowed_hosts",
        "trusted_proxies", "token_lifetime_seconds", "refresh_lifetime_seconds", "token_notice_seconds",
        "signed_token_lifetime_seconds", "failed_logins_per_address", "failed_logins_per_account",
        "failed_login_seconds", "messages_per_second", "message_burst", "trunks",
    ]

    /// This configuration with what is adopted from another.
    func adopting(_ new: ExchangeConfiguration, certificate takesCertificate: Bool) -> ExchangeConfiguration {
        var merged = self
        if takesCertificate { (merged.certificate, merged.ownAuthority) = (new.certificate, new.ownAuthority) }
        merged.users = new.users
        merged.apps = new.apps
        merged.apiKeys = new.apiKeys
        merged.allowsAnonymous = new.allowsAnonymous
        merged.iceServers = new.iceServers
        merged.allowedOrigins = new.allowedOrigins
        merged.allowedHosts = new.allowedHosts
        merged.trustedProxies = new.trustedProxies
        merged.failedLogins = new.failedLogins
        merged.core.adopt(new.core)
        return merged
    }
}
