internal import Core

/// How long each step of `handset doctor` may take at most, in seconds. docs/doctor.md has them; a test compares both.
enum DoctorBounds {
    /// The answer of a running device.
    static let device = 5
    /// All names together, by four questions one after another at most.
    static let names = 15
    /// A connection; all are tried at a time.
    static let connection = 5
    /// A TLS handshake, a look at the certificates, and the answer to a request, each.
    static let answer = 5
    /// The login, and the end of it.
    static let login = 10
    /// The answers of all STUN and TURN servers, and of SIP servers over UDP.
    static let datagrams = 3
    /// The names of those that only the exchange gave.
    static let stunNames = 5
    /// A relayed address; all servers are asked at a time.
    static let relay = 5
    /// The sound card.
    static let card = 10
    /// The call to itself, with the logins of both ends.
    static let call = 30

    /// All steps without the call.
    static let all = device + names + connection + 3 * answer + login + datagrams + stunNames + relay + card

    /// Runs work that may hang. It is cancelled after this number of seconds, and not waited for.
    ///
    /// - Returns: Its result; nil if there is none in time.
    static func within<Value: Sendable>(
        _ seconds: Int, _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let (results, result) = AsyncStream.makeStream(of: Value?.self)
        let working = Task { result.yield(await work()) }
        let timer = Task {
            guard (try? await Task.sleep(for: .seconds(seconds))) != nil else { return }
            result.yield(nil)
        }
        defer {
            working.cancel()
            timer.cancel()
        }
        for await first in results { return first }
        return nil
    }
}
