public import ConfigReader
public import ControlPlane

/// Where an operator acts on an exchange while it runs: the section `control`.
public struct ExchangeControlConfiguration: Sendable, Equatable {
    /// The path of the socket; nil for the standard one.
    public var socket: String?
    /// Who may connect to it.
    public var access = ControlAccess.owner
    /// The interface on TCP; nil for none.
    public var network: ControlNetwork?
    /// The folder in which events are kept; nil keeps them in memory.
    public var historyFolder: String?

    /// Listens at a path, or at the standard one.
    public init(socket: String? = nil) { self.socket = socket }

    /// Where it listens.
    var path: String { socket ?? StandardSocket.exchange.listening }
    /// Where a client connects.
    public var reaching: String { socket ?? StandardSocket.exchange.reaching }

    /// The keys of the section `control`.
    struct Keys: ControlNetworkKeys {
        let socket = ConfigKey.outputSocket(
            "socket", or: "default", "where programs on this machine act on the exchange, over HTTP"
        ).required
        let access = ConfigKey.choice(
            "access", of: ControlAccess.self,
            "who may connect, besides root: the exchange's user alone, or the members of the process's group, too"
        ).defaulting(to: .owner)
        let listen = ControlNetworkKey.listen
        let token = ControlNetworkKey.token
        let chainFile = ControlNetworkKey.chainFile
        let keyFile = ControlNetworkKey.keyFile
        let allowedHosts = ControlNetworkKey.allowedHosts
        let allowedOrigins = ControlNetworkKey.allowedOrigins
        let history = ControlNetworkKey.history
    }

    init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        access = section.value(\.access, &problems)
        network = ControlNetwork(section, named: "control", &problems)
        historyFolder = section.value(\.history, &problems)
        guard let path = section.value(\.socket, &problems) else { return nil }
        if path != "default" { socket = path }
        let bytes = self.path.utf8.count
        if bytes > ControlSocket.longestPath {
            problems.append(
                section.problem(
                    \.socket,
                    "is a path of \(bytes) bytes, and sockets have \(ControlSocket.longestPath) at most: \(self.path)"))
        }
    }

    /// Reads only this section of an exchange's configuration, so that a client of the exchange needs none of its secrets.
    ///
    /// - Returns: Nil if there is no such section.
    /// - Throws: ``ConfigError`` with the problems of the section.
    public static func read(path: String) throws(ConfigError) -> ExchangeControlConfiguration? {
        let root = try ConfigDocument.read(path: path, fileChecks: .none)
        var problems: [ConfigProblem] = []
        let configuration = KeyedSection<ExchangeConfiguration.Keys>.part(of: root).value(\.control, &problems)
            .flatMap { ExchangeControlConfiguration($0, &problems) }
        _ = try problems.verdict()
        return configuration
    }
}
