import SignalWire

/// How far one invitee of an invite has come.
enum InviteeState: Hashable, Sendable {
    /// Its devices ring.
    case pending
    /// A device took the invite.
    case accepted(by: DeviceID)
    /// A device turned the invite down.
    case rejected(by: DeviceID)
    /// The ttl ended without an answer.
    case timedOut
    /// The inviter took the invite back first.
    case cancelled

    /// What can happen to it.
    enum Input: Hashable, Sendable {
        case accept(by: DeviceID)
        case reject(by: DeviceID)
        case cancel
        case timeOut
    }

    /// What comes of an input.
    enum Step: Hashable, Sendable {
        /// The state changes.
        case moves(to: InviteeState)
        /// The device said so before: a retry, answered as then and with no other effect.
        case repeats
        /// The input comes too late: the client receives this error.
        case refused(RPCErrorCode)
        /// The input does not concern an invitee that is done.
        case ignored
    }

    /// What `input` does in this state.
    func step(_ input: Input) -> Step {
        switch (self, input) {
        case (.pending, .accept(let device)): .moves(to: .accepted(by: device))
        case (.pending, .reject(let device)): .moves(to: .rejected(by: device))
        case (.pending, .cancel): .moves(to: .cancelled)
        case (.pending, .timeOut): .moves(to: .timedOut)

        case (.accepted(let winner), .accept(let device)): winner == device ? .repeats : .refused(.alreadyHandled)
        case (.rejected(let winner), .reject(let device)): winner == device ? .repeats : .refused(.alreadyHandled)
        case (.accepted, .reject), (.rejected, .accept): .refused(.alreadyHandled)

        case (.timedOut, .accept), (.timedOut, .reject): .refused(.inviteTimedOut)
        case (.cancelled, .accept), (.cancelled, .reject): .refused(.inviteCancelled)

        case (.accepted, .cancel), (.accepted, .timeOut), (.rejected, .cancel), (.rejected, .timeOut),
            (.timedOut, .cancel), (.timedOut, .timeOut), (.cancelled, .cancel), (.cancelled, .timeOut):
            .ignored
        }
    }
}
