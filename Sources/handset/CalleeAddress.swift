internal import ArgumentParser
internal import CallAgent
internal import ConfigReader
internal import Core

/// The callee of a command, as a user types it: `user`, `user@host` or `user@host:port`, an IPv6 address in brackets.
struct CalleeAddress {
    /// Base URL of the server that the address names; nil if it names none.
    ///
    /// A host on this machine is spoken to on the embedded exchange's port without TLS, any other by https.
    let server: String?
    /// Who is invited: `user` or `user@host`. A port, or an IP address for a host, only says where the server is.
    let user: UserID

    /// Reads the typed address.
    ///
    /// - Throws: `ValidationError` if it names no callee.
    init(_ text: String) throws {
        guard !text.isEmpty, !text.hasPrefix("@") else {
            throw ValidationError("\"\(text)\" does not name a user to call. Give user@host, such as echo@localhost.")
        }
        // A SIP address is the service's to read.
        if ["sip:", "sips:", "tel:"].contains(where: { text.lowercased().hasPrefix($0) }) {
            server = nil
            user = try Self.user(text)
            return
        }
        guard let at = text.lastIndex(of: "@"), text.index(after: at) < text.endIndex else {
            server = nil
            user = try Self.user(text)
            return
        }
        let authority = String(text[text.index(after: at)...])
        let host = Self.host(of: authority)
        let address = SocketAddress(host: host.filter { $0 != "[" && $0 != "]" }, port: 0)
        let isLocal = host == "localhost" || address?.isLoopback == true
        let hasPort = host.count < authority.count
        server = "\(isLocal ? "http" : "https")://\(authority)" + (hasPort || !isLocal ? "" : ":8555")
        user = try Self.user(address == nil ? "\(text[..<at])@\(host)" : String(text[..<at]))
    }

    private static func user(_ text: String) throws -> UserID {
        do throws(IdentifierFault) {
            return try UserID(text)
        } catch {
            throw ValidationError("The name of the callee \(error).")
        }
    }

    /// What is before the port, with an IPv6 address's brackets; all of it if there is no port.
    private static func host(of authority: String) -> String {
        let start =
            authority.first == "[" ? authority.firstIndex(of: "]") ?? authority.startIndex : authority.startIndex
        guard let colon = authority[start...].firstIndex(of: ":") else { return authority }
        return String(authority[..<colon])
    }
}

extension AccountConfiguration {
    /// The account of the caller in the exchange's own demonstration configuration. No secret: it works on one's own
    /// machine only.
    static var demoCaller: AccountConfiguration {
        AccountConfiguration(server: defaultServer, credential: .mediaToken(Secret("caller-demo-token")))
    }
}
