public import ConfigReader
public import ControlPlane
internal import ControlWire

/// Where programs on this machine act on a device while it runs.
public struct ControlConfiguration: Sendable, Equatable {
    /// Which socket.
    public enum Socket: Sendable, Equatable {
        /// The one that clients look for by themselves.
        case standard
        /// The one at this path.
        case path(String)
    }

    /// Who may connect. Root always may.
    public typealias Access = ControlAccess

    /// Which socket.
    public var socket: Socket
    /// Who may connect.
    public var access = Access.owner
    /// The interface over HTTP; nil for none, which is so only if its usual path is too long for a socket.
    public var http: ControlHTTPConfiguration? = ControlHTTPConfiguration()
    /// Servers that are sent events.
    public var webhooks: [ControlWebhook] = []

    /// Uses `socket`.
    public init(socket: Socket) { self.socket = socket }

    /// The keys of the section `control`.
    struct Keys: ConfigKeys {
        let socket = ConfigKey.outputSocket(
            "socket", or: "default", "where `handset control` finds the device"
        ).required
        let access = ConfigKey.choice(
            "access", of: Access.self,
            "who may connect, besides root: the device's user alone, or the members of the process's group, too"
        ).defaulting(to: .owner)
        let http = ConfigKey.section(
            "http", ControlHTTPConfiguration.Keys.self,
            "the interface over HTTP ([control.md](control.md#http)); without this section it is beside `socket`, in memory alone"
        )
        let webhooks = ConfigKey.sections(
            "webhooks", ControlWebhook.Keys.self,
            "servers that are sent the events of calls ([webhooks.md](webhooks.md)); it needs `http.history_folder`"
        )
    }

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let part = section.value(\.http, &problems)
        var http: ControlHTTPConfiguration? =
            part.map { ControlHTTPConfiguration($0, &problems) }
            ?? ControlHTTPConfiguration()
        webhooks = ControlWebhook.all(
            section, \.webhooks, of: .device, waitingIn: ("control.http.history_folder", http?.historyFolder), &problems
        )
        switch section.value(\.socket, &problems) {
        case nil: return nil
        case "default"?: socket = .standard
        case let path?:
            socket = .path(path)
            let length = path.utf8.count
            if length > ControlSocket.longestPath {
                problems.append(
                    section.problem(
                        \.socket,
                        "is a path of \(length) bytes, and sockets have \(ControlSocket.longestPath) at most: \(path)")
                )
            } else if let part {
                http?.check(beside: path, in: section, part, &problems)
            } else if let usual = http?.path(beside: path), usual.utf8.count > ControlSocket.longestPath {
                http = nil
                problems.append(
                    section.warning(
                        \.socket,
                        "leaves no room for the socket of HTTP beside it, so `handset control` cannot act on this device; "
                            + "give a shorter path, or http.socket"))
            }
        }
        access = section.value(\.access, &problems)
        self.http = http
    }

    /// Reads only this section of a device's configuration, so that a client of the device needs none of its secrets.
    ///
    /// - Returns: Nil if there is no such section.
    /// - Throws: ``ConfigError`` with the problems of the section.
    public static func read(path: String) throws(ConfigError) -> ControlConfiguration? {
        let root = try ConfigDocument.read(path: path, fileChecks: .none)
        var problems: [ConfigProblem] = []
        let configuration = KeyedSection<DeviceConfiguration.Keys>.part(of: root).value(\.control, &problems)
            .flatMap { ControlConfiguration($0, &problems) }
        _ = try problems.verdict()
        return configuration
    }
}
