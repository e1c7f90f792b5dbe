public import Core

/// The inputs of a TURN client.
public enum TURNInput: Sendable {
    /// The connection to the server is open; request a relayed address.
    case opened
    /// Bytes came from the server: one datagram, or any piece of the stream.
    case bytes([UInt8])
    /// Permit packets from this peer's address, from any port.
    case permit(SocketAddress)
    /// Get a channel for this peer, which adds 4 bytes to every packet instead of 36 or more.
    case bindChannel(SocketAddress)
    /// Send to a peer.
    case send([UInt8], to: SocketAddress)
    /// Release the relayed address.
    case end
    /// ``TURNClient/nextDeadline`` has come. Early calls are harmless.
    case timerFired
}

/// The outputs of a TURN client.
public enum TURNOutput: Equatable, Sendable {
    /// Send to the server: one datagram, or a piece of the stream.
    case transmit([UInt8])
    /// The relayed address is there.
    case allocated(relay: SocketAddress)
    /// Another server is to be asked instead (RFC 8489 §10).
    case redirected(SocketAddress)
    /// The server permits this peer's address, with any port.
    case permitted(SocketAddress)
    /// The server refuses this peer's address, with any port.
    case refused(SocketAddress)
    /// The peer has a channel.
    case channelBound(SocketAddress, channel: UInt16)
    /// A peer sent this.
    case received([UInt8], from: SocketAddress)
    /// There is no relayed address, or it is gone.
    case failed(TURNFailure)
    /// The address is released, or its release was tried for long enough: the connection may be closed.
    case ended
}

/// Why there is no relayed address.
public struct TURNFailure: Equatable, Sendable, CustomStringConvertible {
    /// The reasons.
    public enum Reason: Sendable {
        /// No answer in time.
        case timeout
        /// The server refuses name or password, or they have expired.
        case unauthorized
        /// The connection has an allocation already (437): another local port helps.
        case connectionInUse
        /// The allocation was there and is gone.
        case allocationLost
        /// Refused with another error.
        case refused
        /// Servers send us from one to the next, or back.
        case redirectedTooOften
        /// The answers are not TURN.
        case notTURN
    }

    /// Why.
    public let reason: Reason
    /// The server's error code, if it gave one.
    public let code: Int?
    /// The server's reason phrase, if any; at most 256 bytes.
    public let serverText: String

    init(_ reason: Reason, code: Int? = nil, serverText: String = "") {
        self.reason = reason
        self.code = code
        self.serverText = serverText
    }

    /// What failed, what the server reported, and what to try.
    public var description: String {
        let said = code.map { " The server said \($0) \(serverText.debugDescription)." } ?? ""
        let (problem, advice): (String, String) =
            switch reason {
            case .timeout: ("the TURN server does not answer", "Check its address and transport, and the firewall.")
            case .unauthorized: ("the TURN server does not accept the credentials", "Check user name and password.")
            case .connectionInUse: ("the TURN server takes the connection for another's", "Use another local port.")
            case .allocationLost: ("the TURN server has dropped the relayed address", "Restart ICE.")
            case .refused: ("the TURN server refused", "Check its quotas, and which transports it offers.")
            case .redirectedTooOften:
                (
                    "the TURN server redirects too often",
                    "Name the server that takes calls, or look at its alternate servers."
                )
            case .notTURN: ("the server does not speak TURN", "Check its address and transport.")
            }
        return "no relayed address: \(problem).\(said) \(advice)"
    }
}
