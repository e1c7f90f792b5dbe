internal import ArgumentParser
internal import ConfigReader

/// A kind of configuration file that some command reads.
struct ConfigurationKind: Sendable {
    /// The command that reads it, such as `run`.
    let command: String
    /// Keys of the file's root that no other kind has.
    let signature: [String]
    /// Reads and checks a whole file.
    let validate: @Sendable (_ path: String) throws(ConfigError) -> Void
}

/// Finds everything that is wrong with a configuration file, without starting anything.
struct ConfigurationCheck: Sendable {
    /// The kinds of file that are told apart.
    let kinds: [ConfigurationKind]

    /// Checks the file at `path` as the kind that its root's keys show it to be.
    ///
    /// - Returns: The command that the file is for.
    /// - Throws: ``ConfigError`` with every problem.
    func check(path: String) throws(ConfigError) -> String {
        let root = try ConfigDocument.read(path: path)
        guard let kind = kinds.first(where: { $0.signature.contains(where: root.has) }) else {
            let known = kinds.map { "\($0.signature.joined(separator: " or ")) (for `handset \($0.command)`)" }
            throw ConfigError([
                ConfigProblem(
                    file: path, line: root.line,
                    message: "is no configuration that is known here; one has \(known.joined(separator: ", "))")
            ])
        }
        try kind.validate(path)
        return kind.command
    }
}

/// `handset check FILE`.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check configuration files: every problem at once, with file, line, key and what is allowed.")

    @Argument(help: "Configuration files of `handset run` or `handset serve`.")
    var files: [String]

    func run() throws {
        let check = ConfigurationCheck(kinds: ConfigurationKind.all)
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
