import AudioKit
import CallAgent
import CallControl
import ExchangeCore
import ExchangeServer
import Logging
import CallMedia
import MediaEngine
import NIOCore
import NIOPosix
import SignalingClient

/// An exchange on the loopback and devices that log in to it, all in this process, on real sockets.
final class Site: Sendable {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let exchange: ExchangeServer
    let logger: Logger

    /// What signs tokens for sessions.
    static let signingKey = SigningKey(name: "demo", secret: String(repeating: "k", count: 40))

    init(
        users: [String] = ["echo", "caller"], _ change: (inout ExchangeConfiguration) -> Void = { _ in }
    ) async throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        self.logger = logger
        var configuration = ExchangeConfiguration()
        configuration.port = 0
        configuration.apps = [RegisteredApp(key: "demo", secret: SecretDigest(of: "demo"))]
        configuration.users = users.map { name in
            Account(
                id: Identifier(ours: name), publicIDs: [Identifier(ours: "\(name)@localhost")],
                mediaTokens: [SecretDigest(of: "token of \(name)")],
                accessTokens: [SecretDigest(of: "access token of \(name)")])
        }
        if let key = Self.signingKey { configuration.apiKeys = [key] }
        change(&configuration)
        exchange = try await ExchangeServer.start(configuration, on: group, logger: logger)
    }

    /// A device of `user`, connected unless somebody else does that.
    func device(
        _ user: String, named name: String, answer: AnswerPolicy = AnswerPolicy(manner: .ring),
        hangUpsTake hundredths: Int? = nil, counting count: HangUpCount = HangUpCount(), connects: Bool = true,
        sharing media: SharedMedia? = nil, logger given: Logger? = nil,
        _ change: (inout DeviceConfiguration) -> Void = { _ in }
    ) async throws -> Handheld {
        let logger = given ?? logger
        var configuration = DeviceConfiguration(account: AccountConfiguration(server: exchange.url))
        configuration.answer = answer
        configuration.media.realtimePriority = nil
        change(&configuration)
        let service = try service(user, named: name)
        let address = MediaAddress(for: configuration)
        let device =
            if let media {
                try Device(configuration, service: service, mediaAddress: address, sharing: media, logger: logger)
            } else {
                try Device(
                    configuration,
                    service: hundredths.map { SlowHangUps(service: service, hundredths: $0, count: count) } ?? service,
                    mediaAddress: address, logger: logger)
            }
        if connects { try await device.connect() }
        return Handheld(device)
    }

    /// The signaling of a device of `user`, not connected.
    func service(_ user: String, named name: String) throws -> HandsetService {
        try HandsetService(
            HandsetServiceConfiguration(
                addresses: .init(exchange.url),
                application: .init(name: "Test", version: "1", system: "Linux", key: "demo", secret: "demo"),
                credentials: .mediaToken("token of \(user)"), device: .init(id: DeviceID(ours: name), name: name)),
            group: group, logger: logger)
    }

    /// What devices of this exchange can share, with a card if `change` names one.
    func media(_ change: (inout DeviceConfiguration) -> Void = { _ in }) throws -> SharedMedia {
        var configuration = DeviceConfiguration(account: AccountConfiguration(server: exchange.url))
        configuration.media.realtimePriority = nil
        configuration.media.workers = 1
        change(&configuration)
        return try SharedMedia(for: [configuration, configuration], logger: logger)
    }

    func close(_ devices: Handheld...) async throws {
        for handheld in devices { await handheld.device.shutDown() }
        await exchange.stop()
        try await group.shutdownGracefully()
    }
}

/// A device with its events taken one after the other.
final class Handheld: @unchecked Sendable {
    let device: Device
    // One task at a time takes events.
    private var iterator: AsyncStream<DeviceEvent>.Iterator

    init(_ device: Device) {
        self.device = device
        iterator = device.events.makeAsyncIterator()
    }

    /// The next event; nil when the device has stopped.
    func next() async -> DeviceEvent? { await iterator.next() }

    /// The next call that comes in.
    func incoming() async throws -> CallID {
        while let event = await iterator.next() {
            if case .incoming(let call, _) = event { return call }
        }
        throw StreamEnded()
    }

    /// Waits until the call is established.
    func established() async throws -> Duration {
        while let event = await iterator.next() {
            if case .established(_, let time) = event { return time }
            if case .ended(_, let record, _) = event { throw EndedEarly(record: record) }
        }
        throw StreamEnded()
    }

    /// Waits until media flows both ways.
    func flowing() async throws -> Duration {
        while let event = await iterator.next() {
            if case .flowing(_, let setUpTime, _) = event { return setUpTime }
            if case .ended(_, let record, _) = event { throw EndedEarly(record: record) }
        }
        throw StreamEnded()
    }

    /// Waits until the call is over.
    func ended() async throws -> (record: CallRecord, report: MediaReport?) {
        while let event = await iterator.next() {
            if case .ended(_, let record, let report) = event { return (record, report) }
        }
        throw StreamEnded()
    }
}

struct StreamEnded: Error {}
struct EndedEarly: Error {
    let record: CallRecord
}
