import SecureTransport
import Testing
import Core

@Suite("DTLS identities")
struct DTLSIdentityTests {
    @Test("An identity is valid from a day before it was made until thirty days after")
    func validity() throws {
        let identity = try DTLSIdentity(at: newYear)
        #expect(identity.validFrom.unixMilliseconds == newYear.unixMilliseconds - 86_400_000)
        #expect(identity.expires.unixMilliseconds == newYear.unixMilliseconds + 30 * 86_400_000)
    }

    @Test("An identity is to be replaced in the last quarter of its life, or when the clock was set far back")
    func rotation() throws {
        let identity = try DTLSIdentity(at: newYear, lifetime: .seconds(4000))
        func needsRotation(afterSeconds seconds: Int64) -> Bool {
            identity.needsRotation(at: WallClock(unixMilliseconds: newYear.unixMilliseconds + seconds * 1000))
        }
        #expect(!needsRotation(afterSeconds: 0))
        #expect(!needsRotation(afterSeconds: 2999))
        #expect(needsRotation(afterSeconds: 3000))
        #expect(needsRotation(afterSeconds: 5000))
        #expect(!needsRotation(afterSeconds: -86_400))
        #expect(needsRotation(afterSeconds: -86_401))
    }

    @Test("Each identity has fingerprints of its own, and the same ones each time it is asked")
    func fingerprints() throws {
        let first = try DTLSIdentity(at: newYear)
        let second = try DTLSIdentity(at: newYear)
        for hash in DTLSFingerprint.HashFunction.allCases {
            #expect(first.fingerprint(hash).hash == hash)
            #expect(first.fingerprint(hash) == first.fingerprint(hash))
            #expect(first.fingerprint(hash) != second.fingerprint(hash))
        }
    }
}
