internal import ConfigReader
internal import Enrollment

/// What `handset setup` writes: a device's configuration and the files that it names, and where. A value.
///
/// The files are in one folder, because the unit's user may read what is there, and perhaps not where they came from.
struct SetupPlan: Sendable {
    /// What a device does in its calls.
    enum Source: String, CaseIterable, Sendable {
        case card, echo, tone, silence
    }

    /// How the device logs in.
    enum Proof: Sendable, Equatable {
        /// With the media token in ``SetupPlan/tokenPath``.
        case mediaToken
        /// With the key in a file of the folder, which has joined.
        case key(file: String, user: String, enrollment: String)
        /// At a SIP server, with the password in ``SetupPlan/passwordPath``.
        case sip(SIPAccount)
    }

    /// An account at a SIP server, as the configuration has it.
    struct SIPAccount: Sendable, Equatable {
        /// The address of record.
        var address: String
        /// HOST or HOST:PORT; nil is the address's domain.
        var server: String?
        var transport = "tls"
        /// The name for the password; nil is that of the address.
        var user: String?
        /// Whether calls are offered, and taken, without encryption.
        var hasPlainMedia = false

        /// Whether signaling crosses a network in the clear.
        var isPlain: Bool {
            guard ["udp", "tcp", "ws"].contains(transport) else { return false }
            let place = server ?? address.split(separator: "@").last.map(String.init) ?? ""
            let host = ConfigEndpoint(place)?.host ?? place
            return !SetupPlan.isThisMachine(host)
        }
    }

    /// Of the unit's instance, the account and the files.
    var name: String
    /// The exchange's base URL.
    var server = "http://127.0.0.1:8555"
    /// Whether ``trustRootsPath`` has certificates to trust in addition to the system's.
    var hasTrustRoots = false
    var proof = Proof.mediaToken
    /// Whether plain text to another machine is allowed.
    var allowsPlainText = false
    /// By which the device joins; it says where the exchange is.
    var code: EnrollmentCode?
    var source = Source.echo
    /// Defaults that suit the machine, as the configuration names them; nil for those of any.
    var profile: String?
    /// With ``Source/card``; nil is the default card.
    var device: String?
    /// Where configurations are.
    var folder = "/etc/handset"
    /// Where the device keeps its login and its records.
    var state: String
    var controlSocket: String
    /// The program that logs in, as the exchange knows it; its secret is in ``appSecretPath``. Nil is that of the examples.
    var appKey: String?

    init(name: String) {
        self.name = name
        state = "/var/lib/handset/\(name)"
        controlSocket = "/run/handset/\(name)/control.sock"
    }

    var configurationPath: String { "\(folder)/\(name).yaml" }
    var tokenPath: String { "\(folder)/\(name).token" }
    var passwordPath: String { "\(folder)/\(name).password" }
    var appSecretPath: String { "\(folder)/\(name).secret" }
    /// The key of a device that has not joined yet, so that joining continues after an interruption.
    var draftKeyPath: String { "\(folder)/\(name).key.new" }
    var trustRootsPath: String { "\(folder)/\(name).roots.pem" }

    /// Whether a host's name or address is one of this machine's own, for which no TLS is needed.
    static func isThisMachine(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }

    /// What is wrong with a name; nil if it can be that of a unit, a user and a file.
    static func problem(withName name: String) -> String? {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
        if name == "exchange" { return "\"exchange\" is the name of the exchange's own configuration." }
        guard isPlain, (1...64).contains(name.utf8.count), name.utf8.first != UInt8(ascii: "-") else {
            return "\"\(name)\" is not a name of 1 to 64 small letters, digits, - and _, such as front-door."
        }
        return nil
    }

    /// The configuration, as text.
    var text: String {
        var lines = [
            "# Written by `handset setup`. /usr/share/doc/handset/examples/device-full.yaml shows every other key.",
            "", "account:",
        ]
        switch proof {
        case .mediaToken:
            lines += ["  server: \(Self.quoted(server))", "  media_token_file: \(name).token"]
        case .key(let file, let user, let enrollment):
            lines += [
                "  server: \(Self.quoted(server))", "  kind: key", "  user: \(Self.quoted(user))",
                "  key_file: \(file)",
                "  enrollment: \(Self.quoted(enrollment))",
            ]
        case .sip(let account): lines += self.lines(of: account)
        }
        if case .sip = proof {} else { lines.append("  session_file: \(Self.quoted(state + "/session.json"))") }
        if let appKey {
            lines.append("  app_key: \(Self.quoted(appKey))")
            lines.append("  app_secret_file: \(name).secret")
        }
        if allowsPlainText { lines.append("  allow_plain_text: true") }
        if hasTrustRoots { lines.append("  trust_roots: \(name).roots.pem") }
        if case .sip(let account) = proof, account.hasPlainMedia {
            lines += ["", "media:", "  allow_plain_rtp: true", "  offers: plain"]
        }
        if let profile { lines += ["", "profile: \(profile)"] }
        lines += [
            "", "device:", "  name: \(Self.quoted(name))", "  call_records: \(Self.quoted(state + "/calls.jsonl"))", "",
            "answer:",
            "  mode: auto", "", "behaviour:", "  source: \(source.rawValue)",
        ]
        if source == .card, let device { lines += ["", "audio:", "  device: \(Self.quoted(device))"] }
        lines += ["", "control:", "  socket: \(Self.quoted(controlSocket))", "  access: group", ""]
        return lines.joined(separator: "\n")
    }

    private func lines(of account: SIPAccount) -> [String] {
        var lines = ["  kind: sip"]
        if let user = account.user { lines.append("  user: \(Self.quoted(user))") }
        lines += ["  password_file: \(name).password", "  sip:", "    address: \(Self.quoted(account.address))"]
        if let server = account.server { lines.append("    server: \(Self.quoted(server))") }
        return lines + [
            "    transport: \(account.transport)", "    instance_file: \(Self.quoted(state + "/instance"))",
        ]
    }

    /// A text as YAML's double-quoted scalar.
    private static func quoted(_ text: String) -> String { JSONText.quoted(text) }
}
