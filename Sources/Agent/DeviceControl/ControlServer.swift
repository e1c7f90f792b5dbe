internal import ControlPlane
internal import ControlWire
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Realtime

/// Lets programs on this machine control the accounts of a process: accepts their connections, carries out their requests in order, and
/// sends events to those that watch.
///
/// A client does not affect others: it is read no faster than it reads its answers, its waiting events are bounded
/// (``ControlEventBuffer``), and at most ``clientLimit`` are accepted.
public actor ControlServer {
    /// Clients at once.
    public static let clientLimit = 32
    /// Interval between two `levels` events.
    static let levelInterval = Duration.milliseconds(200)

    /// Where it listens.
    nonisolated let path: String
    private let socket: ControlSocket
    private let handler: ControlRequestHandler
    private let hub: ControlEventHub
    private let logger: Logger
    private var channel: (any Channel)?
    private var clients: [Int: Client] = [:]
    private var lastClient = 0
    private var meter: Task<Void, Never>?
    /// Whether levels were sent last, so that their end must be sent too.
    private var hadLevels = false
    private var isClosed = false
    /// Whether the log has that a program uses this interface.
    private var isNoted = false

    private struct Client {
        let channel: any Channel
        var events: ControlEventQueue?
        var wantsLevels = false
        /// The account whose events it wants; nil for all.
        var account: String?
    }

    private init(
        _ socket: ControlSocket, _ handler: ControlRequestHandler, _ hub: ControlEventHub, _ logger: Logger
    ) {
        self.socket = socket
        self.handler = handler
        self.hub = hub
        self.logger = logger
        path = socket.path
    }

    /// Accepts clients at a socket from now on.
    ///
    /// - Parameters:
    ///   - hub: Receives what requests change, and sends what clients watch.
    ///   - group: Whose loop serves the clients.
    static func start(
        _ socket: ControlSocket, _ handler: ControlRequestHandler, _ hub: ControlEventHub, group: any EventLoopGroup,
        logger: Logger
    ) async throws(ControlSocketError) -> ControlServer {
        let server = ControlServer(socket, handler, hub, logger)
        guard let descriptor = socket.takeDescriptor() else {
            throw ControlSocketError(.notUsable, socket.path, "listen there", cause: "it is served already")
        }
        do {
            let channel = try await ServerBootstrap(group: group)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(AcceptPause(logger: logger))
                    }
                }
                // A client that has said all it wants still gets its answers.
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let client = try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                        Task { await server.serve(client) }
                    }
                }
                .withBoundSocket(descriptor).get()
            await server.keep(channel)
            hub.add { [weak server] event, account in await server?.notify(event, of: account) }
        } catch {
            throw ControlSocketError(.notUsable, socket.path, "listen there", cause: "\(error)")
        }
        return server
    }

    /// Disconnects all clients, and accepts no more. Waiting events may be lost.
    func close() async {
        isClosed = true
        meter?.cancel()
        socket.remove()
        try? await channel?.close()
        for client in clients.values {
            client.events?.end()
            try? await client.channel.close()
        }
    }

    private func keep(_ channel: any Channel) { self.channel = channel }

    // MARK: One client

    private func serve(_ client: NIOAsyncChannel<ByteBuffer, ByteBuffer>) async {
        let number = enter(client.channel)
        do {
            try await client.executeThenClose { inbound, outbound in
                guard let number else {
                    let fault = ControlFault(.tooMany, "\(Self.clientLimit) clients are connected, the limit")
                    try await outbound.write(ByteBuffer(bytes: ControlCoding.line(ControlReply(id: nil, fault))))
                    return try await Self.waitForEnd(inbound)
                }
                try await self.converse(number, inbound, outbound)
            }
        } catch {
            // A client that goes while it is written to; what it asked for has been done.
            logger.debug("A control client has disconnected", metadata: ["error": "\(error)"])
        }
        if let number { leave(number) }
    }

    /// Reads what a refused client still sends: unread bytes at the close would discard the answer that says why.
    private static func waitForEnd(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for try await _ in inbound {} }
            group.addTask { try await Task.sleep(for: refusalPatience) }
            try await group.next()
            group.cancelAll()
        }
    }

    private static let refusalPatience = Duration.seconds(2)

    /// Answers what a client asks, and has what it watches written meanwhile, until it goes.
    private func converse(
        _ number: Int, _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
        _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) async throws {
        let (watches, watching) = AsyncStream.makeStream(
            of: ControlEventQueue.self, bufferingPolicy: .bufferingOldest(1))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { watching.finish() }
                var cutter = LineCutter()
                var lines: [LineCutter.Line] = []
                for try await chunk in inbound {
                    cutter.take(chunk.readableBytesView, into: &lines)
                    for line in lines { try await self.answer(line, of: number, outbound, watching) }
                    lines.removeAll(keepingCapacity: true)
                }
                cutter.finish(into: &lines)
                for line in lines { try await self.answer(line, of: number, outbound, watching) }
            }
            group.addTask {
                for await events in watches {
                    while let line = await events.next() { try await outbound.write(ByteBuffer(bytes: line)) }
                }
            }
            try await group.waitForAll()
        }
    }

    private func answer(
        _ line: LineCutter.Line, of number: Int, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
        _ watching: AsyncStream<ControlEventQueue>.Continuation
    ) async throws {
        var events: ControlEventQueue?
        var reply: ControlReply
        do throws(ControlRequest.Refusal) {
            let request = try ControlRequest(line)
            let before = clients[number]
            do throws(ControlFault) {
                if case .watch(let levels) = request.action {
                    try await handler.check(request)
                    events = watch(number, levels: levels, account: request.account)
                }
                let outcome = try await handler.carryOut(request)
                reply = outcome.reply
                reply.id = request.id
                if let event = outcome.event { await hub.publish(event, of: outcome.reply.account) }
            } catch {
                if case .watch = request.action, let before { unwatch(number, as: before) }
                events = nil
                reply = ControlReply(id: request.id, error)
            }
        } catch {
            reply = ControlReply(id: error.id, error.fault)
        }
        try await outbound.write(ByteBuffer(bytes: ControlCoding.line(reply)))
        // Events from the moment of the status on, and after it.
        if let events { watching.yield(events) }
    }

    // MARK: All clients

    private func enter(_ channel: any Channel) -> Int? {
        guard !isClosed, clients.count < Self.clientLimit else { return nil }
        if !isNoted {
            isNoted = true
            logger.notice(
                "A program uses the old control socket of JSON lines, which the next release will not have; use HTTP",
                metadata: ["socket": "\(path)"])
        }
        lastClient += 1
        clients[lastClient] = Client(channel: channel)
        return lastClient
    }

    private func leave(_ number: Int) {
        clients.removeValue(forKey: number)?.events?.end()
    }

    /// Makes a client watch from now on; nil if it already watches, and only its choice of levels changes.
    private func watch(_ number: Int, levels: Bool, account: String?) -> ControlEventQueue? {
        clients[number]?.wantsLevels = levels
        clients[number]?.account = account
        defer { if levels { startMeter() } }
        guard clients[number]?.events == nil else { return nil }
        let events = ControlEventQueue()
        clients[number]?.events = events
        // A client that sends nothing more may be gone before there is an event for it.
        clients[number]?.channel.closeFuture.whenComplete { _ in events.end() }
        return events
    }

    /// A client's request to watch was refused: it watches what it did before, or nothing.
    private func unwatch(_ number: Int, as before: Client) {
        if before.events == nil { clients[number]?.events?.end() }
        clients[number]?.events = before.events
        clients[number]?.wantsLevels = before.wantsLevels
        clients[number]?.account = before.account
    }

    private func notify(_ event: ControlEvent, of account: String?) {
        let line = Self.line(event, of: account)
        for client in clients.values {
            // What is of no account concerns everybody.
            if let wanted = client.account, let account, wanted != account { continue }
            guard let queue = client.events, !queue.add(line) else { continue }
            logger.warning("A control client reads its events too slowly and is disconnected")
            queue.end()
            client.channel.close(promise: nil)
        }
    }

    private static func line(_ event: ControlEvent, of account: String? = nil) -> [UInt8] {
        ControlCoding.line(event, of: account, atMilliseconds: MonotonicClock.wallNanoseconds / 1_000_000)
    }

    // MARK: Levels

    /// Requests levels of the media worker while a client wants them, once for all clients.
    private func startMeter() {
        guard meter == nil, !isClosed else { return }
        meter = Task { [weak self] in
            while !Task.isCancelled, await self?.tellLevels() == true {
                try? await Task.sleep(for: Self.levelInterval)
            }
        }
    }

    private func tellLevels() async -> Bool {
        guard clients.values.contains(where: \.wantsLevels) else {
            meter = nil
            return false
        }
        let levels = await handler.levels()
        if levels != nil || hadLevels {
            let line = Self.line(.levels(levels))
            for client in clients.values where client.wantsLevels { client.events?.setLevels(line) }
        }
        hadLevels = levels != nil
        return true
    }
}
