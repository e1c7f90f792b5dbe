internal import Core

/// The addresses from which authenticated checks and answers came, each with the sender's user name fragment. At most 32: the
/// oldest is dropped first.
struct CheckedSources: Sendable {
    private struct Source: Equatable, Sendable {
        let address: SocketAddress
        let fragment: String
    }

    private static let limit = 32

    private var all: [Source] = []

    /// Notes that an authenticated message of the agent with this fragment came from an address.
    mutating func note(_ address: SocketAddress, fragment: String) {
        let source = Source(address: address, fragment: fragment)
        guard !all.contains(source) else { return }
        if all.count == Self.limit { all.removeFirst() }
        all.append(source)
    }

    /// Whether the agent with this fragment, or with any if it is nil, was at an address.
    func contains(_ address: SocketAddress, fragment: String?) -> Bool {
        all.contains { $0.address == address && (fragment == nil || $0.fragment == fragment) }
    }
}
