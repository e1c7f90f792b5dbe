import ExchangeStore
import SignalWire
import Timekeeping

/// Whose turn a piece of work takes.
///
/// A user's connections and devices share one. So do those that anybody can make as many of as he likes: connections
/// that have not logged in, guests, and the visitors of one room.
enum Payer: Hashable, Sendable {
    case account(UserID)
    case visitors(RoomName)
    case guests
    case strangers
    /// The exchange itself, for what its own timers do.
    case exchange

    init(_ principal: Principal) {
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
enum WorkLine: Hashable, Sendable {
    case connection(ConnectionID)
    /// One request over HTTP.
    case request(UInt64)
    case timer
}

extension ExchangeCore {
    /// Who pays for what comes from a connection; `nil` if it has no session.
    func payer(on connection: ConnectionID) -> Payer? {
        sessions[connection].map { Payer($0.endpoint.principal) }
    }

    /// Who pays for what comes with a token; `nil` if that is not good.
    func payer(with token: Redacted<String>, at now: Instant) -> Payer? {
        let digest = SecretDigest(of: token.secret)
        let grant = try? tokens.grant(for: digest, at: now)
        return (grant ?? (try? tokens.refreshGrant(for: digest, mark: nil, at: now))).map { Payer($0) }
    }
}
