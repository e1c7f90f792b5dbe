/// The caller's identity: as a trusted peer asserts it (RFC 3325), or as the caller names itself in `From`.
///
/// `P-Preferred-Identity` is a caller's request to its own proxy and never identifies the caller.
public struct CallerIdentity: Hashable, Sendable {
    /// The caller. Its display name is hostile text in either case.
    public var address: NameAddress
    /// A trusted peer asserts it.
    public var isAsserted: Bool

    /// Reads the caller's identity.
    ///
    /// - Parameter isTrusted: The request came from a peer whose assertions count.
    /// - Returns: `nil` without a `From`.
    public init?(_ headers: SIPHeaders, isTrusted: Bool) {
        if isTrusted, !headers.asksForPrivacy, let address = headers.assertedIdentities.first {
            self.address = address
            isAsserted = true
            return
        }
        guard let from = headers.from else { return nil }
        address = from
        isAsserted = false
    }
}

extension SIPHeaders {
    /// `P-Asserted-Identity` (RFC 3325 §9.1): one address, or one with a SIP URI and one with a telephone number, the
    /// SIP URI first. Empty if there is none, or if they do not have this form. Only a trusted peer's identities count.
    public var assertedIdentities: [NameAddress] {
        guard let all = addresses("P-Asserted-Identity"), all.count <= 2 else { return [] }
        let (users, numbers) = (all.filter { $0.uri.sip != nil }, all.filter { $0.uri.isTelephoneNumber })
        guard users.count <= 1, numbers.count <= 1, users.count + numbers.count == all.count else { return [] }
        return users + numbers
    }

    /// `Privacy` (RFC 3323 §4.2, RFC 3325 §9.3): the caller asks that only the name in `From` be shown.
    public var asksForPrivacy: Bool {
        lines("Privacy").contains { line in
            line.split(whereSeparator: { $0 == ";" || $0 == "," }).contains { value in
                ["id", "user", "header"].contains(TextScanner.trimmed(Array(value.utf8)[...]).lowercased())
            }
        }
    }
}

extension AnyURI {
    /// A `tel:` URI.
    fileprivate var isTelephoneNumber: Bool {
        guard case .tel = self else { return false }
        return true
    }
}
