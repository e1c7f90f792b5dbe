package import SignalWire
package import Core

/// Converts wire messages to inputs of the core.
extension ExchangeCore {
    /// Reads one text message.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes.
    ///   - admit: Registers a signed token that the message presents with the core; throws if the token is invalid.
    package static func input(
        reading bytes: [UInt8], from connection: ConnectionID, admit: (Redacted<String>) throws(RPCError) -> Void
    ) -> Input {
        do throws(RPCMessage.Malformed) {
            let message = try RPCMessage(decoding: bytes)
            guard case .request(let id, let method) = message.kind else {
                let error = RPCError(.invalidRequest, "The exchange accepts only requests, and a request has an id.")
                throw RPCMessage.Malformed(id: nil, error: error)
            }
            let request: ClientRequest
            do throws(RPCError) {
                request = try ClientRequest(method: method, in: message)
            } catch {
                throw RPCMessage.Malformed(id: id, error: error)
            }
            do throws(RPCError) {
                if let token = request.token { try admit(token) }
                return .request(connection, id, request)
            } catch {
                return .badToken(connection, id, error, closes: request.isSessionStart)
            }
        } catch {
            return .malformed(connection, error)
        }
    }

    /// The input that registers a token with the core before its grant is looked up.
    ///
    /// - Parameter wall: The time of day, in seconds since 1970.
    /// - Returns: `nil` for a token of the exchange's own.
    /// - Throws: An error that says what is wrong with a signed token.
    package mutating func presentation(
        of token: Redacted<String>, to reader: SignedTokenReader, wall: Double, at now: Instant
    ) throws(RPCError) -> Input? {
        guard SignedToken.isSigned(token.secret) else { return nil }
        let signed: SignedToken
        do throws(SignedTokenError) {
            signed = try reader.read(token.secret, at: wall)
        } catch {
            throw RPCError(error)
        }
        let grant = try Grant(signed, accounts: accounts.directory)
        let digest = SecretDigest(of: token.secret)
        let login = signed.login(digest: digest)
        guard accounts.login(of: digest) != nil || accounts.hasRoom(for: grant, issuer: signed.application.text) else {
            throw RPCError(
                .internalError, "The exchange has no room for another login with this API key; try again later.")
        }
        guard !accounts.isTaken(login, from: grant) else {
            throw RPCError(
                .tokenRejected,
                "An earlier token with other claims has the same id (jti); each token needs its own.")
        }
        let expires = now.advanced(by: .seconds(signed.expires - wall))
        return .tokenPresented(digest, grant, login: login, expires: expires)
    }
}
