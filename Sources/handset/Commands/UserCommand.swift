internal import ArgumentParser
internal import ConfigReader
internal import Exchange

/// `handset user`: accounts of the exchange.
struct UserCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Prepare accounts of the exchange.",
        subcommands: [HashPassword.self, HashToken.self])

    /// `handset user hash-password`.
    struct HashPassword: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hash-password",
            abstract: "Read a password from standard input and print its hash for `password_hash`.")

        func run() throws {
            Terminal.print(PasswordHash.make(try UserCommand.secretFromInput()).description)
        }
    }

    /// `handset user hash-token`.
    struct HashToken: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "hash-token",
            abstract:
                "Read a token from standard input and print its hash for media_token_hashes or stream_token_hashes.")

        func run() throws { Terminal.print(SecretDigest(of: try UserCommand.secretFromInput()).hex) }
    }

    private static func secretFromInput() throws -> String {
        guard let line = readLine(strippingNewline: true), !line.isEmpty else {
            throw CommandFailure(.usage, "there is no secret on standard input; type it, or pipe it in as one line")
        }
        return line
    }
}
