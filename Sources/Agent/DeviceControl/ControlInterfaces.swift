public import CallAgent
public import ControlPlane
internal import ControlWire
public import Logging
public import NIOCore

/// The sockets at which programs on this machine control a device. They are opened before anything else that others would notice.
public struct ControlSockets: Sendable {
    /// Takes lines of JSON.
    let lines: ControlSocket
    /// Takes requests over HTTP; nil without the section `control.http`.
    let http: ControlSocket?

    /// Opens them.
    public init(_ configuration: ControlConfiguration) throws(ControlSocketError) {
        let path = ControlSocketPath.listening(configuration)
        lines = try ControlSocket(path: path, access: configuration.access)
        guard let section = configuration.http else {
            http = nil
            return
        }
        http = try ControlSocket(path: section.path(beside: path), access: configuration.access)
    }
}

/// The interfaces by which programs control the accounts of a process: lines of JSON, and HTTP. Both carry out the same requests.
public final class ControlInterfaces: Sendable {
    private let hub: ControlEventHub
    private let lines: ControlServer
    private let http: DeviceHTTPServer?

    private init(_ hub: ControlEventHub, _ lines: ControlServer, _ http: DeviceHTTPServer?) {
        self.hub = hub
        self.lines = lines
        self.http = http
    }

    /// Accepts clients from now on.
    ///
    /// - Parameters:
    ///   - version: The program's, for the status.
    ///   - group: Whose loop serves the clients of lines; those of HTTP have a thread of their own.
    /// - Throws: An error that says which socket or address cannot be used, and what to try.
    public static func start(
        _ sockets: ControlSockets, _ configuration: ControlConfiguration, accounts: AccountSet, version: String,
        group: any EventLoopGroup, logger: Logger
    ) async throws -> ControlInterfaces {
        let hub = ControlEventHub()
        let handler = ControlRequestHandler(accounts, version: version)
        let lines = try await ControlServer.start(sockets.lines, handler, hub, group: group, logger: logger)
        logger.info("Listening to programs on this machine", metadata: ["socket": "\(sockets.lines.path)"])
        var http: DeviceHTTPServer?
        if let socket = sockets.http, let section = configuration.http {
            http = try await DeviceHTTPServer.start(
                socket, section, webhooks: configuration.webhooks, handler, hub, logger: logger)
        }
        return ControlInterfaces(hub, lines, http)
    }

    /// Reports to clients what has happened to the device of an account, or to the process.
    public func notify(_ event: DeviceEvent, of account: String?) async {
        if let event = ControlEvent(event) { await hub.publish(event, of: account) }
    }

    /// What the interface over HTTP has counted since the start; nil without it.
    package func figures() async -> ControlFigures? { await http?.figures() }

    /// Has other webhooks from now on. Those that remain continue where they are.
    ///
    /// - Returns: False if they wait for the next start, because there is no folder in which events wait for them yet.
    public func adopt(_ webhooks: [ControlWebhook]) async -> Bool { await http?.adopt(webhooks) ?? webhooks.isEmpty }

    /// Disconnects all clients, and accepts no more. Events that wait for a client may be lost; those of the history are on disk.
    public func close() async {
        await lines.close()
        await http?.close()
    }
}
