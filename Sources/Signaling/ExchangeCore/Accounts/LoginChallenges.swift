package import Core
internal import Cryptography
package import Enrollment
package import SignalWire

/// Challenges that devices sign to log in by key: stateless when issued, and accepted once (contract AUTH-13).
///
/// A challenge contains its expiry and its user, authenticated by a code that only this exchange can make; so requests
/// for challenges use no memory. Only challenges that were used for a login are remembered, until they expire.
///
/// Capacity: 65,536 logins by key in ``lifetime``; past it they have to wait.
package struct LoginChallenges: Sendable {
    /// How long a challenge is good.
    package static let lifetime = Duration.seconds(60)
    private let capacity: Int

    /// Why a challenge is not taken.
    package enum Refusal: Error, Hashable, Sendable {
        /// It is not of this exchange or for this key, or it is too old, or was taken before.
        case notGood
        /// Too many have logged in within ``lifetime``.
        case full
    }

    private let secret: [UInt8]
    /// Taken, with their ends, oldest first.
    private var order: [(challenge: SecretDigest, end: Instant)] = []
    private var taken: Set<SecretDigest> = []

    /// - Parameter secret: 32 random bytes; challenges of another secret are not good.
    package init(secret: [UInt8], capacity: Int = 65_536) {
        self.secret = secret
        self.capacity = capacity
    }

    /// Makes a challenge.
    ///
    /// - Parameter random: 16 random bytes.
    package func make(for user: UserID, key: DeviceKeyText, random: [UInt8], at now: Instant) -> String {
        let end = UInt64(bitPattern: now.advanced(by: Self.lifetime).nanoseconds)
        let head = random + (0..<8).map { UInt8(truncatingIfNeeded: end >> UInt64(56 - 8 * $0)) }
        return Base64URL.text(head + code(head, user, key))
    }

    /// Takes a challenge that a device has signed; never a second time.
    package mutating func take(
        _ challenge: String, of user: UserID, key: DeviceKeyText, at now: Instant
    ) throws(Refusal) {
        // In the order of their coming; each is forgotten once all before it have ended.
        let over = order.firstIndex { $0.end > now } ?? order.count
        for index in 0..<over { taken.remove(order[index].challenge) }
        order.removeFirst(over)
        guard let end = end(of: challenge, user, key), end > now, end <= now.advanced(by: Self.lifetime) else {
            throw .notGood
        }
        let digest = SecretDigest(of: challenge)
        guard !taken.contains(digest) else { throw .notGood }
        guard taken.count < capacity else { throw .full }
        taken.insert(digest)
        order.append((digest, end))
    }

    /// Whether a challenge is of this exchange and for this key, and not over.
    package func isGood(_ challenge: String, of user: UserID, key: DeviceKeyText, at now: Instant) -> Bool {
        end(of: challenge, user, key).map { $0 > now } ?? false
    }

    private func end(of challenge: String, _ user: UserID, _ key: DeviceKeyText) -> Instant? {
        guard challenge.utf8.count <= 128, let bytes = Base64URL.bytes(of: challenge.utf8), bytes.count == 56 else {
            return nil
        }
        let head = Array(bytes.prefix(24))
        guard Digest.areEqual(Array(bytes[24...]), code(head, user, key)) else { return nil }
        return Instant(nanoseconds: Int64(bitPattern: head[16...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }))
    }

    private func code(_ head: [UInt8], _ user: UserID, _ key: DeviceKeyText) -> [UInt8] {
        Digest.hmacSHA256(secret, head + key.bytes + Array(user.text.utf8))
    }
}
