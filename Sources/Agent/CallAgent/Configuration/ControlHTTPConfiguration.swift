internal import ConfigReader
public import ControlPlane

/// Where programs act on a device over HTTP: the section `control.http`.
public struct ControlHTTPConfiguration: Sendable, Equatable {
    /// Which Unix socket; the standard one is beside the control socket.
    public var socket = ControlConfiguration.Socket.standard
    /// The interface on TCP; nil for none.
    public var network: ControlNetwork?
    /// The folder in which events are kept; nil keeps them in memory.
    public var historyFolder: String?

    /// The interface on its standard socket.
    public init() {}

    /// Where it listens, if the control socket is at `control`: `control-http.sock` beside `control.sock`, unless it has a path.
    public func path(beside control: String) -> String {
        switch socket {
        case .path(let path): path
        case .standard: (control.hasSuffix(".sock") ? String(control.dropLast(5)) : control) + "-http.sock"
        }
    }

    /// The keys of the section `control.http`.
    struct Keys: ControlInterfaceKeys {
        let socket = ConfigKey.outputSocket(
            "socket", or: "default", "where it listens; `default` is beside `control.socket`"
        ).unset("`default`")
        let network = ControlNetworkKeys()

        var declared: [any DeclaredKey] { [socket] + network.declared }
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let path = section.value(\.socket, &problems) ?? "default"
        if path != "default" { socket = .path(path) }
        if path != "default", path.utf8.count > ControlSocket.longestPath {
            problems.append(
                section.problem(
                    \.socket,
                    "is a path of \(path.utf8.count) bytes, and sockets have \(ControlSocket.longestPath) at most: \(path)"
                ))
        }
        historyFolder = section.value(\.network.history, &problems)
        network = ControlNetwork(section, named: "control.http", &problems)
    }
}

extension ControlHTTPConfiguration {
    /// Checks the socket beside that of lines.
    func check(
        beside control: String, in section: KeyedSection<ControlConfiguration.Keys>, _ part: KeyedSection<Keys>,
        _ problems: inout [ConfigProblem]
    ) {
        let path = path(beside: control)
        let length = path.utf8.count
        if case .path = socket {
            if path == control {
                problems.append(part.problem(\.socket, "is control.socket, too; give it another path"))
            }
        } else if length > ControlSocket.longestPath {
            problems.append(
                section.problem(
                    \.socket,
                    "leaves no room for that of control.http beside it, a path of \(length) bytes, and sockets have "
                        + "\(ControlSocket.longestPath) at most; give control.http.socket, or a shorter path"))
        }
    }
}
