package import Core
package import SignalWire

/// Rate-limits guesses of passwords and tokens without delaying their owners.
///
/// Each failed login uses one attempt of its address, and one attempt that the account grants to all unfamiliar
/// addresses together: those from which the account has not logged in lately. So an attacker cannot continue from one
/// address, or at one account from many addresses, and cannot lock an owner out at an address where the owner has
/// logged in before. Attempts are replenished evenly.
///
/// Capacity: 20,000 addresses and 20,000 accounts that have failed lately, ``addressesPerAccount`` known addresses for
/// each of ``knownAccounts`` accounts; past that the least significant entries are forgotten.
package struct LoginGuard: Sendable {
    static let addressesPerAccount = 8
    static let knownAccounts = 20_000

    private var addresses: TokenBuckets<ClientAddress>
    private var accounts: TokenBuckets<SecretDigest>
    /// Where accounts have logged in lately, oldest first.
    private var known: [SecretDigest: [ClientAddress]] = [:]

    package init(_ limits: FailedLogins) {
        addresses = TokenBuckets(.init(limits.perAddress, within: limits.window))
        accounts = TokenBuckets(.init(limits.perAccount, within: limits.window))
    }

    /// Uses an attempt of `address` at `account`, which ``succeeded(_:from:at:)`` restores.
    ///
    /// - Parameter account: The name that was given, whether there is such an account or not; `nil` for a login by a
    ///   token alone.
    /// - Returns: How long to wait instead; `nil` if the attempt may be made.
    package mutating func begin(_ account: UserID?, from address: ClientAddress, at now: Instant) -> Duration? {
        let key = account.map { SecretDigest(of: $0.text) }
        let isStrange = key.map { known[$0]?.contains(address) != true } ?? false
        var wait = addresses.wait(address, at: now)
        if let key, isStrange { wait = max(wait, accounts.wait(key, at: now)) }
        guard wait == .zero else { return wait }
        addresses.take(address, at: now)
        if let key, isStrange { accounts.take(key, at: now) }
        return nil
    }

    /// The attempt was a good one.
    package mutating func succeeded(_ account: UserID?, from address: ClientAddress, at now: Instant) {
        addresses.putBack(address, at: now)
        guard let key = account.map({ SecretDigest(of: $0.text) }) else { return }
        var places = known[key] ?? []
        if let index = places.firstIndex(of: address) {
            places.remove(at: index)
        } else {
            accounts.putBack(key, at: now)
            if places.count >= Self.addressesPerAccount { places.removeFirst() }
            if known[key] == nil, known.count >= Self.knownAccounts, let other = known.keys.first { known[other] = nil }
        }
        known[key] = places + [address]
    }

    /// The attempt ended without a verdict, for example because a queue was full: returns the attempt.
    package mutating func abandoned(_ account: UserID?, from address: ClientAddress, at now: Instant) {
        addresses.putBack(address, at: now)
        if let key = account.map({ SecretDigest(of: $0.text) }), known[key]?.contains(address) != true {
            accounts.putBack(key, at: now)
        }
    }
}

/// How many logins may fail before the next has to wait.
public struct FailedLogins: Hashable, Sendable {
    /// From one address.
    public var perAddress = 30
    /// At one account, from all addresses together from which it has not logged in lately.
    public var perAccount = 100
    /// In which time as many may fail again, evenly.
    public var window = Duration.seconds(600)

    /// The defaults.
    public init() {}
}
