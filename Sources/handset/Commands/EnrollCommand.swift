internal import ArgumentParser
internal import FoundationEssentials
internal import Logging

/// `handset enroll`: joins an exchange by a code.
struct EnrollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll", abstract: "Join an exchange by the code of `handset user enroll`.",
        discussion: """
            Checks the exchange's authority against the code, makes a key (mode 0600), joins, writes FOLDER/NAME.yaml for \
            `handset run` and the unit handset@NAME, logs in, and has the device call itself. The same command again \
            continues what was interrupted. `handset setup --enroll CODE` has more options.
            """)

    @Argument(
        help: """
            The code; "-" reads it from standard input, so that no process list shows it. Without it the command asks on a terminal.
            """)
    var code: String?

    @Option(help: "The device's name: of its unit and its files; this machine's unless given.")
    var name: String?

    @Option(
        help: "What the device does in calls: card, echo, tone or silence; echo unless given.",
        completion: Completions.sources)
    var source: String?

    @OptionGroup var paths: SetupPaths

    @Option(help: "The unit's user and its group.")
    var group = "handset"

    @OptionGroup var application: SetupApplication

    @Flag(help: "Replace an existing configuration.")
    var force = false

    @Flag(help: "Only join, write and check.")
    var noTrial = false

    @Flag(help: "Enable and start the unit handset@NAME at the end.")
    var enable = false

    @OptionGroup var logs: LogOptions

    func run() async throws {
        let setup = try SetupCommand.parse(arguments)
        try await setup.run(code: try text())
    }

    private func text() throws -> String {
        if let code {
            if code == "-" { return UserCommand.line() }
            SetupCommand.warnOfShownCode()
            return code
        }
        guard let questions = SetupQuestions.atTerminal,
            let answer = questions.secret("The code of `handset user enroll`")
        else {
            throw CommandFailure(.usage, "give the code of `handset user enroll`, or - to read it from standard input")
        }
        return answer
    }

    /// Of `handset setup`, which does all this.
    private var arguments: [String] {
        var arguments = [name ?? Self.machine, "--folder=\(paths.folder)", "--group=\(group)"]
        arguments.append("--source=\(source ?? "echo")")
        let options = [
            ("state", paths.state), ("control", paths.control), ("app-key", application.key),
            ("app-secret-file", application.secretFile),
            ("log-level", logs.logLevel.rawValue),
        ]
        arguments += options.compactMap { name, value in value.map { "--\(name)=\($0)" } }
        for (flag, isSet) in [("force", force), ("no-trial", noTrial), ("enable", enable)] where isSet {
            arguments.append("--\(flag)")
        }
        return arguments
    }

    /// This machine's name, as far as it can be a unit's.
    private static var machine: String {
        let name = String(ProcessInfo.processInfo.hostName.lowercased().prefix { $0 != "." })
        return SetupPlan.problem(withName: name) == nil ? name : "device"
    }
}
