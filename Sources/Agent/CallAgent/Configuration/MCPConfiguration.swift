public import ConfigReader
internal import Identifiers

/// The section `mcp`: what `handset mcp` gives an agent besides the device's control socket.
public struct MCPConfiguration: Sendable {
    /// The command that speaks texts: text on its standard input, a WAV on its standard output; empty for none.
    public var voice: [String] = []
    /// The command that recognises speech: a WAV on its standard input, text on its standard output; empty for none.
    public var recogniser: [String] = []
    /// Where files are exchanged with the device; nil for the folder TMPDIR, or /tmp.
    public var folder: String?
    /// The callees that an agent may name.
    public private(set) var callees = AgentCallees()
    /// Variables with secrets of the whole file, which the commands do not inherit.
    public private(set) var withheldVariables: Set<String> = []

    /// Offers no voice, and hears nothing.
    public init() {}

    /// The keys of the section.
    struct Keys: ConfigKeys {
        let say = ConfigKey.command(
            "say",
            "the command that speaks: it reads a text on standard input, and writes a WAV to standard output within 15 s"
        ).unset("no voice: the tool `say` fails")
        let hear = ConfigKey.command(
            "hear",
            "the command that recognises speech: it reads a WAV (16 kHz, 16 bits, mono) on standard input, and writes text to standard "
                + "output within 60 s"
        ).unset("no recogniser: the tool `hear` fails")
        let folder = ConfigKey.outputFolder(
            "folder", "where sound is exchanged with the device, in a folder of its own that is removed at the end"
        ).unset("the folder `TMPDIR`, or `/tmp`")
        let callees = ConfigKey<[CalleePattern]>.callees(
            "callees that an agent may call, or transfer to: names, `team-*`, `+4930*`, `2??`"
        ).unset("`account.callees`")
    }

    init(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        voice = section.value(\.say, &problems) ?? []
        recogniser = section.value(\.hear, &problems) ?? []
        folder = section.value(\.folder, &problems)
        callees = AgentCallees(section.value(\.callees, &problems).map { CalleeList($0) })
    }

    /// Reads this section of a device's configuration, and the accounts' lists of callees if it has none. No secret is needed.
    ///
    /// - Throws: ``ConfigError`` with the problems of what was read.
    public static func read(path: String) throws(ConfigError) -> MCPConfiguration {
        let root = try ConfigDocument.read(path: path, fileChecks: .none)
        var problems: [ConfigProblem] = []
        var configuration =
            KeyedSection<DeviceConfiguration.Keys>.part(of: root).value(\.mcp, &problems)
            .map { MCPConfiguration($0, &problems) } ?? MCPConfiguration()
        _ = try problems.verdict()
        configuration.withheldVariables = root.secretVariables
        if !configuration.callees.isListed {
            configuration.callees.take(try AccountsConfiguration.read(root).accounts)
        }
        return configuration
    }
}

/// The callees that an agent may call, or transfer to: those of `mcp.callees`, or those that the account may call on a stranger's word,
/// because what strangers say reaches the agent.
public struct AgentCallees: Sendable {
    private let listed: CalleeList?
    private var accounts: [AccountsConfiguration.Account] = []

    /// Makes a list.
    ///
    /// - Parameter listed: Those of `mcp.callees`; nil for none, and no callee is admitted before accounts were taken.
    init(_ listed: CalleeList? = nil) { self.listed = listed }

    /// Whether there is a list of its own.
    var isListed: Bool { listed != nil }

    /// Takes the accounts, with their own lists.
    mutating func take(_ accounts: [AccountsConfiguration.Account]) { self.accounts = accounts }

    /// Whether a callee may be called.
    ///
    /// - Parameters:
    ///   - name: As the agent wrote it.
    ///   - account: The account that calls; nil if it is not known, and then each of them must admit the callee.
    public func admits(_ name: String, account: String?) -> Bool {
        if let listed { return listed.admits(Callee(name)) }
        let chosen = accounts.filter { account == nil || $0.name == account }
        return !chosen.isEmpty && chosen.allSatisfy { $0.configuration.account.mayCall(name) != nil }
    }
}
