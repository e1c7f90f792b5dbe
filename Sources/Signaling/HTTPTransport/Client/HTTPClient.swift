package import NIOCore
internal import NIOPosix
internal import Synchronization
internal import Core

/// An HTTP/1.1 client that keeps connections between requests. It follows no redirects.
///
/// If a name has several addresses, each is tried until one connects. A request that finds its kept connection closed is sent
/// once more on a new one, if the server cannot have served it or may serve it twice. Shut the client down when it is no longer
/// needed; otherwise its connections stay open for their idle time.
package final class HTTPClient: Sendable {
    /// How many connections are kept without a request, and for how long.
    package struct Keeping: Sendable {
        let connections: Int
        let time: Duration

        /// - Parameter connections: To all servers together. Beyond it the one that was idle longest is closed.
        package init(connections: Int, time: Duration = .seconds(30)) {
            self.connections = connections
            self.time = time
        }
    }

    private let loop: any EventLoop
    private let trust: TLSTrust
    private let keeping: Keeping
    private let bounds: HTTPFetch.Bounds
    private let driver: NIOLoopBoundBox<ClientDriver?>
    private let lastNumber = Atomic<Int>(0)

    /// - Parameter bounds: Of each answer.
    package init(trust: TLSTrust, within bounds: HTTPFetch.Bounds, keeping: Keeping, on loop: any EventLoop) {
        self.loop = loop
        self.trust = trust
        self.keeping = keeping
        self.bounds = bounds
        driver = .makeEmptyBox(valueType: ClientDriver.self, eventLoop: loop)
    }

    /// Sends a request; a task that is cancelled closes its connection.
    ///
    /// - Throws: What ``TransportFailure`` explains, or `CancellationError` if the task was cancelled or the client shut down.
    package func send(_ request: HTTPFetch.Request) async throws -> HTTPFetch.Answer {
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        let promise = loop.makePromise(of: HTTPFetch.Answer.self)
        loop.execute { self.driverOnLoop.send(request, as: number, promise) }
        return try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: {
            loop.execute { self.driverOnLoop.giveUp(number, CancellationError()) }
        }
    }

    /// Closes all connections. Requests that have no answer yet fail, and so does each later one.
    package func shutDown() async {
        try? await loop.submit { self.driverOnLoop.shutDown() }.get()
    }

    private var driverOnLoop: ClientDriver {
        if let made = driver.value { return made }
        let made = ClientDriver(trust, bounds, keeping, on: loop)
        driver.value = made
        return made
    }
}

/// Connects, and carries out what the pool decides. On its event loop.
private final class ClientDriver {
    private struct Pending {
        let request: HTTPFetch.Request
        let promise: EventLoopPromise<HTTPFetch.Answer>
        let deadline: Scheduled<Void>
        /// Of the connection that served it last.
        var error: any Error = HTTPFetch.Failure.closed
    }

    private let loop: any EventLoop
    private let trust: TLSTrust
    private let bounds: HTTPFetch.Bounds
    private var pool: ConnectionPool
    private var pending: [Int: Pending] = [:]
    private var handlers: [ConnectionPool.ConnectionNumber: FetchHandler] = [:]
    /// Connections that are being opened.
    private var opening: Set<ConnectionPool.ConnectionNumber> = []
    private let timer: DeadlineTimer

    init(_ trust: TLSTrust, _ bounds: HTTPFetch.Bounds, _ keeping: HTTPClient.Keeping, on loop: any EventLoop) {
        self.loop = loop
        timer = DeadlineTimer(on: loop)
        self.trust = trust
        self.bounds = bounds
        pool = ConnectionPool(idleLimit: keeping.connections, idleTime: keeping.time)
    }

    func send(_ request: HTTPFetch.Request, as number: Int, _ promise: EventLoopPromise<HTTPFetch.Answer>) {
        let deadline = loop.assumeIsolated().scheduleTask(in: bounds.time) {
            self.giveUp(number, HTTPFetch.Failure.tooLate)
        }
        pending[number] = Pending(request: request, promise: promise, deadline: deadline)
        handle(.request(number, ConnectionPool.Origin(request.endpoint)))
    }

    func giveUp(_ number: Int, _ error: any Error) {
        guard pending[number] != nil else { return }
        // The handler may have a part of an answer that counts, and reports it at once.
        if let connection = pool.connection(serving: number), let handler = handlers[connection] {
            return handler.giveUp(error)
        }
        end(number) { $0.fail(error) }
        handle(.abandoned(number))
    }

    func shutDown() { handle(.shutDown) }

    private func end(_ number: Int, _ work: (EventLoopPromise<HTTPFetch.Answer>) -> Void) {
        guard let ended = pending.removeValue(forKey: number) else { return }
        ended.deadline.cancel()
        work(ended.promise)
    }

    private func handle(_ input: ConnectionPool.Input) {
        var outbox: [ConnectionPool.Output] = []
        pool.handle(input, at: Instant(NIODeadline.now()), into: &outbox)
        timer.set(pool.nextDeadline) { self.handle(.timerFired) }
        for output in outbox {
            switch output {
            case .open(let connection, let number): open(connection, for: number)
            case .send(let number, let connection): begin(number, on: connection)
            case .close(let connection): close(connection)
            case .fail(let number):
                let error = pending[number]?.error ?? HTTPFetch.Failure.closed
                end(number) { $0.fail(error) }
            case .refuse(let number): end(number) { $0.fail(CancellationError()) }
            }
        }
    }

    private func open(_ connection: ConnectionPool.ConnectionNumber, for number: Int) {
        guard let endpoint = pending[number]?.request.endpoint else { return }
        opening.insert(connection)
        HTTPFetch.bootstrap(to: endpoint, trust, bounds, on: loop)
            .connect(host: endpoint.host, port: endpoint.port)
            .assumeIsolated()
            .whenComplete { result in
                let isNeeded = self.opening.remove(connection) != nil
                do {
                    let channel = try result.get()
                    guard isNeeded else { return channel.close(promise: nil) }
                    let handler = try channel.pipeline.syncOperations.handler(type: FetchHandler.self)
                    handler.idleEnd = { [weak self] in
                        self?.fail(connection, HTTPFetch.Failure.closed, of: nil, false)
                    }
                    self.handlers[connection] = handler
                    self.begin(number, on: connection)
                } catch {
                    self.fail(connection, error, of: number, false)
                }
            }
    }

    private func begin(_ number: Int, on connection: ConnectionPool.ConnectionNumber) {
        guard let request = pending[number]?.request else { return }
        guard let handler = handlers[connection] else {
            return fail(connection, HTTPFetch.Failure.closed, of: number, true)
        }
        handler.begin(FetchHandler.Job(request, bounds, isLast: false)) { report in
            switch report {
            case .answered(let answer, let isReusable):
                // First, so that the caller's next request finds the connection.
                self.handle(.answered(connection, isReusable: isReusable))
                self.end(number) { $0.succeed(answer) }
            case .failed(let error, let maySendAgain): self.fail(connection, error, of: number, maySendAgain)
            }
        }
    }

    private func fail(
        _ connection: ConnectionPool.ConnectionNumber, _ error: any Error, of number: Int?, _ maySendAgain: Bool
    ) {
        if let number { pending[number]?.error = error }
        handle(.failed(connection, maySendAgain: maySendAgain))
        handlers[connection] = nil
    }

    private func close(_ connection: ConnectionPool.ConnectionNumber) {
        opening.remove(connection)
        guard let handler = handlers.removeValue(forKey: connection) else { return }
        handler.idleEnd = nil
        handler.giveUp(HTTPFetch.Failure.closed)
    }
}
