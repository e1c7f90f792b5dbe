import AudioKit
import Core
import SecureTransport
import Testing

@testable import Call

extension MediaNegotiation {
    /// One side's negotiation, of WebRTC at 192.0.2.1 and with 40 kb/s unless something else is said.
    static func made(
        at host: String = "192.0.2.1", isBoundToAll: Bool = false, keysAllowed: Bool = true,
        using generator: inout some RandomNumberGenerator, _ change: (inout Settings) -> Void = { _ in }
    ) throws -> MediaNegotiation {
        var settings = Settings()
        settings.encoder.bitrateBps = 40_000
        change(&settings)
        let bytes = (0..<32).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
        let means = Means(
            address: try #require(SocketAddress(host: host, port: 5_000)), isBoundToAll: isBoundToAll,
            keysAllowed: keysAllowed, fingerprint: try #require(DTLSFingerprint(.sha256, bytes: bytes)))
        return MediaNegotiation(settings, means, using: &generator)
    }
}
