/// A reference to a resource, taken apart, and resolved against the address of the document that it is in (RFC 3986).
public struct URIReference: Equatable, Sendable {
    /// Without its colon; nil if there is none.
    public private(set) var scheme: String?
    /// Host and port, without the slashes before them; nil if there is none.
    public private(set) var authority: String?
    /// May be empty.
    public private(set) var path: String
    /// Without its question mark; nil if there is none.
    public private(set) var query: String?
    /// Without its number sign; nil if there is none.
    public private(set) var fragment: String?

    /// Takes any text apart, as appendix B does: each text is a reference.
    public init(_ text: some StringProtocol) {
        var rest = String(text)[...]
        if let mark = rest.firstIndex(of: "#") {
            fragment = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let mark = rest.firstIndex(where: { $0 == ":" || $0 == "/" }), rest[mark] == ":", mark > rest.startIndex {
            scheme = String(rest[..<mark])
            rest = rest[rest.index(after: mark)...]
        }
        if rest.hasPrefix("//") {
            let inner = rest.dropFirst(2)
            let end = inner.firstIndex(of: "/") ?? inner.endIndex
            authority = String(inner[..<end])
            rest = inner[end...]
        }
        path = String(rest)
    }

    /// The target of a reference that a document at this address has (§5.2.2).
    public func resolving(_ reference: URIReference) -> URIReference {
        var target = reference
        if reference.scheme != nil {
            target.path = Self.withoutDots(reference.path)
            return target
        }
        target.scheme = scheme
        if reference.authority != nil {
            target.path = Self.withoutDots(reference.path)
            return target
        }
        target.authority = authority
        if reference.path.isEmpty {
            target.path = path
            target.query = reference.query ?? query
        } else if reference.path.hasPrefix("/") {
            target.path = Self.withoutDots(reference.path)
        } else {
            target.path = Self.withoutDots(merged(with: reference.path))
        }
        return target
    }

    /// The whole (§5.3).
    public var text: String {
        (scheme.map { "\($0):" } ?? "") + (authority.map { "//\($0)" } ?? "") + path + (query.map { "?\($0)" } ?? "")
            + (fragment.map { "#\($0)" } ?? "")
    }

    /// With the path `/` if there is an authority and no path, which is the same (§6.2.3).
    public var rooted: URIReference {
        var reference = self
        if authority != nil, path.isEmpty { reference.path = "/" }
        return reference
    }

    /// Without the fragment, which no request has.
    public var withoutFragment: URIReference {
        var reference = self
        reference.fragment = nil
        return reference
    }

    /// §5.2.3.
    private func merged(with other: String) -> String {
        if authority != nil, path.isEmpty { return "/" + other }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        return folder + other
    }

    /// A path without its segments `.` and `..` (§5.2.4).
    private static func withoutDots(_ path: String) -> String {
        var kept: [Substring] = []
        let isAbsolute = path.hasPrefix("/")
        let segments = path.dropFirst(isAbsolute ? 1 : 0).split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".": if isLast { kept.append("") }
            case "..":
                _ = kept.popLast()
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        return (isAbsolute ? "/" : "") + kept.joined(separator: "/")
    }
}
