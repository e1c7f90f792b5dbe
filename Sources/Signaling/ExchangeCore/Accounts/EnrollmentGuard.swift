package import Enrollment
package import Core

/// Rate-limits guesses of enrolment codes without delaying a device that has a valid code.
///
/// A wrong code uses one attempt of its address, and one attempt that all guessers share. Nothing else decides the
/// answer: it does not reveal which part of a code was right. A right code has attempts of its own, so guessers cannot
/// use them up. Guessing is infeasible: a code is one of 2^100, and a million guesses a second find one of a user's
/// codes in ten minutes with a probability of less than 2^-66.
package struct EnrollmentGuard: Sendable {
    private var addresses: TokenBuckets<ClientAddress>
    private var guessers: TokenBuckets<Int>
    private var codes: TokenBuckets<SecretDigest>

    /// Attempts in ten minutes: with wrong codes from one address, with wrong codes from all, and with one right code.
    package static let (perAddress, total, perCode) = (30, 300, 30)

    package init() {
        func rate(_ count: Int) -> TokenBucket.Rate { .init(count, within: .seconds(600)) }
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
        /// The code is not checked until this duration has passed.
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
