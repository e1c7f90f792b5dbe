package import SignalWire

/// All users, found by any of their ids. Of two accounts with one id the first counts.
package struct AccountDirectory: Sendable {
    /// In the order of their ids.
    let all: [Account]
    private var byID: [UserID: Account] = [:]
    private var ownerByPublicID: [UserID: UserID] = [:]
    /// All user ids in lower case, with white space collapsed, to detect look-alikes.
    private var looks: Set<String> = []
    private var ownerByMediaToken: [SecretDigest: UserID] = [:]
    private var ownerByStreamToken: [SecretDigest: UserID] = [:]
    private var enrollments: Set<SecretDigest> = []

    init(_ accounts: [Account]) {
        for account in accounts where byID[account.id] == nil {
            byID[account.id] = account
            for id in [account.id] + account.publicIDs { looks.insert(Self.look(of: id.text)) }
            for publicID in account.publicIDs where ownerByPublicID[publicID] == nil {
                ownerByPublicID[publicID] = account.id
            }
            for token in account.mediaTokens { ownerByMediaToken[token] = account.id }
            for token in account.streamTokens { ownerByStreamToken[token] = account.id }
            for enrollment in account.enrollments { enrollments.insert(enrollment.digest) }
        }
        all = byID.values.sorted { $0.id < $1.id }
    }

    /// The account whose own id this is.
    package func account(id: UserID) -> Account? { byID[id] }

    /// The account that can be called by `id`: its own, or a public one.
    package func account(called id: UserID) -> Account? { byID[id] ?? ownerByPublicID[id].flatMap { byID[$0] } }

    /// Whether a text can be mistaken for the id of an account: it differs from one in case and spaces at most.
    func looksLikeAccount(_ text: String) -> Bool { looks.contains(Self.look(of: text)) }

    private static func look(of text: String) -> String {
        text.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// The account that a media token logs in.
    package func account(mediaToken: SecretDigest) -> Account? { ownerByMediaToken[mediaToken].flatMap { byID[$0] } }

    /// The account that a stream token streams to.
    package func account(streamToken: SecretDigest) -> Account? { ownerByStreamToken[streamToken].flatMap { byID[$0] } }

    /// Whether an enrolment code with this digest exists, expired and used codes included while they are remembered.
    package func hasEnrollment(_ digest: SecretDigest) -> Bool { enrollments.contains(digest) }

    /// The ids of the users that are called `names`, each once, in that order.
    func users(called names: [UserID]) throws(RPCError) -> [UserID] {
        var users: [UserID] = []
        for name in names {
            guard let user = account(called: name)?.id else {
                throw RPCError(.unknownUser, "No user of this exchange has that name.")
            }
            if !users.contains(user) { users.append(user) }
        }
        return users
    }
}
