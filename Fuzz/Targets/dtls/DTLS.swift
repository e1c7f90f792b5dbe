import FuzzInput
import SecureTransport
import Core

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzDTLS(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// The first byte says which side is under test and whether it has a real peer; the others what reaches it.
private func read(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    _ = DTLSFingerprint(loosely: bytes)
    let role: DTLSRole = first & 1 == 0 ? .active : .passive
    var script = Script(bytes.dropFirst())
    var side = Side(role)
    if first & 2 == 0 {
        readAlone(&side, &script)
    } else {
        readWithPeer(&side, &script, tellsLate: first & 4 != 0)
    }
}

/// Everything that the endpoint hears is made up.
private func readAlone(_ side: inout Side, _ script: inout Script) {
    _ = side.feed(.expect([side.peerFingerprint]))
    _ = side.feed(.start)
    while let datagram = script.datagram() {
        _ = side.feed(.received(datagram))
        _ = side.feed(.timerFired)
    }
    require(side.keys == nil, "nobody gets keys without the private key of the promised certificate")
    _ = side.feed(.close)
}

/// A real peer's datagrams are lost, doubled, changed, cut, and mixed with made up ones.
private func readWithPeer(_ side: inout Side, _ script: inout Script, tellsLate: Bool) {
    var peer = Side(side.role == .active ? .passive : .active)
    _ = peer.feed(.expect([peer.peerFingerprint]))
    if !tellsLate { _ = side.feed(.expect([side.peerFingerprint])) }
    var toPeer = side.feed(.start)
    var toSide = peer.feed(.start) + peer.feed(.received(toPeer.first ?? []))
    toPeer += toPeer
    for _ in 0..<64 where !(toPeer.isEmpty && toSide.isEmpty) {
        if !toPeer.isEmpty { toSide += peer.feed(.received(toPeer.removeFirst())) }
        guard !toSide.isEmpty else { continue }
        for datagram in script.disturb(toSide.removeFirst()) { toPeer += side.feed(.received(datagram)) }
    }
    if tellsLate {
        require(side.keys == nil, "no keys before the description")
        _ = side.feed(.expect([side.peerFingerprint]))
    }
    if let ours = side.keys, let theirs = peer.keys {
        require(ours.send == theirs.receive && ours.receive == theirs.send, "both sides have the same keys")
    }
    _ = side.feed(.close)
}

/// An endpoint, and what it has said.
private struct Side: ~Copyable {
    let role: DTLSRole
    var endpoint: DTLSEndpoint
    var keys: (send: SRTPKey, receive: SRTPKey)?
    private var hasEnded = false

    init(_ role: DTLSRole) {
        self.role = role
        var configuration = DTLSConfiguration()
        configuration.firstRetransmission = .seconds(4)
        guard let endpoint = try? DTLSEndpoint(role, identity: identity(role), configuration: configuration) else {
            broken("an endpoint can be made")
        }
        self.endpoint = endpoint
    }

    var peerFingerprint: DTLSFingerprint { identity(role == .active ? .passive : .active).fingerprint(.sha256) }

    /// Returns the datagrams to send.
    mutating func feed(_ input: DTLSInput) -> [[UInt8]] {
        var outbox: [DTLSOutput] = []
        endpoint.handle(input, at: .zero, into: &outbox)
        var datagrams: [[UInt8]] = []
        for output in outbox {
            require(!hasEnded, "nothing is said after the end")
            switch output {
            case .transmit(let datagram):
                require(datagram.count <= 1200, "a datagram is not larger than asked for")
                datagrams.append(datagram)
            case .established(let send, let receive):
                require(keys == nil, "keys are given out once")
                keys = (send, receive)
            case .failed, .closed:
                hasEnded = true
            }
        }
        return datagrams
    }
}

/// Reads the input as instructions.
private struct Script {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// Two bytes of length, then as many bytes as there are of it.
    mutating func datagram() -> [UInt8]? {
        guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
        let datagram = rest.prefix(Int(high) << 8 | Int(low))
        rest = rest.dropFirst(datagram.count)
        return Array(datagram)
    }

    /// What becomes of a datagram; as it is when the script has ended.
    mutating func disturb(_ datagram: [UInt8]) -> [[UInt8]] {
        switch rest.popFirst() ?? 0 {
        case 1: return []
        case 2: return [datagram, datagram]
        case 3:
            let (high, low, mask) = (rest.popFirst() ?? 0, rest.popFirst() ?? 0, rest.popFirst() ?? 1)
            var changed = datagram
            changed[(Int(high) << 8 | Int(low)) % changed.count] ^= mask
            return [changed, datagram]
        case 4: return [Array(datagram.prefix(Int(rest.popFirst() ?? 0) * 4)), datagram]
        case 5: return [self.datagram() ?? [], datagram]
        default: return [datagram]
        }
    }
}

private func identity(_ role: DTLSRole) -> DTLSIdentity { role == .active ? identities.active : identities.passive }

private let identities: (active: DTLSIdentity, passive: DTLSIdentity) = {
    let now = WallClock(unixMilliseconds: 1_767_225_600_000)
    guard let active = try? DTLSIdentity(at: now), let passive = try? DTLSIdentity(at: now) else {
        broken("an identity can be made")
    }
    return (active, passive)
}()

extension DTLSFingerprint {
    /// Reads any bytes as a fingerprint attribute, and checks that what was read is written the same way.
    fileprivate init?(loosely bytes: [UInt8]) {
        guard let fingerprint = try? DTLSFingerprint(parsing: String(decoding: bytes, as: UTF8.self)) else {
            return nil
        }
        require((try? DTLSFingerprint(parsing: fingerprint.description)) == fingerprint, "a fingerprint reads back")
        self = fingerprint
    }
}
