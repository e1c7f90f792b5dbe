internal import Core
internal import ExchangeCore
internal import ExchangeServer
internal import SignalWire
internal import Realtime

/// The exchange whose configuration `handset setup` has: how a device on this machine reaches it, and its accounts.
struct SetupExchange {
    private let configuration: ExchangeConfiguration
    private let configured: [Account]
    private let file: UsersFile
    private let path: String

    init(path: String) throws {
        self.path = path
        var place = UsersPlace()
        (place.config, place.usersFile) = (path, nil)
        (file, configured) = try place.resolve(makesFile: true)
        configuration = try ExchangeConfiguration.read(path: path)
    }

    private var isEncrypted: Bool { configuration.certificate != nil || configuration.ownAuthority != nil }

    /// The base URL: by the first name of the certificate, or by the address that it listens on.
    func server() throws -> String {
        let host = isEncrypted ? configuration.enrollmentHost : plainHost
        guard let host, configuration.port != 0 else {
            throw CommandFailure(
                .usage,
                "\(path) does not show how devices reach the exchange; give --server, such as "
                    + "\(isEncrypted ? "https" : "http")://calls.example.org:8555")
        }
        return "\(isEncrypted ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(configuration.port)"
    }

    /// The device is on this machine, so an exchange that listens everywhere is reached here.
    private var plainHost: String {
        switch configuration.host {
        case "0.0.0.0": "127.0.0.1"
        case "::": "::1"
        default: configuration.host
        }
    }

    /// What the device must trust besides the system's certificates; nil if those are enough.
    func trustRoots() throws -> [UInt8]? { try configuration.trustRoots() }

    /// Whether a device must be allowed plain text to reach it: the exchange's owner has allowed it there.
    var needsPlainText: Bool { !isEncrypted && !SetupPlan.isThisMachine(plainHost) }

    /// Refuses a program that the exchange does not let in: only the login at the end would show it otherwise.
    func expectApplication(_ key: String, secret: String) throws {
        let digest = SecretDigest(of: secret)
        guard !configuration.apps.contains(where: { $0.key.text == key && $0.secret == digest }) else { return }
        let known = configuration.apps.map { "\"\($0.key.text)\"" }.joined(separator: ", ")
        throw CommandFailure(
            .failed,
            "the exchange of \(path) lets no program in by the key \"\(key)\" and the given secret; it has "
                + "\(known.isEmpty ? "none" : known). Give --app-key and --app-secret-file with one of `apps`.")
    }

    /// Adds an account that logs in with a token of this digest, unless an earlier attempt has made it.
    func addAccount(
        _ name: String, _ digest: SecretDigest, _ undo: inout SetupUndo, _ progress: ProgressLines
    ) throws {
        let id = UserID(ours: name)
        let account = Account(id: id, mediaTokens: [digest], added: MonotonicClock.wallTime.unixMilliseconds)
        var isAdded = false
        try file.change { users in
            guard let owner = (configured + users).first(where: { ([$0.id] + $0.publicIDs).contains(id) }) else {
                users.append(account)
                isAdded = true
                return
            }
            guard !owner.mediaTokens.contains(digest) else { return }
            throw CommandFailure(
                .failed,
                "the exchange has a user \"\(name)\" already: give its media token with --token-file, or choose another "
                    + "name")
        }
        guard isAdded else { return }
        progress.say("Added the user \(name) to \(file.path)")
        undo.add("the user \(name) of \(file.path)") { [file] in
            // A user that was changed meanwhile is kept.
            try file.change { users in users.removeAll { $0 == account } }
        }
    }
}
