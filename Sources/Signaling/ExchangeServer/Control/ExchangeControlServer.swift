import ControlPlane
import HTTPTransport
import Logging
import NIOCore

/// The control interface of a running exchange, with a thread of its own.
final class ExchangeControlServer: Sendable {
    private let host: ControlHost<ExchangeControl>
    private let feed: ExchangeFeed

    private init(_ host: ControlHost<ExchangeControl>, _ feed: ExchangeFeed) {
        (self.host, self.feed) = (host, feed)
    }

    /// Accepts clients from now on, and notes what happens in the exchange.
    ///
    /// - Throws: ``ExchangeError`` that says which socket or address cannot be used, and what to try.
    static func start(
        _ configuration: ControlSection, of hub: NIOLoopBound<ExchangeHub>,
        on exchangeLoop: any EventLoop,
        _ facts: ExchangeControl.Facts, logger: Logger
    ) async throws(ExchangeError) -> ExchangeControlServer {
        let socket = try listen(configuration)
        do {
            let host = try await ControlHost.start(
                socket, configuration.network, historyFolder: configuration.historyFolder,
                webhooks: configuration.webhooks, logger: logger
            ) { front, store in
                let feed = ExchangeFeed(store, through: front.door)
                return ExchangeControl(hub, on: exchangeLoop, facts, front, feed)
            }
            guard let feed = await host.look({ $0.feed }) else {
                throw ExchangeError(.addressNotUsable, "control: its thread has ended")
            }
            try await exchangeLoop.submit { hub.value.observer = { feed.add($0) } }.get()
            return ExchangeControlServer(host, feed)
        } catch {
            throw (error as? ListenError).map { ExchangeError($0) } ?? (error as? ExchangeError)
                ?? ExchangeError(.addressNotUsable, "control: \(error)")
        }
    }

    private static func listen(
        _ configuration: ControlSection
    ) throws(ExchangeError) -> ControlSocket {
        do throws(ControlSocketError) {
            return try ControlSocket(path: configuration.path, access: configuration.access)
        } catch {
            var error = error
            error.owner = .exchange
            throw ExchangeError(error.code == .inUse ? .portInUse : .controlNotUsable, error.description)
        }
    }

    /// The port on TCP; nil without TCP.
    var port: Int? { host.port }

    /// Has other webhooks from now on; false if there is no folder in which events wait for them.
    func adopt(_ webhooks: [ControlWebhook]) async -> Bool { await host.adopt(webhooks) }

    /// What it has counted since the start.
    func figures() async -> ControlFigures { await host.figures() }

    /// Accepts no more clients. Those that there are still receive events.
    func stopAccepting() async { await host.stopAccepting() }

    /// Disconnects all clients, and completes the history on disk.
    func close() async {
        let feed = feed
        _ = await host.look { _ in feed.drain() }
        await host.close()
    }
}
