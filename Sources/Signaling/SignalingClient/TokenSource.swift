internal import BlockingWork
internal import Core
internal import CallControl
internal import JSON
internal import Files
internal import SignalWire

/// Where an access token comes from that this program does not log in for.
public enum TokenSource: Hashable, Sendable {
    /// This very token; there is no other.
    case fixed(String)
    /// The content of a file, which another program rewrites before the token ends.
    case file(path: String)
    /// What a program prints: its path or name, and its arguments.
    case command([String])
}

extension TokenSource: CustomStringConvertible, CustomReflectable {
    /// Where from, without the token.
    public var description: String {
        switch self {
        case .fixed: "the token given"
        case .file(let path): "the file \"\(path)\""
        case .command(let words): "the command \"\(words.first ?? "")\""
        }
    }

    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}

extension TokenSource {
    /// Whether it gives the same for ever.
    var isFixed: Bool {
        if case .fixed = self { true } else { false }
    }

    /// Asks the source. A command is given half a minute.
    func read() async throws(ServiceFailure) -> Redacted<String> {
        let text: String
        switch self {
        case .fixed(let token): text = token
        case .file(let path):
            let bytes: [UInt8]?
            do throws(PrivateFileError) {
                bytes = try await BlockingThreads.credentials.run { () throws(PrivateFileError) in
                    try PrivateFile.read(path, maximumBytes: SignalLimits.messageBytes)
                }
            } catch {
                throw failure(error.cause)
            }
            guard let bytes else { throw failure("there is no such file") }
            text = String(decoding: bytes, as: UTF8.self)
        case .command(let words):
            let outcome = await BlockingThreads.programs.run { TokenCommand.run(words, within: .seconds(30)) }
            switch outcome {
            case .success(let printed): text = printed
            case .failure(let cause): throw failure(cause.text)
            }
        }
        let lines = text.split(whereSeparator: \.isNewline).map(Self.trimmed)
        guard let token = lines.first(where: { !$0.isEmpty }), lines.filter({ !$0.isEmpty }).count == 1 else {
            throw failure(lines.isEmpty ? "it gives nothing" : "it gives more than one line, and no token has several")
        }
        return Redacted(token)
    }

    private static func trimmed(_ line: Substring) -> String {
        let start = line.drop { $0.isWhitespace }
        return start.lastIndex { !$0.isWhitespace }.map { String(start[...$0]) } ?? ""
    }

    private func failure(_ cause: String) -> ServiceFailure {
        ServiceFailure(
            SignalingError(
                .badConfiguration, activity: "take the access token from \(self)", cause: cause,
                advice: "It must give the token and nothing else."),
            remedy: .retry(after: .seconds(5)))
    }
}

/// What a signed token (a JWT) says of itself; not checked, for only the exchange can.
struct TokenClaims {
    /// Whose it is.
    var user: String?
    /// The one session that it is good for.
    var session: String?
    /// Until when, in seconds since 1970.
    var expiry: Double?

    /// Reads the claims of a signed token; `nil` for a token of another kind.
    init?(_ token: Redacted<String>) {
        let parts = token.secret.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        guard let bytes = Base64.lenientBytes(of: parts[1].utf8),
            let claims = try? SignalCoding.decode(JSONValue.self, from: bytes)
        else { return nil }
        user = claims["sub"]?.string
        session = claims["session"]?.string
        switch claims["exp"] {
        case .integer(let seconds)?: expiry = Double(seconds)
        case .number(let seconds)?: expiry = seconds
        case .unsigned, .null, .bool, .string, .array, .object, nil: expiry = nil
        }
    }

    /// How long it is good by this machine's clock; `nil` if it does not say.
    func lifetime(now: Double) -> Duration? {
        expiry.map { .milliseconds(Int64(max(0, min(($0 - now) * 1_000, 1e14)))) }
    }
}
