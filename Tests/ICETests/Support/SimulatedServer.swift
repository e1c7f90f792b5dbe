import Core
import ICE

/// A small STUN and TURN server for tests (RFC 8489, RFC 8656), with faults to choose from.
final class SimulatedServer {
    /// Who asks: one address, or one stream.
    enum Client: Hashable {
        case datagrams(SocketAddress)
        case stream(Int)
    }

    struct Allocation {
        let relays: [SocketAddress]
        let username: String
        var permissions: Set<SocketAddress> = []
        var channels: [UInt16: SocketAddress] = [:]
    }

    /// How much a server makes of addresses' families.
    enum Families {
        /// Knows nothing of them: has IPv4, passes over what need not be understood, and refuses the rest.
        case unknown
        /// Gives one address for each allocation, of either family (RFC 6156).
        case one
        /// Gives two at once (RFC 8656).
        case both
        /// Knows of them and has IPv4 alone.
        case onlyIPv4
        /// Knows of them and has IPv6 alone.
        case onlyIPv6
        /// Trips over what it does not know.
        case intolerant
    }

    /// What the server does wrong, or in a special way.
    struct Conduct {
        /// Refuses every allocation so.
        var allocateError: STUNErrorCode?
        /// Refuses permissions so.
        var permissionError: STUNErrorCode?
        /// Sends allocations elsewhere.
        var redirect: SocketAddress?
        /// The nonce is good for so many requests.
        var nonceUses = Int.max
        /// Offers SHA-256 and MD5.
        var offersAlgorithms = false
        /// What it knows of families of addresses, and what it has.
        var families = Families.unknown
        /// Answers nothing.
        var isDead = false
        /// Answers 437 to the first allocation.
        var mismatchesOnce = false
        /// Takes every connection for another's.
        var mismatchesAlways = false
        var lifetime: UInt32 = 600
    }

    let address: SocketAddress
    var conduct = Conduct()
    var users = ["user": "secret"]
    private(set) var allocations: [Client: Allocation] = [:]
    /// How often each method was granted.
    private(set) var granted: [STUNMethod: Int] = [:]
    private(set) var lastIntegrity: STUNIntegrity?
    private(set) var released = 0
    private(set) var channelDataOut = 0
    private var nextPort: UInt16 = 50_000
    private var nonceNumber = 1
    private var nonceUsed = 0
    private var framers: [Int: STUNStreamFramer] = [:]
    private let realm = "example.org"
    /// Sends to a client or, from a relayed address, to a peer.
    var reply: (Client, [UInt8]) -> Void = { _, _ in }
    var relayOut: (_ relay: SocketAddress, _ peer: SocketAddress, [UInt8]) -> Void = { _, _, _ in }

    init(_ address: SocketAddress) { self.address = address }

    func received(_ bytes: [UInt8], from client: Client) {
        guard !conduct.isDead else { return }
        switch client {
        case .datagrams: frame(bytes, client)
        case .stream(let id):
            for part in framers[id, default: STUNStreamFramer()].push(bytes) { frame(part, client) }
        }
    }

    /// A peer's packet to a relayed address.
    func relayed(_ bytes: [UInt8], to relay: SocketAddress, from peer: SocketAddress) {
        guard !conduct.isDead, let (client, allocation) = allocations.first(where: { $0.value.relays.contains(relay) }),
            allocation.permissions.contains(peer.withPort(0))
        else { return }
        if let channel = allocation.channels.first(where: { $0.value == peer })?.key {
            let isStream = if case .stream = client { true } else { false }
            reply(client, ChannelData(channel: channel, data: bytes).encoded(padded: isStream))
            return
        }
        var builder = STUNBuilder(.indication, .data, TransactionID(high: 7, low: 7))
        builder.append(.xorPeerAddress, peer)
        builder.append(.data, bytes)
        reply(client, builder.finish())
    }

    private func frame(_ bytes: [UInt8], _ client: Client) {
        if let data = ChannelData(parsing: bytes) {
            guard let allocation = allocations[client], let peer = allocation.channels[data.channel] else { return }
            channelDataOut += 1
            relayOut(relay(of: allocation, for: peer), peer, data.data)
            return
        }
        guard let message = try? STUNMessage(parsing: bytes) else { return }
        switch (message.messageClass, message.method) {
        case (.indication, .send):
            guard let allocation = allocations[client], let peer = message.address(.xorPeerAddress),
                allocation.permissions.contains(peer.withPort(0)), let data = message.value(.data)
            else { return }
            relayOut(relay(of: allocation, for: peer), peer, Array(data))
        case (.request, .binding):
            guard case .datagrams(let source) = client else { return }
            var builder = STUNBuilder(.success, answering: message)
            builder.append(.xorMappedAddress, source)
            reply(client, builder.finish(fingerprint: true))
        case (.request, _): authenticate(message, client)
        default: break
        }
    }

    private var nonce: String { (conduct.offersAlgorithms ? "obMatJos2gAAA" : "") + "nonce\(nonceNumber)" }

    private func challenge(_ request: STUNMessage, _ code: STUNErrorCode, _ client: Client) {
        var builder = STUNBuilder(refusing: request, code)
        builder.append(.realm, realm)
        builder.append(.nonce, nonce)
        if conduct.offersAlgorithms { builder.append(.passwordAlgorithms, [0, 2, 0, 0, 0, 1, 0, 0]) }
        reply(client, builder.finish())
    }

    private func authenticate(_ request: STUNMessage, _ client: Client) {
        guard let username = request.text(.username), let said = request.text(.nonce) else {
            return challenge(request, .unauthenticated, client)
        }
        if said != nonce { return challenge(request, .staleNonce, client) }
        nonceUsed += 1
        if nonceUsed > conduct.nonceUses {
            nonceNumber += 1
            nonceUsed = 0
            return challenge(request, .staleNonce, client)
        }
        let isSHA256 = request.value(.passwordAlgorithm).map { Array($0) == [0, 2, 0, 0] } ?? false
        let key = STUNKey(
            longTerm: username, realm: realm, password: users[username] ?? "?", algorithm: isSHA256 ? .sha256 : .md5)
        guard users[username] != nil, request.integrity(key) == .valid else {
            return challenge(request, .unauthenticated, client)
        }
        lastIntegrity = request.contains(.messageIntegritySHA256) ? .sha256 : .sha1
        let answer = perform(request, username, client)
        reply(client, answer.finish(key: key, integrity: lastIntegrity ?? .sha1))
    }

    private func perform(_ request: STUNMessage, _ username: String, _ client: Client) -> STUNBuilder {
        var builder = STUNBuilder(.success, answering: request)
        if let allocation = allocations[client], allocation.username != username {
            return STUNBuilder(refusing: request, .wrongCredentials)
        }
        switch request.method {
        case .allocate: return allocate(request, username, client)
        case .refresh:
            guard allocations[client] != nil else { return STUNBuilder(refusing: request, .allocationMismatch) }
            if request.uint32(.lifetime) == 0 {
                allocations[client] = nil
                released += 1
            }
            builder.append(.lifetime, request.uint32(.lifetime) == 0 ? 0 : conduct.lifetime)
        case .createPermission, .channelBind:
            guard let peer = request.address(.xorPeerAddress), let allocation = allocations[client] else {
                return STUNBuilder(refusing: request, .allocationMismatch)
            }
            guard allocation.relays.contains(where: { $0.isIPv6 == peer.isIPv6 }) else {
                return STUNBuilder(refusing: request, .peerAddressFamilyMismatch)
            }
            if let code = conduct.permissionError { return STUNBuilder(refusing: request, code) }
            allocations[client]?.permissions.insert(peer.withPort(0))
            if request.method == .channelBind {
                let number = UInt16((request.uint32(.channelNumber) ?? 0) >> 16)
                allocations[client]?.channels[number] = peer
            }
        default: return STUNBuilder(refusing: request, .badRequest)
        }
        granted[request.method, default: 0] += 1
        return builder
    }

    private func allocate(_ request: STUNMessage, _ username: String, _ client: Client) -> STUNBuilder {
        if conduct.mismatchesOnce || conduct.mismatchesAlways {
            conduct.mismatchesOnce = false
            return STUNBuilder(refusing: request, .allocationMismatch)
        }
        if let redirect = conduct.redirect {
            var builder = STUNBuilder(refusing: request, .tryAlternate)
            builder.append(.alternateServer, redirect)
            return builder
        }
        if let code = conduct.allocateError { return STUNBuilder(refusing: request, code) }
        let (relays, refusal) = relays(for: request)
        if relays.isEmpty, let refusal { return STUNBuilder(refusing: request, refusal) }
        if allocations[client] == nil {
            allocations[client] = Allocation(relays: relays, username: username)
            nextPort += 1
        }
        granted[.allocate, default: 0] += 1
        var builder = STUNBuilder(.success, answering: request)
        for relay in allocations[client]?.relays ?? [] { builder.append(.xorRelayedAddress, relay) }
        if refusal != nil {
            // The family, then the code as an error has it (RFC 8656 §18.12).
            builder.append(.addressErrorCode, [relays[0].isIPv6 ? 1 : 2, 0, 4, 40])
        }
        builder.append(.lifetime, conduct.lifetime)
        return builder
    }

    /// What an allocation gets, and why not more.
    private func relays(for request: STUNMessage) -> ([SocketAddress], STUNErrorCode?) {
        let (four, six) = (address.withPort(nextPort), Self.sixth.withPort(nextPort))
        let (requested, additional) = (
            request.value(.requestedAddressFamily)?.first, request.contains(.additionalAddressFamily)
        )
        let wanted = requested == 2 ? [six] : additional ? [four, six] : [four]
        switch conduct.families {
        case .unknown: return requested == nil ? ([four], nil) : ([], .unknownAttribute)
        case .intolerant: return requested == nil && !additional ? ([four], nil) : ([], .badRequest)
        case .one: return ([wanted[0]], nil)
        case .both: return (wanted, nil)
        case .onlyIPv4: return (wanted.filter { !$0.isIPv6 }, wanted.contains(six) ? .addressFamilyNotSupported : nil)
        case .onlyIPv6: return requested == 2 ? ([six], nil) : ([], .addressFamilyNotSupported)
        }
    }

    /// Where the relayed addresses of IPv6 are.
    static let sixth = Scenes.address("2001:db8:5::1", 3_478)

    private func relay(of allocation: Allocation, for peer: SocketAddress) -> SocketAddress {
        allocation.relays.first { $0.isIPv6 == peer.isIPv6 } ?? address
    }

    /// Drops all allocations, as a server does that restarts.
    func forgetAllocations() { allocations = [:] }
}
