import ExchangeCore
// Exchange: the embedded signaling service. Accounts decide who may log in, the core what happens, the server moves
// bytes. One port carries REST and WebSocket; one event loop carries everything of one exchange.

import HTTPTransport
public import JSON
public import Logging
public import NIOCore
import NIOPosix
import NIOSSL
public import SignalWire

/// A running exchange.
public final class ExchangeServer: Sendable {
    /// The path at which the WebSocket opens.
    static let webSocketPath = "/v1/rtc"

    /// The port it listens on: the one that the system chose, if it was asked to.
    public let port: Int
    /// Where clients find it: `https://…` or `http://…`, with host and port.
    public let url: String

    private let channel: any Channel
    private let hub: NIOLoopBound<ExchangeHub>
    /// Held here; `nil` without a users file.
    private let usersWatch: NIOLoopBound<UsersWatch?>
    private let passwordThread: NIOThreadPool
    private let disk: ExchangeDisk?
    private let pushSender: PushSender?

    private init(
        channel: any Channel, hub: NIOLoopBound<ExchangeHub>, usersWatch: NIOLoopBound<UsersWatch?>,
        passwordThread: NIOThreadPool, disk: ExchangeDisk?, pushSender: PushSender?,
        configuration: ExchangeConfiguration
    ) {
        self.channel = channel
        self.hub = hub
        self.usersWatch = usersWatch
        self.passwordThread = passwordThread
        self.disk = disk
        self.pushSender = pushSender
        port = channel.localAddress?.port ?? configuration.port
        let scheme = configuration.certificate == nil ? "http" : "https"
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        url = "\(scheme)://\(host):\(port)"
    }

    /// Starts an exchange; when this returns, it accepts connections.
    ///
    /// - Parameters:
    ///   - group: One of its event loops will carry the exchange.
    ///   - logger: Gets calls and sessions at `info`, invites at `debug`; never a secret.
    /// - Throws: ``ExchangeError`` if it may not or cannot listen, or its database cannot be used.
    public static func start(
        _ configuration: ExchangeConfiguration, on group: any EventLoopGroup, logger: Logger
    ) async throws(ExchangeError) -> ExchangeServer {
        let address = try configuration.resolveListenAddress()
        let tls: NIOSSLContext?
        do throws(CertificateFault) {
            tls = try ServerTLS.load(configuration.serverCertificate)
        } catch {
            throw ExchangeError(.certificateNotUsable, "cannot use \(error.path) for TLS: it \(error.message).")
        }
        let disk = try ExchangeDisk.open(configuration, logger)
        let passwordThread = NIOThreadPool(numberOfThreads: 1)
        passwordThread.start()
        let loop = group.next()
        let pushSender = configuration.push.webhooks.isEmpty ? nil : PushSender(configuration.push, on: loop)
        do {
            let hub = try await loop.submit {
                let hub = ExchangeHub(
                    loop: loop, configuration: configuration, logger: logger,
                    journal: disk.map {
                        let disk = DatabaseThread(store: $0.store, thread: $0.thread, loop: loop)
                        let limits = CommitGate.Limits(bytes: configuration.memoryShares.journal)
                        return (CommitGate(disk, loop: loop, limits: limits), $0.saved)
                    },
                    pushSender: pushSender)
                return NIOLoopBound(hub, eventLoop: loop)
            }.get()
            let listener = try await loop.submit {
                let front = ExchangeFront(hub.value, configuration, thread: passwordThread, logger: logger)
                hub.value.admission = front.admission
                return NIOLoopBound(front.listener(tls), eventLoop: loop)
            }.get()
            let channel = try await HTTPListener.listen(at: address, with: listener, on: loop)
            let watch = try await loop.submit {
                let watch = configuration.usersFile.map {
                    UsersWatch(
                        $0, beside: configuration.users, hub: hub.value, thread: passwordThread, logger: logger)
                }
                watch?.start()
                return NIOLoopBound(watch, eventLoop: loop)
            }.get()
            let shares = configuration.memoryShares
            logger.debug("memory is shared out", metadata: ["kept_memory_mib": "\(shares.kept >> 20)"])
            return ExchangeServer(
                channel: channel, hub: hub, usersWatch: watch, passwordThread: passwordThread, disk: disk,
                pushSender: pushSender, configuration: configuration)
        } catch {
            try? await passwordThread.shutdownGracefully()
            await pushSender?.stop()
            await disk?.close()
            throw ExchangeError(configuration.listenAddress.explain(error))
        }
    }

    /// What it has counted so far.
    public func counters() async -> ExchangeCounters {
        let counters = channel.eventLoop.submit { [hub] in hub.value.snapshot() }
        return (try? await counters.get()) ?? ExchangeCounters()
    }

    /// Tells every connected device of a user a payload, unchanged (CONN-11).
    ///
    /// - Parameter user: The user's own id.
    public func notify(user: UserID, payload: JSONValue) {
        channel.eventLoop.execute { [hub] in hub.value.notify(user: user, payload: payload) }
    }

    /// Asks every connected device to connect anew (CONN-12).
    ///
    /// - Parameters:
    ///   - time: How long they have.
    ///   - url: The WebSocket's address to go to; without it where they find this one.
    public func requestMoves(within time: Duration, to url: String? = nil) {
        channel.eventLoop.execute { [hub] in hub.value.requestMoves(within: time, to: url) }
    }

    /// Takes no more connections, tells clients to move and to go (close code 1001), and returns within a second.
    public func stop() async {
        try? await channel.close()
        let stopped = channel.eventLoop.flatSubmit { [hub] in hub.value.stop() }
        try? await stopped.get()
        await pushSender?.stop()
        try? await passwordThread.shutdownGracefully()
        await disk?.close()
    }
}
