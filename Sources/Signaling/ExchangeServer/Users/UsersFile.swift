public import ConfigReader
public import ExchangeCore
import SignalWire

/// A file of users beside the configuration, which `handset user` writes and a running exchange rereads.
///
/// It contains hashes and no secrets. It is written as a whole, by one process at a time: a new file replaces the old
/// one, so that no reader sees half of it. Comments in it are lost then.
public struct UsersFile: Hashable, Sendable {
    /// Files longer than this are refused: some fifty thousand users.
    public static let maximumBytes = 16 << 20

    /// Where it is.
    public let path: String

    /// Names a file, which need not be there yet.
    public init(path: String) { self.path = path }

    /// Whether there is such a file. Also true if the system does not say: then reading it reports why.
    public var exists: Bool {
        do throws(FileChangeError) { return try version != nil } catch { return true }
    }

    /// The keys of such a file.
    public static var keys: [ConfigKeyEntry] { Keys.entries }

    /// The keys of the file's root.
    struct Keys: ConfigKeys {
        let users = ConfigKey.sections(
            "users", Account.Keys.self, "the users, with hashes only: this file must not contain passwords"
        ).required
    }

    /// The users in it; none if there is no such file.
    public func read() throws(ConfigError) -> [Account] { try read(beside: []) }

    /// The users in it, of which none may be known by what one of the `others` is.
    func read(beside others: [Account]) throws(ConfigError) -> [Account] {
        try exists ? readExisting(beside: others) : []
    }

    /// The users in it, as ``read(beside:)``, for a file that was there: that it is missing is an error.
    func readExisting(beside others: [Account]) throws(ConfigError) -> [Account] {
        var problems: [ConfigProblem] = []
        let root = KeyedSection(
            try ConfigDocument.read(path: path, maximumBytes: Self.maximumBytes), Keys.self, &problems)
        let sections = root.value(\.users, &problems) ?? []
        let users = Account.list(sections, beside: others, &problems)
        for section in sections where section.has(\.password) && !section.has(\.passwordHash) {
            problems.append(section.problem(\.password, "must be given as password_hash in this file"))
        }
        _ = try problems.verdict()
        return users
    }

    /// Changes the users in it. Nothing is written if `edit` throws or changes nothing.
    ///
    /// - Parameter patience: Hundredths of a second for which the thread waits for another process that changes the file.
    /// - Throws: ``FileChangeError``, or what `edit` throws.
    public func change(patience: Int = 1_000, _ edit: (inout [Account]) throws -> Void) throws {
        let folder = try FileFolder(of: path)
        try folder.lock(patience: patience)
        var users = try read()
        let before = users
        try edit(&users)
        guard users != before else { return }
        if let user = users.first(where: { $0.publicIDs.count > SignalLimits.publicIDs }) {
            throw FileChangeError(
                "cannot write \(path): \(user.id) would have more than \(SignalLimits.publicIDs) public ids")
        }
        let text = Self.text(users)
        guard text.utf8.count <= Self.maximumBytes else {
            throw FileChangeError("cannot write \(path): it would be longer than \(Self.maximumBytes) bytes")
        }
        try folder.replace(path, with: Array(text.utf8))
    }

    /// Identifies a version of the file; `nil` if the file does not exist.
    var version: FileVersion? {
        get throws(FileChangeError) { try FileVersion.find(at: path) }
    }

    // MARK: - As text

    static func text(_ users: [Account]) -> String {
        var text = "# Users of the exchange. Written by `handset user`; comments do not stay.\n"
        text += users.isEmpty ? "users: []\n" : "users:\n"
        for user in users {
            text += "  - id: \(quoted(user.id.text))\n"
            func line(_ key: String, _ value: String?) {
                if let value { text += "    \(key): \(value)\n" }
            }
            func list(_ key: String, _ values: [String]) {
                line(key, values.isEmpty ? nil : "[\(values.joined(separator: ", "))]")
            }
            list("public_ids", user.publicIDs.map { quoted($0.text) })
            line("routing_id", user.routingID == user.id.text ? nil : quoted(user.routingID))
            line("email", user.email.map(quoted))
            if case .hash(let hash)? = user.password { line("password_hash", quoted(hash.description)) }
            list("media_token_hashes", user.mediaTokens.map { quoted($0.hex) })
            list("access_token_hashes", user.accessTokens.map { quoted($0.hex) })
            list("stream_token_hashes", user.streamTokens.map { quoted($0.hex) })
            list("public_keys", user.keys.map { quoted($0.text) })
            list("enrollment_hashes", user.enrollments.map { quoted($0.text) })
            line("logins_since", user.loginsSince.map(String.init))
            line("added", user.added.map(String.init))
        }
        return text
    }

    /// A YAML double-quoted scalar (YAML 1.1 §5.7).
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\u{20}"..."\u{7E}", "\u{A0}"..."\u{2027}", "\u{2030}"..."\u{D7FF}":
                result.unicodeScalars.append(scalar)
            default:
                let hex = String(scalar.value, radix: 16, uppercase: true)
                result += "\\U" + String(repeating: "0", count: 8 - hex.count) + hex
            }
        }
        return result + "\""
    }
}
