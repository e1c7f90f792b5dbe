import Core
import Cryptography
import SignalWire

/// The source of unpredictable ids for one run of an exchange: random bits, which its driver supplies.
package struct RunSeed: Sendable {
    private let key: Redacted<[UInt8]>

    /// 256 bits from a generator; the system's, but in tests.
    package init(using generator: inout some RandomNumberGenerator) {
        key = Redacted((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    /// A number for what need not be secret, such as pauses that are not to fall together.
    var number: UInt64 { code("number").prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    fileprivate func code(_ text: String) -> [UInt8] { Digest.hmacSHA256(key.secret, Array(text.utf8)) }
}

/// Makes ids that are unique across runs and unpredictable even to a client that has seen many others: 128 bits of
/// HMAC-SHA256, with a key of this run alone, over a rising number.
struct IDSource: Sendable {
    private let seed: RunSeed
    private var count: UInt64 = 0

    init(_ seed: RunSeed) { self.seed = seed }

    /// The next name, such as `invite-0b5f9e3ad2c14f7f8e6d1c0b9a887766`.
    mutating func next<Kind>(_ kind: String) -> Identifier<Kind> {
        count += 1
        return Identifier(ours: "\(kind)-\(Hexadecimal.text(seed.code("\(count)").prefix(16)))")
    }
}
