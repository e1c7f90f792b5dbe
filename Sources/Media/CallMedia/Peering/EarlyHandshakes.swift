internal import Core
internal import Realtime

/// A datagram of DTLS, and where it came from.
struct HandshakeDatagram {
    enum Origin {
        case direct(DatagramPath)
        /// Through a TURN server, from this address.
        case relayed(SocketAddress)
    }

    let bytes: [UInt8]
    let origin: Origin

    var source: SocketAddress {
        switch origin {
        case .direct(let path): path.remote
        case .relayed(let address): address
        }
    }
}

/// Datagrams of DTLS that cannot be used yet: our side of the handshake has not begun, or no check has shown that the peer is at
/// their source.
///
/// The peer has 8 places, and all other sources together have 8: strangers cannot displace what the peer sends.
struct EarlyHandshakes {
    private static let limit = 8

    private var datagrams: [HandshakeDatagram] = []

    var isEmpty: Bool { datagrams.isEmpty }

    /// Keeps a datagram if there is a place. Of the peer's the first are kept; of others the newest, and the source with the most
    /// loses its oldest.
    mutating func keep(_ datagram: HandshakeDatagram, isPeer: (SocketAddress) -> Bool) {
        let strangers = datagrams.indices.filter { !isPeer(datagrams[$0].source) }
        if isPeer(datagram.source) {
            guard datagrams.count - strangers.count < Self.limit else { return }
        } else if strangers.count >= Self.limit || datagrams.count >= 2 * Self.limit {
            let counts = strangers.map { index in
                strangers.count { datagrams[$0].source == datagrams[index].source }
            }
            guard let most = counts.max(), let victim = counts.firstIndex(of: most) else { return }
            datagrams.remove(at: strangers[victim])
        }
        datagrams.append(datagram)
    }

    /// Takes out the datagrams of these sources, in the order of their arrival.
    mutating func take(where isUsable: (SocketAddress) -> Bool) -> [HandshakeDatagram] {
        let usable = datagrams.filter { isUsable($0.source) }
        datagrams.removeAll { isUsable($0.source) }
        return usable
    }
}
