import ConfigReader
import ExchangeCore
import SignalWire

/// What the accounts read so far are known by: ids, and tokens that say by themselves whose they are.
struct KnownAccounts {
    private var ids: [UserID: String] = [:]
    private var mediaTokens: [SecretDigest: String] = [:]
    private var streamTokens: [SecretDigest: String] = [:]

    /// - Parameter configured: The configuration's accounts, where those of a file beside it are read.
    init(_ configured: [Account]) {
        for account in configured {
            let owner = "\(account.id) in the configuration"
            for id in [account.id] + account.publicIDs { ids[id] = owner }
            for token in account.mediaTokens { mediaTokens[token] = owner }
            for token in account.streamTokens { streamTokens[token] = owner }
        }
    }

    /// Reports the ids and tokens of an account that another account has already, with their position.
    mutating func add(_ account: Account, _ section: KeyedSection<Account.Keys>, _ problems: inout [ConfigProblem]) {
        var own: Set<UserID> = []
        for (index, id) in ([account.id] + account.publicIDs).enumerated() where own.insert(id).inserted {
            if let owner = ids[id] {
                let message = "\"\(id)\" is already the id of \(owner)"
                problems.append(
                    index == 0 ? section.problem(\.id, message) : section.problem(\.publicIDs, message))
            } else {
                ids[id] = "\(account.id)"
            }
        }
        Self.claim(
            account.mediaTokens, of: account, "media token", in: &mediaTokens, section, \.mediaTokenHashes,
            \.mediaToken,
            &problems)
        Self.claim(
            account.streamTokens, of: account, "stream token", in: &streamTokens, section, \.streamTokenHashes,
            \.streamToken, &problems)
    }

    /// Reports tokens that another account has already: a client with one would be taken for another user.
    private static func claim(
        _ tokens: [SecretDigest], of account: Account, _ kind: String, in owners: inout [SecretDigest: String],
        _ section: KeyedSection<Account.Keys>, _ hashes: KeyPath<Account.Keys, ConfigKey<[SecretDigest]>>,
        _ secret: KeyPath<Account.Keys, ConfigKey<Secret>>, _ problems: inout [ConfigProblem]
    ) {
        var ignored: [ConfigProblem] = []  // The code that reads the account reports them.
        let listed = section.value(hashes, &ignored) ?? []
        for token in Set(tokens).sorted(by: { $0.hex < $1.hex }) {
            if let owner = owners[token] {
                let message = "contains a \(kind) of \(owner); each user needs tokens of its own"
                problems.append(
                    listed.contains(token) ? section.problem(hashes, message) : section.problem(secret, message))
            } else {
                owners[token] = "\(account.id)"
            }
        }
    }
}
