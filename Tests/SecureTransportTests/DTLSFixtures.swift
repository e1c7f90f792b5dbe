import DTLSSupport
import SecureTransport
import Testing
import Core

/// 2026-01-01 00:00 UTC.
let newYear = WallClock(unixMilliseconds: 1_767_225_600_000)

/// Identities for whoever needs one, made once.
enum Identities {
    static let first = try? DTLSIdentity(at: newYear)
    static let second = try? DTLSIdentity(at: newYear)
    static let stranger = try? DTLSIdentity(at: newYear)
}

/// A configuration whose timer is too slow to fire in a test that does not wait for it.
func patient(_ change: (inout DTLSConfiguration) -> Void = { _ in }) -> DTLSConfiguration {
    var configuration = DTLSConfiguration()
    configuration.firstRetransmission = .seconds(4)
    change(&configuration)
    return configuration
}

/// Two real endpoints that know each other's fingerprints.
func makePair(
    active: DTLSConfiguration = patient(), passive: DTLSConfiguration = patient(), knowing: Bool = true
) throws -> HandshakePair<DTLSEndpoint> {
    let first = try #require(Identities.first)
    let second = try #require(Identities.second)
    var pair = HandshakePair(
        active: try DTLSEndpoint(.active, identity: first, configuration: active),
        passive: try DTLSEndpoint(.passive, identity: second, configuration: passive))
    if knowing {
        pair.feed(.active, .expect([second.fingerprint(.sha256)]))
        pair.feed(.passive, .expect([first.fingerprint(.sha256)]))
    }
    return pair
}

/// The keys, if this is all that a side said.
func keys(_ said: [DTLSOutput]) -> (send: SRTPKey, receive: SRTPKey)? {
    guard said.count == 1, case .established(let send, let receive) = said[0] else { return nil }
    return (send, receive)
}

/// The error's code, if this is all that a side said.
func failure(_ said: [DTLSOutput]) -> DTLSError.Code? {
    guard said.count == 1, case .failed(let error) = said[0] else { return nil }
    return error.code
}
