@testable import ExchangeCore
@testable import ExchangeServer
import HTTPTransport
import JSON
import Logging
import Monitoring
import NIOCore
import NIOEmbedded
import NIOPosix
import NIOWebSocket
import SignalWire
import Core

/// A disk in virtual time, which takes as long as it is told for a commit and for each change in it.
final class SlowDisk: JournalDisk {
    let path = "slow disk"
    private let loop: EmbeddedEventLoop
    private let perCommit: TimeAmount
    private let perChange: TimeAmount
    /// How many changes each commit had.
    private(set) var commits: [Int] = []
    /// Why it cannot be written at present.
    var fault: StoreError?
    private var written: [Change] = []

    init(loop: EmbeddedEventLoop, perCommit: TimeAmount, perChange: TimeAmount) {
        self.loop = loop
        self.perCommit = perCommit
        self.perChange = perChange
    }

    func write(_ changes: [Change]) -> EventLoopFuture<Void> {
        commits.append(changes.count)
        if let fault { return loop.scheduleTask(in: perCommit) { () throws -> Void in throw fault }.futureResult }
        written += changes
        return loop.scheduleTask(in: perCommit + perChange * changes.count) {}.futureResult
    }

    /// Reads the logins alone.
    func recover() -> EventLoopFuture<Saved> {
        if let fault { return loop.makeFailedFuture(fault) }
        var (tokens, logins): ([String: StoredToken], [String: StoredLogin]) = ([:], [:])
        for change in written {
            switch change {
            case .token(let token): tokens[token.digest] = token
            case .tokenForgotten(let digest): tokens[digest] = nil
            case .login(let login): logins[login.id] = login
            case .loginForgotten(let id): logins[id] = nil
            default: break
            }
        }
        var saved = Saved()
        (saved.tokens, saved.logins) = (Array(tokens.values), Array(logins.values))
        return loop.makeSucceededFuture(saved)
    }
}

/// What work took, beside the time that the event loop knows of.
private final class WorkClock {
    var spent = Duration.zero
    /// How many messages were read.
    var readings = 0
}

/// Makes each message that is sent to a client take so long, as if it were much work to write.
private final class SlowAnswers: ChannelOutboundHandler {
    typealias OutboundIn = WebSocketFrame

    private let clock: WorkClock
    private let time: Duration

    init(_ clock: WorkClock, _ time: Duration) {
        self.clock = clock
        self.time = time
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        clock.spent += time
        context.write(data, promise: promise)
    }
}

/// The hub itself with its sockets, in virtual time.
final class HubScenario {
    let loop = EmbeddedEventLoop()
    let disk: SlowDisk
    let hub: ExchangeHub
    private let configuration: ExchangeConfiguration
    private let clock = WorkClock()
    private var lastID: Int64 = 0

    /// The exchange does not want a client any more.
    struct Closed: Error {
        let reason: String
    }

    /// - Parameters:
    ///   - keeps: Whether there is a disk at all.
    ///   - reading: How long it takes to read a message.
    init(
        users: [UserID], keeps: Bool = true, perChange: TimeAmount = .microseconds(100),
        limits: CommitGate.Limits = .init(), apiKeys: [SigningKey] = [], traces: TraceConfiguration? = nil,
        reading: @escaping ([UInt8]) -> Duration = { _ in .zero }
    ) {
        disk = SlowDisk(loop: loop, perCommit: .milliseconds(3), perChange: perChange)
        var configuration = ExchangeConfiguration()
        configuration.users = users.map { Account(id: $0) }
        configuration.apiKeys = apiKeys
        configuration.traces = traces
        self.configuration = configuration
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        hub = ExchangeHub(
            loop: loop, configuration: configuration, logger: logger,
            journal: keeps ? (CommitGate(disk, loop: loop, limits: limits), Saved()) : nil,
            clock: { [loop, clock] in
                Instant(nanoseconds: Int64(loop.now.uptimeNanoseconds)).advanced(by: clock.spent)
            },
            reader: { [clock] hub, bytes, connection in
                clock.spent += reading(bytes)
                clock.readings += 1
                return ExchangeHub.read(hub, bytes, from: connection)
            })
        for user in users {
            hub.handle(
                .tokenIssued(
                    SecretDigest(of: "token of \(user)"), Grant(user: user, isAnonymous: false, application: "app")))
        }
        settle()
    }

    /// How many messages were read.
    var readings: Int { clock.readings }

    /// Whether a user has something to pay back, or something that waits.
    func mustWait(_ user: UserID) -> Bool { hub.turns.mustWait(.account(user)) }

    var now: Duration { .nanoseconds(Int64(loop.now.uptimeNanoseconds)) }

    func advance(by time: TimeAmount) { loop.advanceTime(by: time) }

    /// What answers requests over HTTP.
    func makeRESTService() -> RESTService {
        var configuration = configuration
        configuration.showsWebPhone = true
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let thread = NIOThreadPool.singleton
        let bounds = ConnectionBounds(total: 10, perAddress: 10, descriptors: 100, outgoing: 0)
        let admission = Admission(configuration, bounds: bounds, loop: loop, thread: thread, logger: logger)
        return RESTService(
            hub: hub, configuration: configuration, admission: admission, hosts: HostRules(listen: "localhost"),
            passwordThread: thread, logger: logger)
    }

    /// Lets the disk write all that there is.
    func settle() { advance(by: .seconds(2)) }

    /// Opens a socket.
    ///
    /// - Parameter time: How much work each message is that is sent on it.
    func connect(taking time: Duration = .zero) throws -> EmbeddedChannel {
        let socket = SocketSession.makeWebSocket(SocketSession.settings(keepalive: .hours(10)), hub: hub)
        let handlers: [any ChannelHandler] = [SlowAnswers(clock, time), socket]
        let channel = EmbeddedChannel(handlers: handlers, loop: loop)
        try channel.connect(to: NIOCore.SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    /// A device that is logged in and registered.
    func device(of user: UserID, taking time: Duration = .zero) throws -> EmbeddedChannel {
        let channel = try connect(taking: time)
        let device = DeviceDescription(id: "device of \(user)", name: "device")
        try ask(SessionStart(token: Redacted("token of \(user)"), device: device), on: channel)
        settle()
        try ask(DeviceRegister(device: device), on: channel)
        settle()
        _ = try heard(by: channel)
        return channel
    }

    @discardableResult
    func ask(_ params: some RPCMethod, on channel: EmbeddedChannel) throws -> RPCID {
        lastID += 1
        let bytes = try SignalCoding.request(id: .number(lastID), params)
        let frame = WebSocketFrame(
            fin: true, opcode: .text, maskKey: [0, 0, 0, 0], data: ByteBuffer(bytes: bytes))
        try channel.writeInbound(frame)
        return .number(lastID)
    }

    /// What a client has been sent since last asked.
    func heard(by channel: EmbeddedChannel) throws -> [RPCMessage] {
        var messages: [RPCMessage] = []
        while let frame = try channel.readOutbound(as: WebSocketFrame.self) {
            guard frame.opcode == .text else {
                throw Closed(reason: String(decoding: frame.data.readableBytesView.dropFirst(2), as: UTF8.self))
            }
            messages.append(try RPCMessage(decoding: Array(frame.data.readableBytesView)))
        }
        return messages
    }

    /// Moves time on until `channel` has the answer to `id`; answers with how long that took.
    func wait(for id: RPCID, on channel: EmbeddedChannel, step: TimeAmount = .microseconds(100)) throws -> Duration {
        let began = now
        while try !heard(by: channel).contains(where: { $0.kind.id == id }), now - began < .seconds(60) {
            advance(by: step)
        }
        return now - began
    }
}

extension RPCMessage.Kind {
    var id: RPCID? {
        switch self {
        case .request(let id, _), .result(let id): id
        case .failure(let id, _): id
        case .notification: nil
        }
    }
}
