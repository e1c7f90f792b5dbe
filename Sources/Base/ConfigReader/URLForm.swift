/// The form of an absolute URL (RFC 3986 §4.3): a scheme, a host, and a port if there is one.
public enum URLForm {
    /// What is wrong with a URL that has to begin with one of `schemes`, to be read after its name; `nil` if nothing is.
    ///
    /// The fault does not show the URL, which can contain a password.
    public static func fault(of url: String, schemes: [String]) -> String? {
        let host = schemes.lazy.compactMap { scheme -> Substring? in
            let prefix = "\(scheme)://"
            return url.lowercased().hasPrefix(prefix) ? url.dropFirst(prefix.count) : nil
        }.first
        guard let host, let first = host.first, first != "/", !url.contains(where: \.isWhitespace) else {
            return "must be a URL that begins with \(schemes.map { "\($0)://" }.joined(separator: " or "))"
        }
        let authority = host.prefix { !"/?#".contains($0) }
        // A name and a password may precede the host, with a colon between them.
        let colon = authority.lastIndex { ":]@".contains($0) }
        if let colon, authority[colon] == ":", UInt16(authority[authority.index(after: colon)...]) == nil {
            return "must have a port from 1 to 65535, if it has one"
        }
        return nil
    }
}
