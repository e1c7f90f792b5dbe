internal import ConfigReader
internal import Core
internal import HTTPTransport
package import Logging
internal import NIOCore
internal import NIOPosix
internal import Realtime

/// Shows how a process is doing, over HTTP at an address of its own: `/metrics`, `/livez` and `/readyz`.
///
/// It has a thread of its own, so that it answers when the process's other threads do not.
package final class MonitoringServer: Sendable {
    /// How long it waits for an answer of the process.
    package static let patience = Duration.seconds(2)
    /// Bytes of requests that are not complete, in all.
    private static let requestMemory = 256 << 10
    private static let bounds = StrangerBounds(bodyBytes: 1, messageBytes: 1)

    /// The port it listens at.
    package let port: Int
    private let channel: any Channel
    private let group: MultiThreadedEventLoopGroup

    private init(_ channel: any Channel, _ group: MultiThreadedEventLoopGroup) {
        self.channel = channel
        self.group = group
        port = channel.localAddress?.port ?? 0
    }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - version: Of the program, for `handset_build_info`.
    ///   - patience: How long it waits for an answer of the process.
    /// - Throws: An error with what was tried and what to try.
    package static func start(
        _ configuration: MonitoringConfiguration, of process: MonitoredProcess, version: String, logger: Logger,
        patience: Duration = MonitoringServer.patience
    ) async throws -> MonitoringServer {
        let address = ListenAddress(host: configuration.listen.host, port: configuration.listen.port)
        let place = try address.resolve()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        do {
            let listener = try await loop.submit {
                let service = MonitoringService(
                    configuration, process, version: version, patience: patience, loop: loop, logger: logger)
                return NIOLoopBound(
                    HTTPListener(
                        service, tls: nil, budget: InboundBudget(limit: requestMemory), bounds: bounds, messageBytes: 1),
                    eventLoop: loop)
            }.get()
            let channel = try await HTTPListener.listen(at: place, with: listener, on: loop)
            let server = MonitoringServer(channel, group)
            logger.info(
                "Showing metrics and health", metadata: ["url": "http://\(configuration.listen.host):\(server.port)"])
            return server
        } catch {
            try? await group.shutdownGracefully()
            throw address.explain(error)
        }
    }

    /// Ends, with all its connections.
    package func stop() async {
        try? await channel.close()
        try? await group.shutdownGracefully()
    }
}
