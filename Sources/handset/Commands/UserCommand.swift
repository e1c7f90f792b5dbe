internal import ArgumentParser
internal import ConfigReader
internal import ExchangeCore
internal import ExchangeServer

/// `handset user`: accounts of the exchange.
struct UserCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Manage accounts of the exchange.",
        discussion: """
            add, enroll, remove and revoke write the exchange's users file (`users_file` of its configuration), and a running
            exchange reads it within two seconds. Users in the configuration itself are changed there.
            """,
        subcommands: [
            UserAddCommand.self, UserEnrollCommand.self, UserListCommand.self, UserRemoveCommand.self,
            UserRevokeCommand.self,
            HashPassword.self, HashToken.self,
        ])

    /// `handset user hash-password`.
    struct HashPassword: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hash-password",
            abstract: "Read a password from standard input and print its hash for `password_hash`.")

        func run() throws {
            Terminal.print(PasswordHash.make(try UserCommand.passwordFromInput()).description)
        }
    }

    /// `handset user hash-token`.
    struct HashToken: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hash-token",
            abstract: "Read a token from standard input and print its hash for one of the lists of token hashes.")

        func run() throws { Terminal.print(SecretDigest(of: try UserCommand.secretFromInput()).hex) }
    }

    /// The first line of standard input; empty if there is none.
    static func line() -> String { readLine(strippingNewline: true) ?? "" }

    static func secretFromInput() throws -> String {
        guard let line = readLine(strippingNewline: true), !line.isEmpty else {
            throw CommandFailure(.usage, "there is no secret on standard input; type it, or pipe it in as one line")
        }
        return line
    }

    /// A password that may be set.
    static func passwordFromInput() throws -> String {
        let password = try secretFromInput()
        if let problem = PasswordRule.problem(with: password) { throw CommandFailure(.failed, problem) }
        return password
    }
}

/// Where accounts are kept.
struct UsersPlace: ParsableArguments {
    @Option(help: "The exchange's configuration file, which names the users file.", completion: .file())
    var config: String?

    @Option(help: "The users file itself.", completion: .file())
    var usersFile: String?

    func validate() throws {
        guard (config == nil) != (usersFile == nil) else {
            throw ValidationError("Give either --config or --users-file.")
        }
    }

    /// The file, and the users that the configuration has besides.
    ///
    /// - Parameter makesFile: Whether the command makes the file that `--users-file` names if it is not there.
    func resolve(makesFile: Bool = false) throws -> (file: UsersFile, configured: [Account]) {
        if let usersFile {
            let file = UsersFile(path: usersFile)
            guard makesFile || file.exists else {
                throw CommandFailure(
                    .configuration,
                    "there is no users file \(usersFile); check the path, or make the file with `handset user add`")
            }
            if file.exists { try ConfigurationCheck.expect("user", path: usersFile) }
            return (file, [])
        }
        guard let config else { throw CommandFailure(.usage, "give either --config or --users-file") }
        try ConfigurationCheck.expect("serve", path: config)
        let configuration = try ExchangeConfiguration.read(path: config)
        guard let file = configuration.usersFile else {
            throw CommandFailure(
                .configuration, "\(config) names no users file; add the line `users_file: users.yaml` to it")
        }
        if !makesFile, !file.exists {
            for warning in configuration.warnings where warning.key == "users_file" {
                Terminal.printError(warning.description)
            }
        }
        return (file, configuration.users)
    }
}
