internal import ArgumentParser
internal import ConfigReader

/// A kind of configuration file that some command reads.
struct ConfigurationKind: Sendable {
    /// The command that reads it, such as `run`.
    let command: String
    /// Keys of the file's root that no other kind has.
    let signature: [String]
    /// Reads and checks a whole file.
    let validate: @Sendable (_ path: String, _ files: FileChecks) throws(ConfigError) -> Void
}

/// Finds everything that is wrong with a configuration file, without starting anything.
struct ConfigurationCheck: Sendable {
    /// The kinds of file that are told apart.
    let kinds: [ConfigurationKind]
    /// Which of the files that a configuration names are looked at.
    var files = FileChecks.all

    /// Checks the file at `path` as the kind that its root's keys show it to be.
    ///
    /// - Returns: The command that the file is for.
    /// - Throws: ``ConfigError`` with every problem.
    func check(path: String) throws(ConfigError) -> String {
        let root = try ConfigDocument.read(path: path, fileChecks: .none)
        guard let kind = kinds.first(where: { $0.signature.contains(where: root.has) }) else {
            let known = kinds.map { "\($0.signature.joined(separator: " or ")) (for `handset \($0.command)`)" }
            throw ConfigError([
                ConfigProblem(
                    file: path, line: root.line,
                    message: "is no configuration that is known here; one has \(known.joined(separator: ", "))")
            ])
        }
        try kind.validate(path, files)
        return kind.command
    }
}

/// `handset check FILE`.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check configuration files: every problem at once, with file, line, key and what is allowed.",
        discussion: """
            The files that a configuration names are opened as the command would open them, and the folders that it writes \
            to are looked at; nothing is changed.
            """)

    @Argument(help: "Configuration files of `handset run` or `handset serve`.")
    var files: [String]

    @Flag(help: "Leave out the files that a configuration names, and the environment: it is another machine's.")
    var offline = false

    func run() throws {
        let check = ConfigurationCheck(kinds: ConfigurationKind.all, files: offline ? .none : .all)
        var problemCount = 0
        for file in files {
            do throws(ConfigError) {
                let command = try check.check(path: file)
                Terminal.print("\(file): good for `handset \(command)`")
            } catch {
                problemCount += error.problems.count
                for problem in error.problems { Terminal.printError(problem.description) }
            }
        }
        guard problemCount == 0 else {
            throw CommandFailure(.configuration, "\(problemCount) \(problemCount == 1 ? "problem" : "problems") found")
        }
    }
}
