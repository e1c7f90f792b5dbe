public import ConfigReader

/// Where an operator acts on an exchange or a trunk while it runs: the section `control` of its configuration.
public struct ControlSection: Sendable, Equatable {
    /// The path of the socket; nil for the standard one.
    public var socket: String?
    /// Who may connect to it.
    public var access = ControlAccess.owner
    /// The interface on TCP; nil for none.
    public var network: ControlNetwork?
    /// The folder in which events are kept; nil keeps them in memory.
    public var historyFolder: String?
    /// Servers that are sent the events of calls.
    public var webhooks: [ControlWebhook] = []
    private let standard: StandardSocket

    /// Listens at a path, or at the standard one of a kind of process.
    public init(_ standard: StandardSocket, socket: String? = nil) { (self.standard, self.socket) = (standard, socket) }

    /// Where it listens.
    public var path: String { socket ?? standard.listening }
    /// Where a client connects.
    public var reaching: String { socket ?? standard.reaching }

    /// The keys of the section.
    public struct Keys: ControlInterfaceKeys {
        let socket = ConfigKey.outputSocket(
            "socket", or: "default", "where programs on this machine act on it, over HTTP"
        ).required
        let access = ConfigKey.choice(
            "access", of: ControlAccess.self,
            "who may connect, besides root: the process's user alone, or the members of the process's group, too"
        ).defaulting(to: .owner)
        /// Those of the interface on TCP.
        public let network = ControlNetworkKeys()
        let webhooks = ConfigKey.sections(
            "webhooks", ControlWebhook.Keys.self,
            "servers that are sent the events of calls ([webhooks.md](webhooks.md)); it needs `history_folder`")

        /// Declares them.
        public init() {}

        /// All of them, in the order of the documentation.
        public var declared: [any DeclaredKey] { [socket, access] + network.declared + [webhooks] }
    }

    /// Reads the section.
    ///
    /// - Returns: Nil if it has no usable socket, which `problems` then say.
    public init?(_ section: KeyedSection<Keys>, at standard: StandardSocket, _ problems: inout [ConfigProblem]) {
        self.standard = standard
        access = section.value(\.access, &problems)
        network = ControlNetwork(section, named: "control", &problems)
        historyFolder = section.value(\.network.history, &problems)
        webhooks = ControlWebhook.all(
            section, \.webhooks, of: standard.source, waitingIn: ("control.history_folder", historyFolder), &problems)
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

    /// Reads only this section of a file, so that a client of the process needs none of its secrets.
    ///
    /// - Parameter key: The section among the keys of the file's root.
    /// - Returns: Nil if there is no such section.
    /// - Throws: ``ConfigError`` with the problems of the section.
    public static func read<Root: ConfigKeys>(
        path: String, _ key: KeyPath<Root, ConfigKey<KeyedSection<Keys>>>, at standard: StandardSocket
    ) throws(ConfigError) -> ControlSection? {
        let root = try ConfigDocument.read(path: path, fileChecks: .none)
        var problems: [ConfigProblem] = []
        let section = KeyedSection<Root>.part(of: root).value(key, &problems)
            .flatMap { ControlSection($0, at: standard, &problems) }
        _ = try problems.verdict()
        return section
    }
}
