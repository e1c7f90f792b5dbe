public import ConfigReader
import Core

/// Where a database of PostgreSQL is: what `store` in the configuration says, with the keys beside it.
public struct PostgresAddress: Hashable, Sendable, CustomStringConvertible {
    /// How much of the server's identity is proved (libpq's `sslmode`).
    public enum TLS: String, CaseIterable, Sendable {
        /// No encryption.
        case off = "disable"
        /// Encryption, with any server that answers.
        case encrypted = "require"
        /// A certificate of a known authority, for any host.
        case authority = "verify-ca"
        /// A certificate of a known authority for the host's name.
        case host = "verify-full"
    }

    /// What sessions of an exchange are called.
    static let application = "handset"

    /// One server, or several of which one is the primary.
    public struct Server: Hashable, Sendable {
        /// A name, an address, or the folder of a Unix socket.
        public var host: String
        /// The port; 5432 unless given.
        public var port: Int

        /// Whether what is sent to it stays on this machine.
        var isLocal: Bool { host.hasPrefix("/") || ["127.0.0.1", "::1", "localhost"].contains(host) }
    }

    /// The servers, in the order in which they are tried.
    public var servers: [Server]
    /// The user to log in as; without one, that of this process.
    public var user: String?
    /// The database's name.
    public var database: String
    /// How the server proves who it is; without a value `verify-full`, or `disable` if all servers are on this machine.
    public var tls: TLS?
    /// A file with the authorities' certificates; without one those of the system.
    public var authorities: String?

    /// Reads `postgresql://[USER@]HOST[:PORT][,HOST[:PORT]…]/DATABASE`. A folder of a Unix socket is written as
    /// `%2Frun%2Fpostgresql`.
    public init(_ text: String) throws(ConfigValueFault) {
        guard let scheme = ["postgresql://", "postgres://"].first(where: text.hasPrefix) else {
            throw ConfigValueFault("must begin with postgresql://")
        }
        guard !text.contains("?"), !text.contains("#") else {
            throw ConfigValueFault("must have no parameters behind a ?; the keys that begin with store_ set them")
        }
        var rest = text.dropFirst(scheme.count)
        if let at = rest.lastIndex(of: "@") {
            let user = rest[..<at]
            guard !user.contains(":") else {
                throw ConfigValueFault(
                    "must not contain the password; write it into a file, and name that in store_password_file")
            }
            self.user = try Self.decoded(user)
            rest = rest[rest.index(after: at)...]
        }
        guard let slash = rest.firstIndex(of: "/"), rest.index(after: slash) != rest.endIndex else {
            throw ConfigValueFault("must end with the database's name, such as /handset")
        }
        database = try Self.decoded(rest[rest.index(after: slash)...])
        servers = []
        for part in rest[..<slash].split(separator: ",", omittingEmptySubsequences: false) {
            servers.append(try Self.server(part))
        }
    }

    private static func server(_ part: Substring) throws(ConfigValueFault) -> Server {
        var host = part
        var port = 5_432
        let end = part.hasPrefix("[") ? part.firstIndex(of: "]") : nil
        if let colon = part.lastIndex(of: ":"), end.map({ colon > $0 }) ?? true {
            guard let number = Int(part[part.index(after: colon)...]), (1...65_535).contains(number) else {
                throw ConfigValueFault("has a port that is not a number from 1 to 65535")
            }
            (host, port) = (part[..<colon], number)
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else {
            throw ConfigValueFault("must name a host, such as db.example.org, or a folder, such as %2Frun%2Fpostgresql")
        }
        return Server(host: try decoded(host), port: port)
    }

    private static func decoded(_ text: Substring) throws(ConfigValueFault) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), rest.count >= 2,
                value != 0
            else { throw ConfigValueFault("has a % that is not followed by two hexadecimal digits") }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard let result = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw ConfigValueFault("is not UTF-8")
        }
        return result
    }

    /// How the server proves who it is.
    var usedTLS: TLS { tls ?? (servers.allSatisfy(\.isLocal) ? .off : .host) }

    /// Without user and password.
    public var description: String {
        let hosts = servers.map { $0.host.contains(":") ? "[\($0.host)]:\($0.port)" : "\($0.host):\($0.port)" }
        return "postgresql://\(hosts.joined(separator: ","))/\(database)"
    }

    /// What libpq is given.
    func parameters(password: Secret?, lease: Duration) -> [(name: String, value: String)] {
        var all = [
            ("host", servers.map(\.host).joined(separator: ",")),
            ("port", servers.map { String($0.port) }.joined(separator: ",")), ("dbname", database),
            ("sslmode", usedTLS.rawValue), ("application_name", Self.application), ("client_encoding", "UTF8"),
            ("target_session_attrs", servers.count > 1 ? "read-write" : "any"), ("keepalives_idle", "5"),
            ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("tcp_user_timeout", String(lease.nanoseconds / 1_000_000 * 3)),
        ]
        if let user { all.append(("user", user)) }
        if let password { all.append(("password", password.revealed)) }
        if let authorities {
            all.append(("sslrootcert", authorities))
        } else if usedTLS == .host || usedTLS == .authority {
            all.append(("sslrootcert", "/etc/ssl/certs/ca-certificates.crt"))
        }
        return all
    }
}
