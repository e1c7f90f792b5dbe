/// The account's credentials, which are sent to its server only. No other challenger gets a digest, because it could
/// guess the password from it, or send requests to the server in our name.
struct ServerCredentials: Sendable {
    private var digest: DigestClient?

    init(_ digest: DigestClient?) { self.digest = digest }

    /// Sets which challenges are answered.
    mutating func hold(to trust: DigestTrust) { digest?.hold(to: trust) }

    /// Replaces a request's credentials by new ones, or removes them if it does not go to the server.
    mutating func authorize(_ request: inout SIPRequest, by flow: SIPFlow) {
        request.headers.removeAll("Authorization")
        request.headers.removeAll("Proxy-Authorization")
        if flow.isToServer { digest?.authorize(&request) }
    }

    /// Handles the challenge to a request that was sent on that flow.
    ///
    /// - Returns: Whether the request is to be sent again.
    mutating func take(_ response: SIPResponse, to request: SIPRequest, by flow: SIPFlow) -> Bool {
        flow.isToServer && digest?.take(response, to: request) == .retry
    }

    /// A request that went by that flow was served.
    mutating func succeeded(by flow: SIPFlow) { if flow.isToServer { digest?.succeeded() } }
}
