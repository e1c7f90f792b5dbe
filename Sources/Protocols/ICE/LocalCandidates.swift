internal import Core

/// Our candidates: each base and address once (RFC 8445 §5.1.3).
///
/// Earlier sockets are preferred to later ones. Candidates of one kind and origin share a foundation (RFC 8445 §5.1.1.3).
struct LocalCandidates: Sendable {
    private(set) var all: [LocalCandidate] = []
    /// The addresses of the sockets, at most ``ICEConfiguration/maximumLocalAddresses``.
    private(set) var sockets: [SocketAddress] = []
    private var foundations: [String: Int] = [:]

    // MARK: Sockets

    /// Adds a socket. False if it is known, or there are too many.
    mutating func addSocket(_ address: SocketAddress) -> Bool {
        guard sockets.count < ICEConfiguration.maximumLocalAddresses, !sockets.contains(address) else { return false }
        sockets.append(address)
        return true
    }

    mutating func removeSocket(_ address: SocketAddress) {
        sockets.removeAll { $0 == address }
        remove(base: .socket(address))
    }

    mutating func remove(base: Base) { all.removeAll { $0.base == base } }

    // MARK: Candidates; nil if they are known

    mutating func addHost(_ address: SocketAddress, fragment: String) -> LocalCandidate? {
        let candidate = Candidate(
            foundation: foundation("host \(address.host)"),
            priority: CandidateType.host.priority(localPreference: preference(of: address)),
            address: address, type: .host)
        return add(candidate, .socket(address), fragment)
    }

    /// A STUN server sees a socket's packets come from `mapped`.
    mutating func addReflexive(_ mapped: SocketAddress, _ query: Gathering.Query, fragment: String) -> LocalCandidate? {
        let priority = CandidateType.serverReflexive.priority(
            localPreference: preference(of: query.local, less: query.server))
        let candidate = Candidate(
            foundation: foundation("srflx \(query.local.host) \(query.serverAddress.host)"),
            priority: priority, address: mapped, type: .serverReflexive, relatedAddress: query.local)
        return add(candidate, .socket(query.local), fragment)
    }

    /// A TURN server, which is reached at `serverAddress`, has given an address.
    mutating func addRelayed(
        _ address: SocketAddress, server: Int, at serverAddress: SocketAddress, _ transport: ICEServer.Transport,
        fragment: String
    ) -> LocalCandidate? {
        // Of two at one server, the one of IPv6 comes first, as among hosts (RFC 8421 §4).
        let family: UInt16 = address.isIPv6 ? 0 : 64
        let preference: UInt16 =
            switch transport {
            case .udp: 60_000
            case .tcp: 40_000
            case .tls: 20_000
            }
        let candidate = Candidate(
            foundation: foundation("relay \(transport) \(serverAddress.host) \(address.host)"),
            priority: CandidateType.relayed.priority(
                localPreference: preference - UInt16(clamping: server) - family),
            address: address, type: .relayed, relatedAddress: address)
        return add(candidate, .relay(server), fragment)
    }

    private mutating func add(_ candidate: Candidate, _ base: Base, _ fragment: String) -> LocalCandidate? {
        let isKnown = all.contains { $0.candidate.address == candidate.address && $0.base == base }
        guard !isKnown else { return nil }
        var local = LocalCandidate(candidate: candidate, base: base)
        local.candidate.usernameFragment = fragment
        all.append(local)
        return local
    }

    /// A new generation begins with the same candidates.
    mutating func setFragment(_ fragment: String) {
        for index in all.indices { all[index].candidate.usernameFragment = fragment }
    }

    /// The order in which the addresses were given counts; each has its own number (RFC 8445 §5.1.2.1).
    private func preference(of address: SocketAddress, less: Int = 0) -> UInt16 {
        let place = sockets.firstIndex(of: address) ?? 0
        return UInt16(clamping: 65_535 - 64 * place - less)
    }

    private mutating func foundation(_ kind: String) -> String {
        let number = foundations[kind] ?? foundations.count + 1
        foundations[kind] = number
        return String(number)
    }
}
