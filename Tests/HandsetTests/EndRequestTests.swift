import Synchronization
import Testing

@testable import handset

@Suite("Commands that are asked to end as they connect", .timeLimit(.minutes(1)))
struct EndRequestTests {
    private struct Refused: Error {}

    /// Counts how often something was shut down, and lets who waits for that go on.
    private final class Connection: Sendable {
        private let state = Mutex<(ends: Int, waiter: CheckedContinuation<Void, Never>?)>((0, nil))

        var ends: Int { state.withLock { $0.ends } }

        func end() {
            let waiter = state.withLock { state in
                state.ends += 1
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume()
        }

        /// Connects to a server that does not answer.
        func hang() async {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.ends == 0 { state.waiter = continuation }
                    return state.ends > 0
                }
                if isOver { continuation.resume() }
            }
        }
    }

    @Test("A server that does not answer delays no end")
    func silentServer() async throws {
        let (ending, connection) = (EndRequest(), Connection())
        let isConnected = try await ending.connect { () async throws(Refused) in
            ending.make()
            await connection.hang()
            throw Refused()
        } shutDown: {
            connection.end()
        }
        #expect(!isConnected && connection.ends > 0)
    }

    @Test(
        "An end at the instant of connecting shuts down what has just connected, or failed to",
        arguments: [true, false])
    func sameInstant(connects: Bool) async throws {
        for _ in 0..<1_000 {
            let (ending, connection) = (EndRequest(), Connection())
            let isConnected = try await ending.connect { () async throws(Refused) in
                ending.make()
                if !connects { throw Refused() }
            } shutDown: {
                connection.end()
            }
            try #require(!isConnected && connection.ends > 0)
        }
    }

    @Test("Without a request to end nothing is shut down, and a failure to connect is thrown")
    func noRequest() async throws {
        let (ending, connection) = (EndRequest(), Connection())
        #expect(
            try await ending.connect { () async throws(Refused) in
            } shutDown: {
                connection.end()
            })
        await #expect(throws: Refused.self) {
            _ = try await ending.connect { () async throws(Refused) in
                throw Refused()
            } shutDown: {
                connection.end()
            }
        }
        #expect(connection.ends == 0)
        // Whoever still waits goes on.
        ending.make()
    }
}
