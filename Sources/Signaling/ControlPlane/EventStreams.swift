package import ControlWire
package import Core
package import HTTPTransport
package import Logging
package import NIOCore
internal import Realtime

/// The clients that receive events over HTTP. On the server's event loop.
///
/// A client holds its position in the history and one batch of at most ``EventReader/batchBytes`` bytes, whether it reads or not.
package final class EventStreams {
    /// Clients at a time.
    package static let limit = 100
    /// The interval of heartbeats, and of looking for clients that do not read.
    static let heartbeat = TimeAmount.seconds(15)
    /// Interval between two `levels` events.
    private static let levelInterval = Duration.milliseconds(200)

    private final class Client {
        let number: Int
        let stream: HTTPStream
        var reader: EventReader
        /// The newest levels, which are not sent yet.
        var levels: [UInt8] = []

        init(_ number: Int, _ stream: HTTPStream, _ reader: EventReader) {
            self.number = number
            self.stream = stream
            self.reader = reader
        }
    }

    private let store: EventStore
    /// What a meter shows now; nil if the process has none.
    private let levels: (@Sendable () async -> ControlLevels?)?
    private let loop: any EventLoop
    private let logger: Logger
    private var clients: [Int: Client] = [:]
    private var last = 0
    private var meter: Task<Void, Never>?
    private var heart: RepeatedTask?
    /// Clients that were disconnected because they did not read.
    package private(set) var dropped = 0

    package init(
        _ store: EventStore, on loop: any EventLoop, logger: Logger,
        levels: (@Sendable () async -> ControlLevels?)? = nil
    ) {
        self.store = store
        self.levels = levels
        self.loop = loop
        self.logger = logger
    }

    /// Clients now.
    package var count: Int { clients.count }

    /// Begins to send events to clients.
    package func start() {
        let own = NIOLoopBound(self, eventLoop: loop)
        store.onEvents { [loop] in loop.execute { own.value.wake() } }
        heart = loop.scheduleRepeatedTask(initialDelay: Self.heartbeat, delay: Self.heartbeat) { _ in own.value.beat() }
    }

    /// Disconnects all clients.
    package func close() {
        heart?.cancel()
        meter?.cancel()
        for client in clients.values { client.stream.close() }
    }

    /// Sends events on a stream until its client goes.
    package func add(_ stream: HTTPStream, _ reader: EventReader) {
        last += 1
        let number = last
        let client = Client(number, stream, reader)
        clients[number] = client
        stream.onClose { [weak self] in self?.clients[number] = nil }
        guard clients[number] != nil else { return }
        if reader.subscription.wantsLevels { startMeter() }
        pump(client)
    }

    private func wake() {
        store.woken()
        for client in clients.values { pump(client) }
    }

    /// Sends a client what is new, unless it has not taken the last batch.
    private func pump(_ client: Client) {
        guard !client.reader.isWriting else { return }
        let now = MonotonicClock.now
        var bytes = store.next(&client.reader, at: now)
        if bytes.isEmpty, !client.levels.isEmpty {
            (bytes, client.levels) = (client.levels, [])
            client.reader.begins(at: now)
        }
        if !bytes.isEmpty { send(bytes, to: client) }
    }

    private func send(_ bytes: [UInt8], to client: Client) {
        client.stream.send(bytes) { [weak self] in
            client.reader.finished()
            self?.pump(client)
        }
    }

    /// Sends heartbeats, and disconnects clients that do not read.
    package func beat(at now: Instant = MonotonicClock.now) {
        for client in clients.values {
            if client.reader.isStuck(at: now) {
                drop(client)
            } else if !client.reader.isWriting {
                client.reader.begins(at: now)
                send(EventText.heartbeat, to: client)
            }
        }
    }

    private func drop(_ client: Client) {
        clients[client.number] = nil
        dropped += 1
        logger.warning(
            "A client of events does not read and is disconnected", metadata: ["dropped": "\(dropped)"])
        client.stream.close()
    }

    // MARK: Levels

    /// Requests levels while a client wants them, once for all clients.
    private func startMeter() {
        guard meter == nil, let levels else { return }
        let own = NIOLoopBound(self, eventLoop: loop)
        let interval = Self.levelInterval
        meter = Task { [loop] in
            var hadLevels = false
            while !Task.isCancelled {
                let shown = await levels()
                let isNew = shown != nil || hadLevels
                hadLevels = shown != nil
                let continues = try? await loop.submit { own.value.send(shown, isNew: isNew) }.get()
                guard continues == true else { return }
                try? await Task.sleep(for: interval)
            }
        }
    }

    /// Sends levels; false if no client wants them any more.
    private func send(_ levels: ControlLevels?, isNew: Bool) -> Bool {
        let wanting = clients.values.filter(\.reader.subscription.wantsLevels)
        guard !wanting.isEmpty else {
            meter = nil
            return false
        }
        guard isNew else { return true }
        let time = MonotonicClock.wallNanoseconds / 1_000_000
        let event = EventText.event("levels", ControlCoding.line(.levels(levels), atMilliseconds: time))
        for client in wanting {
            client.levels = event
            pump(client)
        }
        return true
    }
}
