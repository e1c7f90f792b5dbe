internal import ArgumentParser
internal import ConfigReader
internal import Core
internal import Enrollment
internal import ExchangeCore
internal import ExchangeServer
internal import Glibc
internal import Files
internal import SignalWire
internal import Realtime

/// `handset user enroll`.
struct UserEnrollCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enroll", abstract: "Print a code with which one device joins as a user, within ten minutes.",
        discussion: """
            The user is added if there is none. The code holds the exchange's address and the fingerprint of its authority; \
            the device makes a key of its own, and the exchange keeps only the public half. The first device that uses the code \
            joins; `handset user revoke --keys` locks all devices of a user out again.
            """)

    @Option(help: "The exchange's configuration file, which names the users file.", completion: .file())
    var config: String

    @Argument(help: "The user's id.", completion: Completions.users, transform: UserID.argument)
    var id: UserID

    @Option(
        help: "How devices reach the exchange, unless by the first name of its certificate and its own port.",
        transform: ServerURL.argument)
    var server: String?

    @Option(help: "Write the code as a QR code into this PNG file (mode 0600).", completion: .file())
    var png: String?

    @Flag(help: "Show the QR code on standard error even if that is not a terminal.")
    var qr = false

    func run() throws {
        var place = UsersPlace()
        (place.config, place.usersFile) = (config, nil)
        let (file, configured) = try place.resolve(makesFile: true)
        let exchange = try ExchangeConfiguration.read(path: config)
        try Self.checkWriting(to: file, exchange)
        let (host, port) = try address(of: exchange)
        var generator = SystemRandomNumberGenerator()
        let secret = EnrollmentSecret(using: &generator)
        let fingerprint = try exchange.authorityFingerprint()
        let code: EnrollmentCode
        do throws(EnrollmentCode.Fault) {
            code = try EnrollmentCode(host: host, port: port, secret: secret, fingerprint: fingerprint)
        } catch {
            throw CommandFailure(.usage, "the exchange's address \(error); give it with --server")
        }
        guard let picture = QRCode(code.text) else {
            throw CommandFailure(.failed, "the code is too long for a QR code; give a shorter address with --server")
        }
        if let png { try PrivateFile.replace(png, with: picture.png()) }
        let now = Int64(time(nil))
        var isNew = false
        try file.change { users in
            isNew = try Self.add(EnrollmentRecord(secret, at: now), to: id, in: &users, configured, at: now)
        }
        if isNew { Terminal.printError("added \(id) to \(file.path)") }
        if qr || isatty(STDERR_FILENO) == 1 { Terminal.write(picture.terminalText, to: STDERR_FILENO) }
        Terminal.printError("On the device, within ten minutes: handset enroll CODE")
        Terminal.print(code.text)
    }

    /// A code is useless if the exchange cannot store the key of the device that joins with it.
    private static func checkWriting(to file: UsersFile, _ exchange: ExchangeConfiguration) throws {
        guard let user = ExchangeUser.find(exchange), !FolderRights.mayReplace(file.path, user: user) else { return }
        let name = FolderRights.name(of: user)
        throw CommandFailure(
            .configuration,
            "the exchange runs as the user \"\(name)\", who cannot write to the folder of \(file.path); so no device could join, "
                + "because the exchange notes its key there. Move the users file into a folder of that user, such as that of "
                + "the database, and name it in users_file.")
    }

    /// - Returns: Whether the user was added, too.
    private static func add(
        _ enrollment: EnrollmentRecord, to id: UserID, in users: inout [Account], _ configured: [Account], at now: Int64
    ) throws -> Bool {
        let owner = (configured + users).first { ([$0.id] + $0.publicIDs).contains(id) }
        if let owner, owner.id != id {
            throw CommandFailure(.failed, "\"\(id)\" is another id of \(owner.id); give that")
        }
        let isNew = owner == nil
        if isNew { users.append(Account(id: id, added: MonotonicClock.wallTime.unixMilliseconds)) }
        let index = try UserRevokeCommand.index(of: id, in: users, configured)
        guard users[index].add(enrollment, at: now) else {
            throw CommandFailure(
                .failed, "\(id) has \(EnrollmentRecord.perAccount) unused codes; wait until they expire")
        }
        return isNew
    }

    private func address(of exchange: ExchangeConfiguration) throws -> (host: String, port: Int) {
        let isEncrypted = exchange.certificate != nil || exchange.ownAuthority != nil
        if let server {
            guard server.hasPrefix("https://") == isEncrypted else {
                throw CommandFailure(
                    .usage,
                    "--server \(server) does not fit the exchange, which \(isEncrypted ? "has" : "has no") TLS; begin it with "
                        + "\(isEncrypted ? "https" : "http")://")
            }
            let authority = server.drop { $0 != ":" }.dropFirst(3).prefix { $0 != "/" }
            if let endpoint = ConfigEndpoint(String(authority)) { return (endpoint.host, endpoint.port) }
            return (String(authority), isEncrypted ? 443 : 80)
        }
        guard let host = exchange.enrollmentHost, exchange.port != 0 else {
            throw CommandFailure(
                .usage,
                "\(config) does not show how devices reach the exchange; give --server, such as "
                    + "https://calls.example.org:8555")
        }
        let isLocal = host == "localhost" || host == "::1" || host.hasPrefix("127.")
        guard isEncrypted || isLocal else {
            throw CommandFailure(
                .configuration,
                "devices join over TLS only: give the exchange a certificate, such as certificate: authority: own")
        }
        return (host, exchange.port)
    }
}

/// Finds out as which user an exchange runs, or last ran.
enum ExchangeUser {
    /// The user who listens at the exchange's port; without any, the owner of what an exchange has made. Nil if nothing shows it.
    static func find(_ exchange: ExchangeConfiguration) -> UInt32? {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let bytes = try? PrivateFile.read(table, maximumBytes: 1 << 24)
            if let text = bytes ?? nil,
                let user = listener(at: exchange.port, in: String(decoding: text, as: UTF8.self))
            {
                return user
            }
        }
        return [exchange.databasePath, exchange.ownAuthority?.rootPath].compactMap(\.self)
            .lazy.compactMap { FolderRights.owner(of: $0) }.first
    }

    /// Who listens at a port, by the kernel's table of sockets (proc_pid_net(5)).
    static func listener(at port: Int, in table: String) -> UInt32? {
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            // sl, local address, remote address, state (0A: listens), queues, timer, retransmissions, user
            guard fields.count > 7, fields[3] == "0A", let digits = fields[1].split(separator: ":").last,
                Int(digits, radix: 16) == port, let user = UInt32(fields[7])
            else { continue }
            return user
        }
        return nil
    }
}
