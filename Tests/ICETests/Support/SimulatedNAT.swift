import Core

/// A network address translator of one of the classic kinds (RFC 4787 §4, §5).
final class SimulatedNAT {
    enum Kind: String, CaseIterable, CustomStringConvertible {
        case endpointIndependent
        case addressRestricted
        case portRestricted
        case symmetric

        var description: String { rawValue }
    }

    private struct Mapping {
        let inside: SocketAddress
        /// Only for symmetric NATs.
        let destination: SocketAddress?
        let port: UInt16
        var contacted: Set<SocketAddress> = []
    }

    let kind: Kind
    let host: String
    private var mappings: [Mapping] = []

    init(_ kind: Kind, host: String) {
        self.kind = kind
        self.host = host
    }

    /// Forgets everything, as after a loss of power.
    func reboot() { mappings = [] }

    /// A packet leaves: the source that the outside sees.
    func outbound(from inside: SocketAddress, to destination: SocketAddress) -> SocketAddress {
        let bound = kind == .symmetric ? destination : nil
        let found = mappings.firstIndex { $0.inside == inside && $0.destination == bound }
        let index = found ?? mappings.count
        if found == nil {
            mappings.append(
                Mapping(inside: inside, destination: bound, port: UInt16(40_000 + 7 * mappings.count % 20_000)))
        }
        mappings[index].contacted.insert(destination)
        return Scenes.address(host, mappings[index].port)
    }

    /// A packet comes to one of our ports: where inside it goes; `nil` if it is kept out.
    func inbound(port: UInt16, from source: SocketAddress) -> SocketAddress? {
        guard let mapping = mappings.first(where: { $0.port == port }) else { return nil }
        let isAllowed =
            switch kind {
            case .endpointIndependent: true
            case .addressRestricted: mapping.contacted.contains { $0.withPort(0) == source.withPort(0) }
            case .portRestricted, .symmetric: mapping.contacted.contains(source)
            }
        return isAllowed ? mapping.inside : nil
    }
}
