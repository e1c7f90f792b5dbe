internal import CallControl
internal import Synchronization

/// Which of several servers is asked: exchanges that share a database, of which one serves and the others are standbys.
///
/// The one that served last is asked first. Any thread may call.
final class ServerChoice: Sendable {
    private let all: [HandsetServiceConfiguration.Addresses]
    private let current = Mutex(0)

    init(_ configuration: HandsetServiceConfiguration) {
        all = [configuration.addresses] + configuration.moreServers.map { .init($0) }
    }

    /// The addresses of the one that is asked now.
    var addresses: HandsetServiceConfiguration.Addresses { all[current.withLock { $0 }] }

    /// Does something with one server after the other, until one serves. Each is tried once.
    ///
    /// - Throws: What the last one said.
    func trying<Answer>(
        _ ask: () async throws(ServiceFailure) -> Answer
    ) async throws(ServiceFailure) -> Answer {
        for _ in all.dropFirst() {
            let asked = current.withLock { $0 }
            do throws(ServiceFailure) {
                return try await ask()
            } catch {
                guard error.mayBeElsewhere else { throw error }
                // Another request may have moved on meanwhile.
                current.withLock { if $0 == asked { $0 = (asked + 1) % all.count } }
            }
        }
        return try await ask()
    }
}

extension ServiceFailure {
    /// Whether another server may serve: this one is a standby, or cannot be reached.
    fileprivate var mayBeElsewhere: Bool { [.serverUnreachable, .disconnected].contains(error.code) }
}
