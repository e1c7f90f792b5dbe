internal import CallControl
internal import Datagrams
internal import ICE
internal import NetworkAddress

/// Turns the servers that a service or a configuration names into addresses (RFC 7064, RFC 7065).
enum ICEServerLookup {
    /// One URL of a server, read.
    struct Location: Equatable {
        var scheme: Scheme
        var host: String
        var port: UInt16
        var transport: ICE.ICEServer.Transport

        enum Scheme: String {
            case stun, stuns, turn, turns
        }

        /// Reads `stun:HOST[:PORT]` or `turn[s]:HOST[:PORT][?transport=udp|tcp]`; nil for unsupported forms.
        init?(_ url: String) {
            let parts = url.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, let scheme = Scheme(rawValue: parts[0].lowercased()), scheme != .stuns else {
                return nil
            }
            let pieces = parts[1].split(separator: "?", maxSplits: 1)
            guard let authority = pieces.first else { return nil }
            var (host, digits) = (Substring(authority), Substring(""))
            if authority.first == "[", let end = authority.firstIndex(of: "]") {
                host = authority[authority.index(after: authority.startIndex)..<end]
                digits = authority[authority.index(after: end)...].drop { $0 == ":" }
            } else if let colon = authority.lastIndex(of: ":") {
                host = authority[..<colon]
                digits = authority[authority.index(after: colon)...]
            }
            let isSecure = scheme == .turns
            guard !host.isEmpty, let port = digits.isEmpty ? (isSecure ? 5_349 : 3_478) : UInt16(digits) else {
                return nil
            }
            let wantsTCP = pieces.count > 1 && pieces[1].lowercased() == "transport=tcp"
            self.scheme = scheme
            self.host = String(host)
            self.port = port
            transport = isSecure ? .tls(hostName: self.host) : wantsTCP ? .tcp : .udp
        }
    }

    /// Resolves all servers. A server without an address, or without required name and password, is left out.
    ///
    /// Names are resolved on a separate thread, because that may take seconds.
    static func addresses(of servers: [CallControl.ICEServer]) async -> [ICE.ICEServer] {
        await Task.detached {
            servers.flatMap { server in
                server.urls.compactMap { url in
                    guard let location = Location(url),
                        let address = SocketAddress.lookUp(host: location.host, port: location.port)
                    else { return nil }
                    switch location.scheme {
                    case .stun, .stuns: return ICE.ICEServer(.stun, at: address)
                    case .turn, .turns:
                        guard let username = server.username, let password = server.credential else { return nil }
                        let kind = ICE.ICEServer.Kind.turn(
                            location.transport, username: username, password: password)
                        return ICE.ICEServer(kind, at: address)
                    }
                }
            }
        }.value
    }
}

/// The ICE servers that the newest lookup has found. Lookups may end in another order than they began in.
struct ICEServerList {
    private(set) var newest: [ICE.ICEServer] = []
    private var begunLookups = 0
    private var newestLookup = 0

    /// - Returns: The lookup's number.
    mutating func beginLookup() -> Int {
        begunLookups += 1
        return begunLookups
    }

    /// Takes what a lookup has found, unless one that began later has ended before.
    mutating func endLookup(_ number: Int, found: [ICE.ICEServer]) {
        if number > newestLookup { (newest, newestLookup) = (found, number) }
    }
}
