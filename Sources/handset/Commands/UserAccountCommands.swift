internal import ExchangeServer
internal import ArgumentParser
internal import ConfigReader
internal import Core
internal import ExchangeCore
internal import Glibc
internal import SignalWire
internal import Realtime

/// `handset user add`.
struct UserAddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add a user.",
        discussion: """
            Tokens are made here, and shown this once. A user without any secret can still be let in with signed
            tokens (`handset token`).
            """)

    @OptionGroup var place: UsersPlace

    @Argument(help: "The user's id.", transform: UserID.argument)
    var id: UserID

    @Option(
        name: .customLong("public-id"), help: "Another id by which the user can be called; may be repeated.",
        transform: UserID.argument)
    var publicIDs: [UserID] = []

    @Option(help: "The user's mail address.")
    var email: String?

    @Flag(help: "Read a password from standard input: at least 8 characters, and not a common one.")
    var password = false

    @Flag(help: "Make a long-lived access token, for logins with user id and token.")
    var accessToken = false

    @Flag(help: "Make a media token, for logins with that alone.")
    var mediaToken = false

    @Flag(help: "Make a stream token, for streams to this user and nothing else.")
    var streamToken = false

    func run() throws {
        let (file, configured) = try place.resolve(makesFile: true)
        var account = Account(
            id: id, publicIDs: publicIDs, email: email, added: MonotonicClock.wallTime.unixMilliseconds)
        if password { account.password = .hash(PasswordHash.make(try UserCommand.passwordFromInput())) }
        var made: [(name: String, token: String)] = []
        func token(_ isWanted: Bool, _ name: String, _ path: WritableKeyPath<Account, [SecretDigest]>) {
            guard isWanted else { return }
            let token = FreshSecret.make().secret
            account[keyPath: path] = [SecretDigest(of: token)]
            made.append((name, token))
        }
        token(accessToken, "access token", \.accessTokens)
        token(mediaToken, "media token", \.mediaTokens)
        token(streamToken, "stream token", \.streamTokens)
        try file.change { users in
            for id in [account.id] + account.publicIDs {
                guard let owner = (configured + users).first(where: { ([$0.id] + $0.publicIDs).contains(id) }) else {
                    continue
                }
                throw CommandFailure(
                    .failed, "\"\(id)\" is an id of \(owner.id) already; `handset user list` shows all users")
            }
            users.append(account)
        }
        Terminal.printError("added \(id) to \(file.path); a running exchange reads it within two seconds")
        for (name, token) in made { Terminal.print("\(name): \(token)") }
    }
}

/// `handset user list`.
struct UserListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List users: id, other ids, and what they can log in with.")

    @OptionGroup var place: UsersPlace

    @Flag(help: "Print a JSON object on each line.")
    var json = false

    func run() throws {
        let (file, configured) = try place.resolve()
        for (users, isConfigured) in [(configured, true), (try file.read(), false)] {
            for user in users.sorted(by: { $0.id < $1.id }) {
                let note = isConfigured ? " (in the configuration)" : ""
                Terminal.print(json ? Self.object(user, isConfigured: isConfigured) : Self.line(user) + note)
            }
        }
    }

    private static func object(_ user: Account, isConfigured: Bool) -> String {
        var object = JSONObjectText()
        object.add("id", user.id.text)
        object.add("public_ids", texts: user.publicIDs.map(\.text))
        object.add("email", user.email)
        object.add("password", user.password != nil)
        object.add("access_tokens", user.accessTokens.count)
        object.add("media_tokens", user.mediaTokens.count)
        object.add("stream_tokens", user.streamTokens.count)
        object.add("public_keys", user.keys.count)
        object.add("in_configuration", isConfigured)
        return object.text
    }

    private static func line(_ user: Account) -> String {
        var ways: [String] = user.password == nil ? [] : ["password"]
        for (tokens, name) in [
            (user.accessTokens, "access token"), (user.mediaTokens, "media token"), (user.streamTokens, "stream token"),
        ] where !tokens.isEmpty {
            ways.append(tokens.count == 1 ? name : "\(tokens.count) \(name)s")
        }
        if !user.keys.isEmpty { ways.append(user.keys.count == 1 ? "key" : "\(user.keys.count) keys") }
        let others = user.publicIDs.isEmpty ? "-" : user.publicIDs.map(\.text).joined(separator: ",")
        return "\(user.id)\t\(others)\t\(ways.isEmpty ? "signed tokens only" : ways.joined(separator: ", "))"
    }
}

/// `handset user remove`.
struct UserRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a user; its sessions and calls end.")

    @OptionGroup var place: UsersPlace

    @Argument(help: "The user's id.", completion: Completions.users, transform: UserID.argument)
    var id: UserID

    func run() throws {
        let (file, configured) = try place.resolve()
        try file.change { users in
            let index = try UserRevokeCommand.index(of: id, in: users, configured)
            users.remove(at: index)
        }
        Terminal.printError("removed \(id) from \(file.path)")
    }
}

/// `handset user revoke`.
struct UserRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "End all logins of a user, calls included; signed tokens made before now are refused from then on.",
        discussion: """
            The user can log in again at once; its password and long-lived tokens stay good, and so do keys of devices unless \
            --keys removes them.
            """)

    @OptionGroup var place: UsersPlace

    @Argument(help: "The user's id.", completion: Completions.users, transform: UserID.argument)
    var id: UserID

    @Flag(help: "Remove the keys of its devices, and its codes: each device has to be enrolled again.")
    var keys = false

    func run() throws {
        let (file, configured) = try place.resolve()
        try file.change { users in
            let index = try Self.index(of: id, in: users, configured)
            // The next second's beginning: signed tokens know whole seconds only, and this one's are all older.
            let next = Int64(time(nil)) + 1
            users[index].loginsSince = max(next, (users[index].loginsSince ?? 0) + 1)
            if keys { (users[index].keys, users[index].enrollments) = ([], []) }
        }
        Terminal.printError("ended the logins of \(id)")
    }

    static func index(of id: UserID, in users: [Account], _ configured: [Account]) throws -> Int {
        if let index = users.firstIndex(where: { $0.id == id }) { return index }
        if configured.contains(where: { $0.id == id }) {
            throw CommandFailure(
                .failed,
                "\(id) is in the exchange's configuration itself; change it there, and restart the exchange")
        }
        throw CommandFailure(.failed, "there is no user \"\(id)\"; `handset user list` shows all users")
    }
}
