internal import CallAgent
internal import MediaEngine
internal import ArgumentParser
internal import ConfigReader
internal import Core
internal import RTP

/// The account that calls: the options that `handset call` and `handset loopback call` have in common.
struct CallerOptions: ParsableArguments {
    @Option(help: "The account's configuration file.", completion: .file())
    var config: String?

    @Option(help: "Which account of the configuration file, if it has several.", completion: Completions.accounts)
    var account: String?

    @Option(
        help: "Base URL of the signaling server, instead of the one that follows from callee or configuration.",
        transform: ServerURL.argument)
    var server: String?
}

/// From where and how a command calls.
struct CallerConfiguration {
    /// Path of the account's configuration.
    let config: String?
    /// Which of several accounts in it.
    var account: String?
    /// Base URL of the server, over what the configuration says.
    let server: String?
    /// Whether to call as browsers do, over what the configuration says.
    let webrtc: Bool?

    /// Reads the configuration; without one it is the demo's account on the callee's server.
    func read(for callee: String) throws -> DeviceConfiguration {
        var configuration: DeviceConfiguration
        if let config {
            try ConfigurationCheck.expect("run", path: config)
            configuration = try DeviceConfiguration.read(path: config, server: server, account: account)
        } else {
            configuration = DeviceConfiguration(account: .demoCaller)
            if let server = try server ?? CalleeAddress(callee).server { configuration.account.use(server: server) }
        }
        if let webrtc { configuration.media.offers = webrtc ? .webRTC : .sdes }
        return configuration
    }
}

extension CallerConfiguration {
    init(_ options: CallerOptions, webrtc: Bool?) {
        self.init(config: options.config, account: options.account, server: options.server, webrtc: webrtc)
    }
}

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

/// Ranges of the options of a call, so that a slip is reported before the call is placed.
enum CallLimits {
    /// A day: longer than any call rings or lasts.
    private static let longestSeconds = 86_400

    /// How long to let a call ring: nil, for ever, for 0.
    static func timeToLive(seconds: Int) -> Duration? { seconds == 0 ? nil : .seconds(seconds) }

    /// - Parameters:
    ///   - press: Telephone keys; nil if none are pressed.
    ///   - duration: Seconds after which the call is hung up.
    ///   - ttl: Seconds for which it rings, 0 for ever.
    ///   - minimumLikeness: 0…1.
    static func check(press: String?, duration: Double?, ttl: Int, minimumLikeness: Double?) throws(ValidationError) {
        if let press, press.isEmpty || press.contains(where: { TelephoneEvent($0) == nil }) {
            throw ValidationError("--press must be made of 0-9, *, #, A-D and ! (flash), not \"\(press)\".")
        }
        if let duration, !(duration > 0 && duration <= Double(longestSeconds)) {
            throw ValidationError(
                "--duration must be a number of seconds above 0, up to \(longestSeconds), not \(duration).")
        }
        guard (0...longestSeconds).contains(ttl) else {
            throw ValidationError(
                "--ttl must be a number of seconds from 1 to \(longestSeconds), or 0 for ever, not \(ttl).")
        }
        if let minimumLikeness, !(0...1).contains(minimumLikeness) {
            throw ValidationError("--minimum-likeness must be a number from 0 to 1, not \(minimumLikeness).")
        }
    }
}

extension InviteConfiguration {
    /// Whether a call from a terminal fails at once if no device of the callee is connected: unless
    /// the caller has a payload, no push can wake one.
    var callsOnlineOnly: Bool { isOnlineOnly || payload == nil }
}
