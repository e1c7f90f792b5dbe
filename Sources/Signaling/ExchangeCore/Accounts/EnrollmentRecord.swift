public import Enrollment

/// A code by which one device may join an account (contract AUTH-13): its digest, its end, and who has used it.
public struct EnrollmentRecord: Hashable, Sendable {
    /// How long a code is good.
    public static let lifetimeSeconds: Int64 = 600
    /// How long an expired code is remembered, so that errors can name the reason.
    static let memorySeconds: Int64 = 86_400
    /// Codes that one account may have, including expired ones that are still remembered.
    public static let perAccount = 16

    /// Which one: the code's first characters.
    public let locator: String
    /// Of the code's secret, all of its characters.
    public let digest: SecretDigest
    /// When it ends: seconds since 1970.
    public let expires: Int64
    /// The key of the device that has used it.
    public private(set) var usedBy: DeviceKeyText?

    /// Makes an unused record.
    ///
    /// - Parameter now: Seconds since 1970.
    public init(_ secret: EnrollmentSecret, at now: Int64) {
        locator = secret.locator
        digest = SecretDigest(of: secret.characters)
        expires = now + Self.lifetimeSeconds
    }

    /// Reads what ``text`` writes.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard (3...4).contains(parts.count), parts[0].utf8.count == EnrollmentSecret.locatorCount,
            let digest = SecretDigest(hex: String(parts[1])), let expires = Int64(parts[2]),
            (0...253_402_300_799).contains(expires)
        else { return nil }
        locator = String(parts[0])
        self.digest = digest
        self.expires = expires
        guard parts.count == 4 else { return }
        usedBy = DeviceKeyText(parts[3])
        guard usedBy != nil else { return nil }
    }

    /// The entry's text in a users file.
    public var text: String {
        "\(locator).\(digest.hex).\(expires)" + (usedBy.map { ".\($0.text)" } ?? "")
    }

    /// Why a code does not let a device join.
    public enum Refusal: Error, Hashable, Sendable {
        /// There is no such code.
        case unknown
        /// The code has expired, or the exchange's clock was set back since the code was made.
        case expired
        /// Another device has used it.
        case used
        /// The account has as many keys as it may have.
        case tooManyKeys
    }

    /// Whether a device with this key may join now: the code is unused, or the same key used it and the answer was
    /// lost.
    func judge(_ key: DeviceKeyText, at now: Int64) -> Refusal? {
        if let usedBy, usedBy != key { return .used }
        // A code is never valid for longer than its lifetime, even if the clock is set back.
        return (expires - Self.lifetimeSeconds...expires).contains(now) ? nil : .expired
    }

    /// Whether the code expired long enough ago to be forgotten.
    func isForgotten(at now: Int64) -> Bool { expires + Self.memorySeconds < now }

    fileprivate func isOver(at now: Int64) -> Bool { usedBy != nil || expires < now }

    fileprivate mutating func use(by key: DeviceKeyText) { usedBy = key }
}

extension Account {
    /// Adds a code, and drops those that are long over.
    ///
    /// - Returns: False if there are too many that are not.
    public mutating func add(_ enrollment: EnrollmentRecord, at now: Int64) -> Bool {
        enrollments.removeAll { $0.isForgotten(at: now) }
        if enrollments.count >= EnrollmentRecord.perAccount {
            guard let over = enrollments.firstIndex(where: { $0.isOver(at: now) }) else { return false }
            enrollments.remove(at: over)
        }
        enrollments.append(enrollment)
        return true
    }
}

extension [Account] {
    /// Lets the device with `key` join the account of the code: the key is added, and the code is used. The same again
    /// changes nothing.
    ///
    /// - Parameters:
    ///   - name: What the enrolment is called if it is new.
    ///   - now: Seconds since 1970.
    /// - Returns: The account, and what the enrolment is called.
    public mutating func enroll(
        _ secret: EnrollmentSecret, key: DeviceKeyText, name: String, at now: Int64
    ) throws(EnrollmentRecord.Refusal) -> (account: Account, key: DeviceKey) {
        let digest = SecretDigest(of: secret.characters)
        for index in indices {
            guard let place = self[index].enrollments.firstIndex(where: { $0.digest == digest }) else { continue }
            if let refusal = self[index].enrollments[place].judge(key, at: now) { throw refusal }
            if let known = self[index].keys.first(where: { $0.key == key }) {
                self[index].enrollments[place].use(by: key)
                return (self[index], known)
            }
            // Of a device whose key was removed since, the code is used.
            guard self[index].enrollments[place].usedBy == nil else { throw .used }
            guard self[index].keys.count < DeviceKey.perAccount, let new = DeviceKey(key: key, enrollment: name) else {
                throw .tooManyKeys
            }
            self[index].keys.append(new)
            self[index].enrollments[place].use(by: key)
            return (self[index], new)
        }
        throw .unknown
    }
}
