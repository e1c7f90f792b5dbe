package import SignalWire
package import Core

/// Whose turn a piece of work takes.
///
/// A user's connections and devices share one. So do principals that anyone can create in any number: connections that
/// have not logged in, guests, and the visitors of one room.
package enum Payer: Hashable, Sendable {
    case account(UserID)
    case visitors(RoomName)
    case guests
    case strangers
    /// The exchange itself, for deadlines that belong to no user.
    case exchange

    package init(_ principal: Principal) {
        switch principal.kind {
        case .account: self = .account(principal.user)
        case .guest: self = .guests
        case .visitor(let room): self = .visitors(room)
        }
    }

    init(_ grant: Grant) {
        if let room = grant.room {
            self = .visitors(room.room)
        } else {
            self = grant.isAnonymous ? .guests : .account(grant.user)
        }
    }
}

/// What comes in one after the other, and is served so.
package enum WorkLine: Hashable, Sendable {
    case connection(ConnectionID)
    /// One request over HTTP.
    case request(UInt64)
    /// What falls due for a payer.
    case timer(Payer)
    /// Pushes that are to be tried.
    case pushes
}

extension ExchangeCore {
    /// What a user began and what is left of it ends in the user's turn, so that others' time is up when it is, however much
    /// that is. How long a login is good, and how long a connection may do without, is not put off by its own user.
    func payer(of deadline: Deadline) -> Payer {
        let principal: Principal? =
            switch deadline {
            case .inviteTimesOut(let id), .inviteIsForgotten(let id): invites[id]?.inviter.principal
            case .sessionIsForgotten(let id): sessions.session(id)?.endpoint.principal
            case .callMayBeOrphaned(let id): invites.calls[id]?.inviter.principal
            case .eventsExpire(let principal): principal
            case .accountIsMissed, .namesakesAreDue, .loginIsDue, .tokensAreSwept, .tokenIsChecked, .pruningIsDue,
                .eventsArePruned:
                nil
            }
        return principal.map { Payer($0) } ?? .exchange
    }

    /// Who pays for what comes from a connection; `nil` if it has no session.
    package mutating func payer(on connection: ConnectionID) -> Payer? {
        sessions[connection].map { Payer($0.endpoint.principal) }
    }

    /// Who pays for what comes with a token; `nil` if that is not good.
    package mutating func payer(with token: Redacted<String>, at now: Instant) -> Payer? {
        let digest = SecretDigest(of: token.secret)
        let grant = try? accounts.grant(for: digest, at: now)
        return (grant ?? (try? accounts.refreshGrant(for: digest, mark: nil, at: now))).map { Payer($0) }
    }
}
