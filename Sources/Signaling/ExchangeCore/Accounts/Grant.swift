package import SignalWire

/// What an access token is good for.
package struct Grant: Hashable, Sendable {
    package var user: UserID
    /// Rooms only (AUTH-3).
    package var isAnonymous: Bool
    /// With a signed token for a session: the one room that it opens (AUTH-5).
    package var room: RoomGrant?
    /// The key of the application that logged the user in, or the API key of a signed token.
    private(set) var application: ApplicationKey?

    /// Makes the grant of a login.
    package init(user: UserID, isAnonymous: Bool, room: RoomGrant? = nil, application: ApplicationKey? = nil) {
        self.user = user
        self.isAnonymous = isAnonymous
        self.room = room
        self.application = application
    }

    /// What a session token says of its bearer.
    package struct RoomGrant: Hashable, Sendable {
        var room: RoomName
        var role: RoomRole
        /// Connection data, at most ``SignalLimits/connectionDataBytes``.
        var data: String?
    }
}

extension Grant {
    /// The grant of a valid signed token.
    ///
    /// - Throws: `tokenRejected` if its user has no account, `tokenRevoked` if it was issued before all the user's
    ///   logins were ended.
    init(_ token: SignedToken, accounts: AccountDirectory) throws(RPCError) {
        let account = accounts.account(called: token.user)
        if let since = account?.loginsSince, (token.issued ?? 0) < Double(since) {
            throw RPCError(.tokenRevoked, "The token was issued before the user's logins were ended; get a new one.")
        }
        if let session = token.session {
            let room = RoomGrant(room: session.id, role: RoomRole(session.role), data: session.data)
            self.init(
                user: account?.id ?? token.user, isAnonymous: false, room: room, application: token.application)
        } else if let account {
            self.init(user: account.id, isAnonymous: false, application: token.application)
        } else {
            throw RPCError(
                .tokenRejected, "The token's user (sub) has no account here, and the token names no session.")
        }
    }
}

extension SignedToken {
    /// What its login is called: after issuer and `jti`, or after the token itself, of whose `digest` each has its own.
    func login(digest: SecretDigest) -> TokenStore.LoginID {
        guard let id else { return digest }
        return SecretDigest(of: "jti \(application.text.utf8.count) \(application) \(id)")
    }
}

extension RoomRole {
    init(_ role: SignedToken.Role) {
        self =
            switch role {
            case .publisher: .publisher
            case .subscriber: .subscriber
            case .moderator: .moderator
            }
    }
}

extension RPCError {
    /// Why a signed token is not taken, on the wire.
    init(_ error: SignedTokenError) {
        let code: RPCErrorCode =
            switch error.code {
            case .wrongSignature: .tokenWrongSignature
            case .expired: .tokenExpired
            case .malformed, .unknownApplication, .notYetValid: .tokenRejected
            }
        self.init(code, error.description)
    }
}

extension RESTErrorCode {
    /// The code of an error about a token, for a REST call.
    package init(aboutToken error: RPCError) {
        self =
            switch error.known {
            case .tokenExpired: .tokenExpired
            case .tokenWrongSignature: .tokenWrongSignature
            case .tokenForAnotherSession: .tokenForAnotherSession
            case .tokenRevoked: .tokenRevoked
            case .internalError: .unavailable
            default: .tokenRejected
            }
    }
}

extension ClientRequest {
    /// The token that a request shows.
    package var token: Redacted<String>? {
        if case .sessionStart(let params) = self { return params.token }
        if case .sessionRenew(let params) = self { return params.token }
        if case .roomJoin(let params) = self { return params.token }
        return nil
    }

    var isSessionStart: Bool {
        if case .sessionStart = self { true } else { false }
    }
}
