package import Enrollment
package import Core

/// Slows down those who guess enrolment codes, and not the device that has one.
///
/// A wrong code costs its address an attempt, and all guessers one that they share. That is all that decides how it is
/// answered: which part of a code was right shows nowhere. A right code has attempts of its own, so that no guesser uses them
/// up. Nobody comes upon one: of 2^100, a million guesses a second find one of a user's in ten minutes with a probability of
/// less than 2^-66.
package struct EnrollmentGuard: Sendable {
    private var addresses: TokenBuckets<ClientAddress>
    private var guessers: TokenBuckets<Int>
    private var codes: TokenBuckets<SecretDigest>

    /// Attempts in ten minutes: with wrong codes from one address, with wrong codes from all, and with one right code.
    package static let (perAddress, total, perCode) = (30, 300, 30)

    package init() {
        func rate(_ count: Int) -> TokenBucket.Rate { .init(burst: Double(count), perSecond: Double(count) / 600) }
        addresses = TokenBuckets(rate(Self.perAddress))
        guessers = TokenBuckets(rate(Self.total))
        codes = TokenBuckets(rate(Self.perCode))
    }

    /// What becomes of an attempt.
    package enum Verdict: Hashable, Sendable {
        /// There is such a code; it may be over, or used.
        case known
        /// There is no such code.
        case unknown
        /// For so long the code is not looked at.
        case wait(Duration)
    }

    /// Takes an attempt.
    package mutating func judge(
        _ secret: EnrollmentSecret, of directory: AccountDirectory, from address: ClientAddress, at now: Instant
    ) -> Verdict {
        // As a whole, so that nothing depends on how much of it is right.
        let digest = SecretDigest(of: secret.characters)
        if directory.hasEnrollment(digest) {
            let wait = codes.wait(digest, at: now)
            guard wait == .zero else { return .wait(wait) }
            codes.take(digest, at: now)
            return .known
        }
        let wait = max(addresses.wait(address, at: now), guessers.wait(0, at: now))
        guard wait == .zero else { return .wait(wait) }
        addresses.take(address, at: now)
        guessers.take(0, at: now)
        return .unknown
    }
}
