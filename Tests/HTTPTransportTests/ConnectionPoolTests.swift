import Testing
import Core

@testable import HTTPTransport

/// Which connection serves which request, in virtual time.
@Suite struct ConnectionPoolTests {
    /// A pool, its clock, and the connections that it opened.
    private struct Scenario {
        typealias Pool = ConnectionPool

        var pool: ConnectionPool
        var now = Instant.zero
        var opened: [ConnectionPool.ConnectionNumber] = []

        init(idleLimit: Int = 4) { pool = ConnectionPool(idleLimit: idleLimit, idleTime: .seconds(30)) }

        mutating func feed(_ input: ConnectionPool.Input) -> [ConnectionPool.Output] {
            var outbox: [ConnectionPool.Output] = []
            pool.handle(input, at: now, into: &outbox)
            for case .open(let connection, _) in outbox { opened.append(connection) }
            return outbox
        }

        mutating func request(_ number: Int, to host: String = "a") throws -> [ConnectionPool.Output] {
            feed(.request(number, ConnectionPool.Origin(try HTTPEndpoint("http://\(host)/path"))))
        }

        mutating func wait(_ time: Duration) { now = now.advanced(by: time) }
    }

    @Test("A request reuses the connection of an earlier one to the same server, and parallel requests have one each")
    func reuse() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        _ = try scenario.request(2)
        #expect(scenario.opened.count == 2)
        let (first, second) = (scenario.opened[0], scenario.opened[1])
        #expect(scenario.feed(.answered(first, isReusable: true)).isEmpty)
        #expect(scenario.feed(.answered(second, isReusable: true)).isEmpty)
        #expect(try scenario.request(3) == [.send(3, on: second)], "the most recently used one")
        #expect(try scenario.request(4, to: "A") == [.send(4, on: first)], "names have no case")
    }

    @Test("A connection serves no other host, port or scheme")
    func origins() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        for (number, url) in ["http://b", "http://a:81", "https://a:80"].enumerated() {
            let origin = ConnectionPool.Origin(try HTTPEndpoint(url))
            guard case .open = scenario.feed(.request(number + 2, origin)).last else {
                Issue.record("\(url) shares a connection")
                return
            }
        }
    }

    @Test("A connection without a request is closed after its idle time, and not before")
    func expiry() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        #expect(scenario.pool.nextDeadline == nil)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        let deadline = try #require(scenario.pool.nextDeadline)
        #expect(Instant.zero.duration(to: deadline) == .seconds(30))
        scenario.wait(.milliseconds(29_999))
        #expect(scenario.feed(.timerFired).isEmpty)
        scenario.wait(.milliseconds(1))
        #expect(scenario.feed(.timerFired) == [.close(scenario.opened[0])])
        #expect(scenario.pool.nextDeadline == nil)
    }

    @Test("A connection that has expired serves no request, even if the timer is late")
    func lateTimer() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        scenario.wait(.seconds(31))
        let outputs = try scenario.request(2)
        #expect(scenario.opened.count == 2)
        #expect(outputs == [.close(scenario.opened[0]), .open(scenario.opened[1], for: 2)])
    }

    @Test("A request in between restarts the idle time of its connection")
    func renewal() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        scenario.wait(.seconds(20))
        _ = try scenario.request(2)
        #expect(scenario.pool.nextDeadline == nil)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        #expect(scenario.pool.nextDeadline == scenario.now.advanced(by: .seconds(30)))
    }

    @Test("Beyond the limit the connection that was idle longest is closed")
    func limit() throws {
        var scenario = Scenario(idleLimit: 2)
        for number in 1...3 { _ = try scenario.request(number) }
        let opened = scenario.opened
        #expect(scenario.feed(.answered(opened[1], isReusable: true)).isEmpty)
        #expect(scenario.feed(.answered(opened[0], isReusable: true)).isEmpty)
        #expect(scenario.feed(.answered(opened[2], isReusable: true)) == [.close(opened[1])])
    }

    @Test("A connection that cannot be reused is closed after its answer")
    func unusable() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        #expect(scenario.feed(.answered(scenario.opened[0], isReusable: false)) == [.close(scenario.opened[0])])
        _ = try scenario.request(2)
        #expect(scenario.opened.count == 2)
    }

    @Test("A request whose kept connection fails is sent once more, and then fails")
    func retry() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        _ = try scenario.request(2)
        let again = scenario.feed(.failed(scenario.opened[0], maySendAgain: true))
        #expect(scenario.opened.count == 2)
        #expect(again == [.close(scenario.opened[0]), .open(scenario.opened[1], for: 2)])
        let last = scenario.feed(.failed(scenario.opened[1], maySendAgain: true))
        #expect(last == [.close(scenario.opened[1]), .fail(2)])
    }

    @Test("A request fails at once if its connection is new, or if the server may have served it")
    func noRetry() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        let fresh = scenario.feed(.failed(scenario.opened[0], maySendAgain: true))
        #expect(fresh == [.close(scenario.opened[0]), .fail(1)])
        _ = try scenario.request(2)
        _ = scenario.feed(.answered(scenario.opened[1], isReusable: true))
        _ = try scenario.request(3)
        let served = scenario.feed(.failed(scenario.opened[1], maySendAgain: false))
        #expect(served == [.close(scenario.opened[1]), .fail(3)])
    }

    @Test("A retry does not take another kept connection, which may have ended as well")
    func retryIsNew() throws {
        var scenario = Scenario()
        for number in 1...2 { _ = try scenario.request(number) }
        for connection in scenario.opened { _ = scenario.feed(.answered(connection, isReusable: true)) }
        _ = try scenario.request(3)
        let outputs = scenario.feed(.failed(scenario.opened[1], maySendAgain: true))
        #expect(scenario.opened.count == 3)
        #expect(outputs.last == .open(scenario.opened[2], for: 3))
    }

    @Test("A kept connection that the server closes is forgotten")
    func idleEnd() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        _ = scenario.feed(.answered(scenario.opened[0], isReusable: true))
        #expect(scenario.feed(.failed(scenario.opened[0], maySendAgain: false)).isEmpty)
        #expect(scenario.pool.nextDeadline == nil)
        _ = try scenario.request(2)
        #expect(scenario.opened.count == 2)
    }

    @Test("An abandoned request closes its connection, and what that connection reports later changes nothing")
    func abandoned() throws {
        var scenario = Scenario()
        _ = try scenario.request(1)
        let connection = scenario.opened[0]
        #expect(scenario.feed(.abandoned(1)) == [.close(connection)])
        #expect(scenario.feed(.abandoned(1)).isEmpty)
        #expect(scenario.feed(.answered(connection, isReusable: true)).isEmpty)
        #expect(scenario.feed(.failed(connection, maySendAgain: true)).isEmpty)
        #expect(scenario.pool.nextDeadline == nil)
    }

    @Test("After shutDown all connections are closed, and all requests are refused")
    func shutDown() throws {
        var scenario = Scenario()
        for number in 1...2 { _ = try scenario.request(number) }
        let (idle, busy) = (scenario.opened[0], scenario.opened[1])
        _ = scenario.feed(.answered(idle, isReusable: true))
        #expect(scenario.feed(.shutDown) == [.close(idle), .close(busy), .refuse(2)])
        #expect(try scenario.request(3) == [.refuse(3)])
        #expect(scenario.pool.nextDeadline == nil)
    }
}
