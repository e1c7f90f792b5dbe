import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import Core
import Realtime

/// Decides which connections may come, and reports when too many want to, or hold too much before they log in.
///
/// Lives on the hub's event loop.
final class Admission {
    private var census: ConnectionCensus<ClientAddress>
    private let bounds: ConnectionBounds
    /// What those may hold together who have not logged in.
    let strangers: InboundBudget
    /// What those who have logged in may hold together of requests and messages that are not complete.
    let messages: InboundBudget
    private let proxies: [ClientAddress]
    private let logger: Logger
    private let loop: any EventLoop
    private var memory = MemoryReturn()
    private let thread: NIOThreadPool
    /// What the process held of the machine's memory when it gave some back last.
    private var residentBytes = 0
    private var refusals = Episode()
    private var crowds = Episode()
    private var partials = Episode()
    private var failures = Episode()
    private let timer: DeadlineTimer
    /// Connections that were refused because there were too many.
    private(set) var refused = 0
    /// Connections that there was no descriptor for.
    private(set) var shed = 0

    /// - Parameter thread: Gives memory back, which may take some milliseconds.
    init(
        _ configuration: ExchangeConfiguration, bounds: ConnectionBounds, loop: any EventLoop, thread: NIOThreadPool,
        logger: Logger
    ) {
        census = ConnectionCensus(
            limit: bounds.total, clientLimit: bounds.perAddress, special: (.thisMachine, bounds.fromThisMachine))
        self.bounds = bounds
        strangers = InboundBudget(limit: configuration.loginShare)
        messages = InboundBudget(limit: configuration.memoryShares.messages)
        proxies = configuration.trustedProxies.compactMap { ClientAddress($0) }
        self.loop = loop
        timer = DeadlineTimer(on: loop)
        self.thread = thread
        self.logger = logger
        strangers.onCrowded = { [weak self] in self?.reportCrowd() }
        messages.onCrowded = { [weak self] in self?.reportPartialMessages() }
    }

    private var now: Instant { Instant(NIODeadline.now()) }

    // MARK: - Connections

    /// Counts a new connection, for as long as it is open.
    ///
    /// - Throws: If there are too many; the caller closes the connection.
    func admit(_ channel: any Channel) throws(ConnectionRefusal) -> CountedConnection {
        let peer = channel.remoteAddress?.ipAddress.flatMap { ClientAddress($0) } ?? .none
        do throws(ConnectionRefusal) {
            try census.admit(counted(peer))
        } catch {
            refuse(error, of: counted(peer))
            throw error
        }
        let connection = CountedConnection(peer: peer, counted: counted(peer))
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in self?.leave(connection) }
        return connection
    }

    private func leave(_ connection: CountedConnection) {
        census.leave(connection.counted)
        memory.closed(at: now)
        setTimer()
    }

    /// A proxy's connection speaks for `client`; false if that one has too many connections.
    func move(_ connection: CountedConnection, to client: ClientAddress) -> Bool {
        guard proxies.contains(connection.peer) else { return true }
        let new = counted(client)
        do throws(ConnectionRefusal) {
            try census.move(from: connection.counted, to: new)
            connection.counted = new
            return true
        } catch {
            refuse(error, of: new)
            return false
        }
    }

    /// The address that a connection from `address` is counted under: all addresses of this machine count as one, with
    /// a limit of its own, and proxies elsewhere are exempt until they report their client's address.
    private func counted(_ address: ClientAddress) -> ClientAddress? {
        if address.isThisMachine { return .thisMachine }
        return address == .none || proxies.contains(address) ? nil : address
    }

    private func refuse(_ refusal: ConnectionRefusal, of client: ClientAddress?) {
        refused += 1
        guard refusals.happen(at: now) else { return }
        setTimer()
        switch refusal {
        case .full:
            logger.error(
                """
                Refusing connections: the exchange has reached its limit; raise the limit on open files \
                (LimitNOFILE= in systemd, ulimit -n elsewhere), or connections if the configuration sets it
                """, metadata: ["connections": "\(census.total)", "open_files": "\(ReserveDescriptor.limit)"])
        case .addressFull where client == .thisMachine:
            logger.warning(
                """
                Refusing connections from this machine: it has reached its limit; if a proxy here makes them, name its \
                address in trusted_proxies, else raise connections_from_this_machine (`ss -Htnp` shows the programs)
                """, metadata: ["connections": "\(bounds.fromThisMachine)"])
        case .addressFull:
            logger.warning(
                """
                Refusing connections from an address that has reached its limit; if it is a proxy's, name it in \
                trusted_proxies, else raise connections_per_address (`ss -Htn` shows the addresses)
                """, metadata: ["connections": "\(census.clientLimit)"])
        }
    }

    // MARK: - Descriptors

    /// A connection could not be accepted.
    func failedToAccept(_ error: IOError) {
        guard failures.happen(at: now) else { return }
        setTimer()
        logger.error(
            """
            Cannot accept connections: the process has no free descriptor; open connections continue. Raise the limit on open \
            files (LimitNOFILE= in systemd, ulimit -n elsewhere), or lower connections in the configuration
            """,
            metadata: [
                "error": "\(error)", "connections": "\(census.total)", "open_files": "\(ReserveDescriptor.limit)",
            ])
    }

    /// A client was refused because no descriptor was free.
    func countShed() { shed += 1 }

    // MARK: - Memory

    private func reportCrowd() {
        guard crowds.happen(at: now) else { return }
        setTimer()
        logger.warning(
            """
            Requests of clients that have not logged in use all the memory allowed to them; those that take longest \
            are refused (login_memory_mib)
            """, metadata: ["bytes": "\(strangers.limit)", "requests": "\(strangers.count)"])
    }

    private func reportPartialMessages() {
        guard partials.happen(at: now) else { return }
        setTimer()
        logger.warning(
            """
            Incomplete messages of clients that have logged in use all the memory allowed to them; those that take longest \
            are refused (kept_memory_mib)
            """, metadata: ["bytes": "\(messages.limit)", "messages": "\(messages.count)"])
    }

    private func giveMemoryBack() {
        let floor = residentBytes
        let logger = logger
        thread.runIfActive(eventLoop: loop) { () -> Int in
            let (before, begin) = (ProcessMemory.residentBytes, NIODeadline.now())
            guard before >= floor + MemoryReturn.worthwhileBytes else { return floor }
            ProcessMemory.releaseFreeMemory()
            let (after, time) = (ProcessMemory.residentBytes, NIODeadline.now() - begin)
            logger.debug(
                "Free memory was returned to the system",
                metadata: [
                    "bytes": "\(before - after)", "resident": "\(after)", "microseconds": "\(time.nanoseconds / 1_000)",
                ])
            return after
        }
        .assumeIsolated()
        .whenSuccess { [weak self] in self?.residentBytes = $0 }
    }

    // MARK: - Time

    private func setTimer() {
        let deadlines: [Instant?] = [
            refusals.nextDeadline, crowds.nextDeadline, partials.nextDeadline, failures.nextDeadline,
            memory.nextDeadline,
        ]
        timer.set(deadlines.compactMap { $0 }.min()) { [weak self] in self?.wake() }
    }

    private func wake() {
        let now = now
        if let count = refusals.end(at: now) {
            logger.notice("Connections are accepted again", metadata: ["refused": "\(count)"])
        }
        if let count = crowds.end(at: now) {
            logger.notice("Logins have memory again", metadata: ["refusals": "\(count)"])
        }
        if let count = partials.end(at: now) {
            logger.notice("Incomplete messages have memory again", metadata: ["refusals": "\(count)"])
        }
        if let count = failures.end(at: now) {
            logger.notice("Connections have descriptors again", metadata: ["failures": "\(count)"])
        }
        if memory.take(at: now) { giveMemoryBack() }
        setTimer()
    }

    /// Stops telling: the exchange is about to end.
    func stop() { timer.cancel() }
}

/// One counted connection.
final class CountedConnection {
    /// The other end.
    let peer: ClientAddress
    /// The address that it is counted for; `nil` for none.
    fileprivate(set) var counted: ClientAddress?

    fileprivate init(peer: ClientAddress, counted: ClientAddress?) {
        self.peer = peer
        self.counted = counted
    }
}

/// A recurring condition that is logged twice: when it begins, and when it has not recurred for ``calm``.
struct Episode: Hashable, Sendable {
    /// Time without a recurrence after which it has ended.
    static let calm = Duration.seconds(30)

    /// How often it has happened since it began.
    private(set) var count = 0
    private var last: Instant?

    /// When ``end(at:)`` must be called; `nil` outside an episode.
    var nextDeadline: Instant? { last?.advanced(by: Self.calm) }

    /// It happens; true if that is the first time.
    mutating func happen(at now: Instant) -> Bool {
        defer { last = now }
        count += 1
        return last == nil
    }

    /// The number of occurrences, if the episode has ended.
    mutating func end(at now: Instant) -> Int? {
        guard let due = nextDeadline, now >= due else { return nil }
        defer { self = Episode() }
        return count
    }
}

/// When to return free memory to the system: some time after many connections have closed.
///
/// The memory of thousands of closed connections is free, and the allocator keeps it if only a little memory behind it
/// is still in use. A check costs some milliseconds, so it runs seldom.
struct MemoryReturn: Hashable, Sendable {
    /// As many connections must have closed since the last time.
    static let closings = 1_000
    /// How long afterwards: those that came with the others are gone by then.
    static let delay = Duration.seconds(15)
    /// Growth of the process since the last time from which on it is worth it.
    static let worthwhileBytes = 32 << 20

    private var closed = 0
    /// When memory is to be returned.
    private(set) var nextDeadline: Instant?

    /// A connection has closed.
    mutating func closed(at now: Instant) {
        closed += 1
        if closed >= Self.closings, nextDeadline == nil { nextDeadline = now.advanced(by: Self.delay) }
    }

    /// Whether it is time; resets the count if so.
    mutating func take(at now: Instant) -> Bool {
        guard let due = nextDeadline, now >= due else { return false }
        self = MemoryReturn()
        return true
    }
}
