internal import Core

/// What is known of a call's media before the call is established.
struct CallSetUp: Hashable, Sendable {
    enum Connection: Hashable, Sendable {
        case none
        /// There is a path, and keys are still to be agreed on.
        case path
        /// Media can go to where the peer's description says.
        case described
        /// ICE or a handshake has reached the peer, and there are keys.
        case verified
    }

    var connection = Connection.none
    /// Whether the caller is known to have our answer, or we are the caller.
    var isAcknowledged = true
    /// The invite had no offer: ours is in the accept, and the caller's acknowledgement has the answer.
    var offersInAccept = false
    /// Media flows both ways already.
    var isFlowing = false
    /// When a path could first be looked for: from the accept, or from the answer to an offer in it.
    var begunAt: Instant?

    /// Whether an answered call can carry media (contract CALL-2).
    var carriesMedia: Bool {
        switch connection {
        case .none, .path: false
        case .described: isAcknowledged
        case .verified: true
        }
    }

    /// Whether nothing is missing but the caller's acknowledgement.
    var awaitsOnlyAcknowledgement: Bool {
        !isAcknowledged && (connection == .described || offersInAccept && connection == .none)
    }

    mutating func note(_ input: CallMachine.Input, at now: Instant) {
        switch input {
        case .media(.pathFound): if connection == .none { connection = .path }
        case .media(.connected(let isVerified)): connection = isVerified ? .verified : .described
        case .media(.flowing): isFlowing = true
        case .service(.acknowledged):
            isAcknowledged = true
            if offersInAccept { begunAt = now }
        case .begin, .user, .media, .service, .timerFired: break
        }
    }
}
