import SDP

/// What a PATCH of a stream's session carries, and what answers an ICE restart: a piece of a description that holds
/// nothing but ICE (`application/trickle-ice-sdpfrag`, RFC 8840 §9).
package struct ICEFragment: Hashable, Sendable {
    /// One candidate, and the media section that it belongs to.
    struct Candidate: Hashable, Sendable {
        /// The section's `mid`.
        var mid: String
        /// The value of the `candidate` attribute.
        var value: String
    }

    /// Both halves of a side's ICE credentials.
    package struct Credentials: Hashable, Sendable {
        var usernameFragment: String
        var password: String
    }

    /// Candidates in one fragment; devices hold as many.
    static let maximumCandidates = 64
    /// Bytes in one candidate.
    static let maximumCandidateBytes = 512

    var credentials: Credentials?
    var candidates: [Candidate] = []
    /// There will be no more candidates.
    var hasEnded = false

    init(credentials: Credentials? = nil, candidates: [Candidate] = [], hasEnded: Bool = false) {
        self.credentials = credentials
        self.candidates = candidates
        self.hasEnded = hasEnded
    }

    /// Why a text is no fragment.
    package struct Malformed: Error, Hashable, Sendable {
        /// From 1.
        package var line: Int
        /// What was expected, as a sentence without a full stop.
        package var message: String
    }

    /// Reads a fragment. Lines may end in CR LF or LF; attributes that are not of ICE are passed over, and of several
    /// sections with credentials the first counts, since they share one transport.
    ///
    /// - Throws: ``Malformed`` with the line. Nothing that a client sends can trap.
    package init(parsing bytes: [UInt8]) throws(Malformed) {
        var reader = Reader()
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard !line.isEmpty else { continue }
            guard line.count >= 2, line[line.startIndex + 1] == UInt8(ascii: "="),
                let value = String(validating: line.dropFirst(2), as: UTF8.self)
            else { throw Malformed(line: number, message: "expected a letter, \"=\" and a value") }
            do throws(Reader.Wrong) {
                try reader.take(line[line.startIndex], value)
            } catch {
                throw Malformed(line: number, message: error.message)
            }
        }
        do throws(Reader.Wrong) { self = try reader.finish() } catch {
            throw Malformed(line: max(1, number), message: error.message)
        }
    }

    /// The text, for an answer: one section, for its transport is the only one.
    ///
    /// - Parameter options: What the answer's `ice-options` say, which RFC 9725 §4.3.3 has repeated.
    func text(mid: String, options: String? = nil) -> String {
        var lines: [String] = []
        if let options { lines.append("a=ice-options:\(options)") }
        if let credentials {
            lines += ["a=ice-ufrag:\(credentials.usernameFragment)", "a=ice-pwd:\(credentials.password)"]
        }
        lines += ["m=audio 9 UDP/TLS/RTP/SAVPF 0", "a=mid:\(mid)"]
        lines += candidates.map { "a=candidate:\($0.value)" }
        if hasEnded { lines.append("a=end-of-candidates") }
        return lines.map { $0 + "\r\n" }.joined()
    }
}

extension ICEFragment.Credentials {
    /// Takes both halves if they are what RFC 8839 §5.4 allows.
    init?(checking usernameFragment: String, password: String) {
        let isFit = { (text: String, range: ClosedRange<Int>) in
            range.contains(text.utf8.count) && text.utf8.allSatisfy(Self.iceBytes.contains)
        }
        guard isFit(usernameFragment, 4...256), isFit(password, 22...256) else { return nil }
        self.usernameFragment = usernameFragment
        self.password = password
    }

    private static let iceBytes = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/".utf8)
}

private struct Reader {
    struct Wrong: Error { var message: String }

    private var usernameFragment: String?
    private var password: String?
    private var candidates: [(section: Int, value: String)] = []
    private var mids: [String?] = []
    private var hasEnded = false

    mutating func take(_ type: UInt8, _ value: String) throws(Wrong) {
        switch type {
        case UInt8(ascii: "m"): mids.append(nil)
        case UInt8(ascii: "a"):
            let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            try take(attribute: parts[0], parts.count > 1 ? String(parts[1]) : "")
        default: throw Wrong(message: "expected nothing but m= and a= lines")
        }
    }

    private mutating func take(attribute name: Substring, _ value: String) throws(Wrong) {
        switch name {
        case "ice-ufrag": usernameFragment = usernameFragment ?? value
        case "ice-pwd": password = password ?? value
        case "mid":
            guard let last = mids.indices.last, !value.isEmpty, value.utf8.count <= 64 else {
                throw Wrong(message: "expected a=mid with a name of at most 64 bytes, below an m= line")
            }
            mids[last] = value
        case "end-of-candidates": hasEnded = true
        case "candidate":
            guard let section = mids.indices.last else { throw Wrong(message: "expected an m= line before candidates") }
            guard !value.isEmpty, value.utf8.count <= ICEFragment.maximumCandidateBytes else {
                throw Wrong(message: "expected a candidate of 1 to \(ICEFragment.maximumCandidateBytes) bytes")
            }
            guard candidates.count < ICEFragment.maximumCandidates else {
                throw Wrong(message: "expected at most \(ICEFragment.maximumCandidates) candidates")
            }
            candidates.append((section, value))
        default: break
        }
    }

    func finish() throws(Wrong) -> ICEFragment {
        var fragment = ICEFragment(hasEnded: hasEnded)
        switch (usernameFragment, password) {
        case (nil, nil): break
        case (let name?, let password?):
            guard let credentials = ICEFragment.Credentials(checking: name, password: password) else {
                throw Wrong(message: "expected an ice-ufrag of 4 and an ice-pwd of 22 to 256 letters, digits, + and /")
            }
            fragment.credentials = credentials
        case (.some, nil), (nil, .some): throw Wrong(message: "expected both ice-ufrag and ice-pwd, or neither")
        }
        for candidate in candidates {
            guard let mid = mids[candidate.section] else { throw Wrong(message: "expected a=mid in each section") }
            fragment.candidates.append(.init(mid: mid, value: candidate.value))
        }
        guard fragment.credentials != nil || !fragment.candidates.isEmpty || hasEnded else {
            throw Wrong(message: "expected credentials, candidates or their end")
        }
        return fragment
    }
}
