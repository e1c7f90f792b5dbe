package import NetworkAddress
package import Timekeeping

/// Slows down those who guess enrolment codes, and not the device that has one.
///
/// A guess whose first characters are of no code costs its address an attempt, and all strangers one that they share. Who
/// knows the first characters of a code has attempts at that code alone: strangers cannot use them up, not even from the
/// same address, unless they hit one of a million.
package struct EnrollmentGuard: Sendable {
    private var addresses: TokenBuckets<ClientAddress>
    private var strangers: TokenBuckets<Int>
    private var codes: TokenBuckets<String>

    /// Attempts in ten minutes: from one address, of all strangers, and at one code.
    package static let (perAddress, total, perCode) = (30, 300, 30)

    package init() {
        func rate(_ count: Int) -> TokenBucket.Rate { .init(burst: Double(count), perSecond: Double(count) / 600) }
        addresses = TokenBuckets(rate(Self.perAddress))
        strangers = TokenBuckets(rate(Self.total))
        codes = TokenBuckets(rate(Self.perCode))
    }

    /// Takes an attempt.
    ///
    /// - Parameter locator: The code's first characters, if there is such a code; `nil` for a stranger.
    /// - Returns: How long to wait instead; `nil` if the attempt may be made.
    package mutating func begin(_ locator: String?, from address: ClientAddress, at now: Instant) -> Duration? {
        if let locator {
            let wait = codes.wait(locator, at: now)
            guard wait == .zero else { return wait }
            codes.take(locator, at: now)
            return nil
        }
        let wait = max(addresses.wait(address, at: now), strangers.wait(0, at: now))
        guard wait == .zero else { return wait }
        addresses.take(address, at: now)
        strangers.take(0, at: now)
        return nil
    }
}
