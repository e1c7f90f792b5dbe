internal import CallAgent
internal import ControlWire
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import TLS

/// Lets programs control the accounts of a process over HTTP, at a Unix socket and perhaps on TCP. It has a thread of its own.
final class ControlHTTPServer: Sendable {
    /// For a client on TCP to acknowledge what it was sent: one that vanished is noticed by its heartbeats.
    static let vanishPatience = Duration.seconds(45)
    /// Bytes of requests that are not complete, in all.
    private static let requestMemory = 1 << 20
    private static let bounds = StrangerBounds(bodyBytes: ControlLimits.requestBytes, messageBytes: 1)

    private let socket: ControlSocket
    private let store: EventStore
    private let webhooks: WebhookOffice?
    private let channels: [any Channel]
    private let group: MultiThreadedEventLoopGroup
    private let parts: NIOLoopBound<Parts>

    /// What lives on the event loop.
    private struct Parts {
        let desk: ControlDesk
        let services: [ControlHTTPService]
    }

    private init(
        _ socket: ControlSocket, _ store: EventStore, _ webhooks: WebhookOffice?, _ channels: [any Channel],
        _ group: MultiThreadedEventLoopGroup, _ parts: NIOLoopBound<Parts>
    ) {
        self.socket = socket
        self.store = store
        self.webhooks = webhooks
        self.channels = channels
        self.group = group
        self.parts = parts
    }

    /// Accepts clients from now on.
    ///
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    static func start(
        _ socket: ControlSocket, _ configuration: ControlHTTPConfiguration, webhooks: [ControlWebhook],
        _ handler: ControlRequestHandler, _ hub: ControlEventHub, logger: Logger
    ) async throws -> ControlHTTPServer {
        let tls = try tls(of: configuration.network)
        let store = await EventStore.open(folder: configuration.historyFolder, logger: logger)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let office = configuration.historyFolder.map { WebhookOffice(store, folder: $0, on: loop, logger: logger) }
        let parts = try await loop.submit {
            let streams = EventStreams(store, handler, on: loop, logger: logger)
            let desk = ControlDesk(handler, hub, store, streams, office, on: loop)
            var services = [ControlHTTPService(desk, ControlAdmission(), logger: logger)]
            if let network = configuration.network {
                services.append(ControlHTTPService(desk, ControlAdmission(network), logger: logger))
            }
            streams.start()
            return NIOLoopBound(Parts(desk: desk, services: services), eventLoop: loop)
        }.get()
        func listener(_ number: Int, _ tls: TLSContext?) async throws -> NIOLoopBound<HTTPListener> {
            try await loop.submit {
                NIOLoopBound(
                    HTTPListener(
                        parts.value.services[number], tls: tls, budget: InboundBudget(limit: requestMemory),
                        bounds: bounds,
                        messageBytes: 1), eventLoop: loop)
            }.get()
        }
        var channels: [any Channel] = []
        do {
            guard let descriptor = socket.takeDescriptor() else {
                throw ControlSocketError(.notUsable, socket.path, "listen there", cause: "it is served already")
            }
            channels.append(try await HTTPListener.listen(on: descriptor, with: listener(0, nil), on: loop))
            logger.info("Listening to programs on this machine, over HTTP", metadata: ["socket": "\(socket.path)"])
            if let network = configuration.network {
                let channel = try await listen(at: network, with: listener(1, tls), on: loop)
                channels.append(channel)
                let scheme = tls == nil ? "http" : "https"
                let address = ListenAddress(host: network.listen.host, port: channel.localAddress?.port ?? 0)
                logger.info("Listening to programs, over HTTP", metadata: ["url": "\(scheme)://\(address)"])
            }
        } catch {
            for channel in channels { try? await channel.close() }
            try? await group.shutdownGracefully()
            throw error
        }
        hub.add { event, account in
            let time = MonotonicClock.wallNanoseconds / 1_000_000
            store.add(ControlCoding.line(event, of: account, atMilliseconds: time))
            office?.wake()
        }
        await office?.adopt(webhooks)
        return ControlHTTPServer(socket, store, office, channels, group, parts)
    }

    /// Has other webhooks from now on. Those that remain continue where they are.
    ///
    /// - Returns: False if there is no folder in which events wait for them.
    func adopt(_ webhooks: [ControlWebhook]) async -> Bool {
        guard let office = self.webhooks else { return webhooks.isEmpty }
        await office.adopt(webhooks)
        return true
    }

    /// What has become of events for webhooks.
    var webhookFigures: [WebhookFigures] { webhooks?.figures ?? [] }

    /// Writes to the folder of the history that failed since the start.
    var failedWrites: Int { store.failedWrites }

    /// Clients of events that were disconnected because they did not read; nil when the server has ended.
    func droppedEventClients() async -> Int? {
        let parts = parts
        return try? await group.next().submit { parts.value.desk.droppedClients }.get()
    }

    /// Disconnects all clients, accepts no more, and completes the history on disk.
    func close() async {
        socket.remove()
        for channel in channels { try? await channel.close() }
        await webhooks?.stop()
        let parts = parts
        try? await group.next().submit {
            parts.value.desk.close()
            for service in parts.value.services { service.close() }
        }.get()
        await store.close()
        try? await group.shutdownGracefully()
    }

    private static func listen(
        at network: ControlHTTPConfiguration.Network, with listener: NIOLoopBound<HTTPListener>, on loop: any EventLoop
    ) async throws -> any Channel {
        let address = ListenAddress(host: network.listen.host, port: network.listen.port)
        let place = try address.resolve()
        do {
            return try await HTTPListener.listen(at: place, with: listener, patience: vanishPatience, on: loop)
        } catch {
            throw address.explain(error)
        }
    }

    private static func tls(of network: ControlHTTPConfiguration.Network?) throws -> TLSContext? {
        guard let files = network?.certificate else { return nil }
        do throws(CertificateFault) {
            return try ServerTLS.load(CertificateFiles(chainPath: files.chainPath, keyPath: files.keyPath))
        } catch {
            throw ListenError(
                code: .addressNotUsable, description: "control.http: cannot use TLS: \"\(error.path)\" \(error.message)"
            )
        }
    }
}
