internal import ArgumentParser
internal import ConfigReader
internal import ExchangeServer
internal import CallAgent
internal import CallFlow
internal import CallFlows
internal import Loopback
internal import TrunkGateway

/// A kind of configuration file that some command reads.
struct ConfigurationKind: Sendable {
    /// The command that reads it, such as `run`.
    let command: String
    /// Keys of the file's root that no other kind has.
    let signature: [String]
    /// The keys of the file's root, and below them all others.
    var keys: [ConfigKeyEntry] = []
    /// Reads and judges a whole file, by the code that the command itself reads it with.
    ///
    /// - Returns: Warnings.
    let judge: @Sendable (_ path: String, _ files: FileChecks) throws(ConfigError) -> [ConfigProblem]
}

/// Finds everything that is wrong with a configuration file, without starting anything.
struct ConfigurationCheck: Sendable {
    /// The kinds of file that it distinguishes.
    let kinds: [ConfigurationKind]
    /// Which of the files that a configuration names are looked at.
    var files = FileChecks.all

    /// Checks the file at `path` as the kind that its root's keys show it to be.
    ///
    /// - Returns: The command that the file is for, and warnings.
    /// - Throws: ``ConfigError`` with every problem.
    func check(path: String) throws(ConfigError) -> (command: String, warnings: [ConfigProblem]) {
        let root = try Self.root(path)
        guard let kind = kind(of: root) else {
            let known = kinds.map { "\($0.signature.joined(separator: " or ")) (for `handset \($0.command)`)" }
            throw ConfigError([
                ConfigProblem(
                    file: path, line: root.line,
                    message: "is not a known kind of configuration; one has \(known.joined(separator: ", "))")
            ])
        }
        return (kind.command, try kind.judge(path, files))
    }

    /// The command that the file at `path` belongs to, even if the file has errors.
    func command(path: String) -> String? {
        (try? Self.root(path)).flatMap { kind(of: $0) }?.command
    }

    /// Refuses a file that shows itself to be of another kind than `command` reads: most of its keys would be unknown.
    static func expect(_ command: String, path: String) throws(ConfigError) {
        try ConfigurationCheck(kinds: ConfigurationKind.all).expect(command, path: path)
    }

    /// The same, of a file that was read already.
    static func expect(_ command: String, _ root: ConfigSection) throws(ConfigError) {
        try ConfigurationCheck(kinds: ConfigurationKind.all).expect(command, root)
    }

    /// The same, of the kinds that are distinguished.
    func expect(_ command: String, path: String) throws(ConfigError) { try expect(command, Self.root(path)) }

    private func expect(_ command: String, _ root: ConfigSection) throws(ConfigError) {
        guard let kind = kind(of: root), kind.command != command else { return }
        let own = kinds.first { $0.command == command }?.signature.first ?? ""
        throw ConfigError([
            ConfigProblem(
                file: root.file, line: root.line,
                message: "is a configuration for `handset \(kind.command)`; one for `handset \(command)` has \(own)")
        ])
    }

    /// The keys of a file's root. A file of any kind may be as long as those of users.
    private static func root(_ path: String) throws(ConfigError) -> ConfigSection {
        try ConfigDocument.read(path: path, maximumBytes: UsersFile.maximumBytes, fileChecks: .none)
    }

    /// The kind that has one of these keys; otherwise the one that has a key much like one.
    private func kind(of root: ConfigSection) -> ConfigurationKind? {
        kinds.first { $0.signature.contains(where: root.keys.contains) }
            ?? kinds.first { kind in
                root.keys.contains { NearestName.find($0, among: kind.signature) != nil }
            }
    }
}

/// `handset check FILE`.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check configuration files: every problem at once, with file, line, key and what is allowed.",
        discussion: """
            Refuses what `handset run` or `handset serve` would refuse, by the same code: opens the files that a \
            configuration names, checks the folders that it writes to, and tries the address to listen at; changes \
            nothing. A file whose name ends in .xml is checked as a call flow, with all that it names. A file that has only warnings, such as of a secret that every user may read, is good.
            """)

    @Argument(
        help:
            "Configuration files of `handset run`, `serve` or `loopback`, a users file of `handset user`, or a call flow.",
        completion: .file())
    var files: [String]

    @Flag(
        help:
            "Do not check the files that a configuration names, nor the environment: for another machine's configuration."
    )
    var offline = false

    @Flag(help: "Print a JSON object for each file, on a line of its own.")
    var json = false

    func run() throws {
        let check = ConfigurationCheck(kinds: ConfigurationKind.all, files: offline ? .none : .all)
        var problemCount = 0
        for file in files {
            let result = CheckResult(file, check)
            problemCount += result.problems.count { !$0.isWarning }
            if json { Terminal.print(result.json) } else { result.show() }
        }
        guard problemCount == 0 else {
            throw CommandFailure(.configuration, "\(problemCount) \(problemCount == 1 ? "problem" : "problems") found")
        }
    }
}

/// What `handset check` says of one file.
struct CheckResult {
    let file: String
    /// The command that it belongs to; nil if unknown.
    let command: String?
    /// Whether it is a document of a call flow.
    let isFlow: Bool
    /// Whether the command would take it.
    let isGood: Bool
    /// With warnings.
    let problems: [ConfigProblem]

    init(_ file: String, _ check: ConfigurationCheck) {
        self.file = file
        isFlow = file.hasSuffix(".xml")
        if isFlow {
            problems = Self.problems(ofFlow: file, check.files)
            (command, isGood) = (nil, problems.isEmpty)
            return
        }
        do throws(ConfigError) {
            let result = try check.check(path: file)
            (command, isGood) = (result.command, true)
            problems = result.warnings
        } catch {
            (command, isGood) = (check.command(path: file), false)
            problems = error.problems
        }
    }

    func show() {
        for problem in problems { Terminal.printError(problem.description) }
        if isGood, let command { Terminal.print("\(file): good for `handset \(command)`") }
        if isGood, isFlow { Terminal.print("\(file): good for behaviour.flow.file") }
    }

    private static func problems(ofFlow file: String, _ files: FileChecks) -> [ConfigProblem] {
        do throws(FlowUnusable) {
            let folder = try FlowFolder(file: file)
            return files == .none ? FlowCheck.problems(ofDocumentIn: folder) : FlowCheck.problems(of: folder)
        } catch {
            return [ConfigProblem(file: file, message: error.message)]
        }
    }

    /// One JSON object on one line.
    var json: String {
        var object = JSONObjectText()
        object.add("file", file)
        object.add("good", isGood)
        object.add("command", command)
        object.add(
            "problems",
            objects: problems.map { problem in
                var object = JSONObjectText()
                object.add("file", problem.file)
                object.add("line", problem.line == 0 ? nil : Double(problem.line))
                object.add("key", problem.key.isEmpty ? nil : problem.key)
                object.add("severity", problem.isWarning ? "warning" : "error")
                object.add("message", problem.message)
                return object
            })
        return object.text
    }
}

extension ConfigurationKind {
    /// The kinds that `handset check` knows, one for each command that reads a configuration.
    static let all: [ConfigurationKind] = [
        ConfigurationKind(
            command: "run", signature: ["account", "accounts"], keys: DeviceConfiguration.keys,
            judge: { path, files throws(ConfigError) in
                let document = try ConfigDocument.read(path: path, fileChecks: files)
                let configuration = try AccountsConfiguration.read(document)
                return configuration.warnings + (files == .all ? configuration.cardWarnings(in: document) : [])
            }),
        ConfigurationKind(
            command: "serve", signature: ["apps", "listen", "users_file"], keys: ExchangeConfiguration.keys,
            judge: { path, files throws(ConfigError) in
                try ExchangeConfiguration.read(path: path, fileChecks: files).warnings
            }),
        ConfigurationKind(
            command: "trunk", signature: ["exchange", "network"], keys: TrunkConfiguration.keys,
            judge: { path, files throws(ConfigError) in try TrunkConfiguration.check(path: path, fileChecks: files) }),
        ConfigurationKind(
            command: "user", signature: ["users"], keys: UsersFile.keys,
            judge: { path, _ throws(ConfigError) in
                _ = try UsersFile(path: path).read()
                return []
            }),
        ConfigurationKind(
            command: "loopback", signature: ["thresholds"], keys: LoopbackLimit.keys,
            judge: { path, _ throws(ConfigError) in
                var thresholds = LoopbackThresholds(.device)
                try LoopbackLimit.read(path: path, into: &thresholds)
                return []
            }),
    ]
}
