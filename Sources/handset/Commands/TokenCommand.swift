internal import ArgumentParser
internal import ConfigReader
internal import ExchangeCore
internal import ExchangeServer
internal import Glibc
internal import SignalWire

/// `handset token`: signed tokens.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Make and read signed tokens, with which an application logs its users in.",
        discussion: """
            The secret of an API key is read from a file, an environment variable or the exchange's configuration, and
            never from the command line, which other users of the machine can see.
            """,
        subcommands: [TokenMintCommand.self, TokenInspectCommand.self])
}

/// An API key and where its secret is.
struct KeyOptions: ParsableArguments {
    @Option(help: "The API key's name; not needed if --config has only one.", transform: ApplicationKey.argument)
    var key: ApplicationKey?

    @Option(help: "A file that holds the key's secret.", completion: .file())
    var secretFile: String?

    @Option(help: "An environment variable that holds the key's secret.")
    var secretEnv: String?

    @Option(help: "The exchange's configuration file, which has the key under `api_keys`.", completion: .file())
    var config: String?

    var isGiven: Bool { secretFile != nil || secretEnv != nil || config != nil }

    func validate() throws {
        guard [secretFile, secretEnv, config].compactMap({ $0 }).count <= 1 else {
            throw ValidationError("Give one of --secret-file, --secret-env and --config.")
        }
        if secretFile != nil || secretEnv != nil, key == nil {
            throw ValidationError("--secret-file and --secret-env need --key.")
        }
    }

    func resolve() throws -> SigningKey {
        if let config { return try find(config) }
        guard let key else {
            throw CommandFailure(.usage, "give --config, or --key with --secret-file or --secret-env")
        }
        guard let made = SigningKey(name: key, secret: try secret().revealed) else {
            throw CommandFailure(
                .configuration,
                "the secret of \(key) is shorter than \(SigningKey.minimumSecretBytes) bytes; `openssl rand -hex 32` "
                    + "makes a good one")
        }
        return made
    }

    private func find(_ config: String) throws -> SigningKey {
        try ConfigurationCheck.expect("serve", path: config)
        let keys = try ExchangeConfiguration.read(path: config).apiKeys
        let found = keys.filter { key == nil || $0.name == key }
        guard let first = found.first, found.count == 1 else {
            let names = keys.isEmpty ? "none" : keys.map(\.name.text).joined(separator: ", ")
            throw CommandFailure(.configuration, "--key must name one of the api_keys in \(config), which has \(names)")
        }
        return first
    }

    private func secret() throws -> Secret {
        if let secretFile {
            switch SmallFile.secret(path: secretFile) {
            case .success(let secret): return secret
            case .failure(let failure):
                throw CommandFailure(
                    .configuration, "cannot read the secret in \(secretFile): \(failure.message); check --secret-file")
            }
        }
        guard let secretEnv else { throw CommandFailure(.usage, "give --secret-file, --secret-env or --config") }
        guard let value = SmallFile.environmentVariable(secretEnv), !value.isEmpty else {
            throw CommandFailure(.configuration, "--secret-env \(SmallFile.unsetVariable(secretEnv))")
        }
        return Secret(value)
    }
}

/// `handset token mint`.
struct TokenMintCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mint", abstract: "Make a signed token and print it.",
        discussion: """
            Without --session it is a full login of the user, who must have an account; with it the bearer may join that
            session, signal in it, and nothing else.
            """)

    @OptionGroup var key: KeyOptions

    @Option(help: "The token's user.", transform: UserID.argument)
    var user: UserID

    @Option(help: "The one session (room) that the token allows.", transform: RoomName.argument)
    var session: RoomName?

    @Option(
        help: "publisher, subscriber or moderator (default: publisher); with --session.", completion: Completions.roles)
    var role: String?

    @Option(help: "Data about the bearer that the others in the session receive; with --session.")
    var data: String?

    @Option(help: "Seconds until the token expires.")
    var lifetime = 3_600

    func validate() throws {
        guard session != nil || (role == nil && data == nil) else {
            throw ValidationError("--role and --data go with --session.")
        }
        guard role.map({ SignedToken.Role(rawValue: $0) != nil }) ?? true else {
            throw ValidationError(
                "--role is one of \(SignedToken.Role.allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        guard (1...31_536_000).contains(lifetime) else {
            throw ValidationError("--lifetime is a number of seconds from 1 to 31536000.")
        }
    }

    func run() throws {
        let now = Double(time(nil))
        let key = try key.resolve()
        var generator = SystemRandomNumberGenerator()
        let token = SignedToken(
            application: key.name, user: user, issued: now, expires: now + Double(lifetime),
            id: TokenID(ours: String(generator.next(), radix: 36)),
            session: session.map {
                SignedToken.Session(id: $0, role: role.flatMap(SignedToken.Role.init) ?? .publisher, data: data)
            })
        do throws(SignedTokenError) {
            Terminal.print(try SignedTokenMint.sign(token, with: key))
        } catch {
            throw CommandFailure(.failed, "cannot make the token: \(error)")
        }
    }
}

/// `handset token inspect`.
struct TokenInspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Read a signed token from standard input and print its content.",
        discussion: """
            With a key it is also checked, as the exchange does; after an invalid token the exit code is 1. The content of a
            token is not encrypted, and the token grants access: do not pass it around.
            """)

    @OptionGroup var key: KeyOptions

    func run() throws {
        let text = try UserCommand.secretFromInput()
        let now = Double(time(nil))
        let token: SignedToken
        let algorithm: String
        do throws(SignedTokenError) {
            (token, algorithm) = try SignedTokenReader.inspect(text)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        for (name, value) in Self.lines(token, algorithm: algorithm, now: now) {
            Terminal.print("\(name.padded(to: 12)) \(value)")
        }
        guard key.isGiven || key.key != nil else { return }
        let key = try key.resolve()
        do throws(SignedTokenError) {
            _ = try SignedTokenReader([key], maximumLifetime: .infinity).read(text, at: now)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        Terminal.print("\("signature".padded(to: 12)) good")
    }

    private static func lines(_ token: SignedToken, algorithm: String, now: Double) -> [(String, String)] {
        func moment(_ seconds: Double) -> String {
            let distance = Int64((seconds - now).rounded().clamped)
            return "\(Int64(seconds.clamped)) (\(abs(distance)) s \(distance < 0 ? "ago" : "from now"))"
        }
        var lines = [("algorithm", algorithm), ("application", token.application.text), ("user", token.user.text)]
        if let issued = token.issued { lines.append(("issued", moment(issued))) }
        lines.append(("expires", moment(token.expires)))
        if let id = token.id { lines.append(("id", id.text)) }
        if let session = token.session {
            lines += [("session", session.id.text), ("role", session.role.rawValue)]
            if let data = session.data { lines.append(("data", data)) }
        }
        return lines
    }
}

extension Double {
    /// Within what whole numbers of seconds can be; a token may say anything.
    fileprivate var clamped: Double { Swift.min(Swift.max(self, -1e15), 1e15) }
}
