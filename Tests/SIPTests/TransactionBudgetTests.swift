import Realtime
import TestSupport
import Testing
import Core

@testable import SIP

@Suite("Memory of transactions")
struct TransactionBudgetTests {
    private static let memory = SIPLimits.transactionMemory.lowerBound

    private static func flow(_ id: Int, _ host: String? = nil) -> SIPFlow {
        SIPFlow(
            id: id, transport: .udp, localHost: Sample.udp.localHost, localPort: 5_060,
            remoteHost: host.flatMap { SIPHost($0) })
    }

    private static let server = flow(1)

    /// A request with so many bytes in `Via`, and in its body.
    private static func request(_ method: SIPMethod, _ number: Int, via: Int = 0, body: Int = 0) -> SIPMessage {
        var request = Sample.request(method, branch: "z9hG4bK\(number)")
        var left = via
        while left > 0 {
            request.headers.append("Via", "SIP/2.0/UDP 192.0.2.8;x=" + String(repeating: "y", count: min(left, 8_000)))
            left -= 8_000
        }
        request.body = [UInt8](repeating: 0x61, count: body)
        return .request(request)
    }

    /// A table on virtual time, of whose outputs nothing is kept.
    private struct Run {
        var table: TransactionTable
        var now = Instant.zero
        var count = 0
        var refused = 0
        /// Whether requests are read from bytes, as they come from the wire.
        var isRead = false

        init(memory: Int = TransactionBudgetTests.memory) {
            table = TransactionTable(tokens: Sample.tokens(), memory: memory)
        }

        mutating func feed(_ input: TransactionInput) -> [TransactionOutput] {
            var outbox: [TransactionOutput] = []
            table.handle(input, at: now, into: &outbox)
            return outbox
        }

        /// Takes a request.
        ///
        /// - Returns: It and its transaction, unless it was refused for want of memory.
        mutating func take(
            _ method: SIPMethod, from flow: SIPFlow = server, via: Int = 0, body: Int = 0
        ) throws -> (SIPRequest, TransactionID)? {
            count += 1
            var message = request(method, count, via: via, body: body)
            if isRead { message = try SIPMessage(parsing: message.bytes) }
            for output in feed(.received(message, flow)) {
                switch output {
                case .request(let request, let id, _): return (request, id)
                case .transmit(.response(let response), _):
                    #expect(response.status == 503 && response.headers["Retry-After"] != nil)
                    refused += 1
                default: break
                }
            }
            return nil
        }

        mutating func answer(_ taken: (SIPRequest, TransactionID), _ status: Int, body: Int = 0) {
            var response = SIPResponse(status, to: taken.0, toTag: "b")
            response.body = [UInt8](repeating: 0x61, count: body)
            _ = feed(.respond(taken.1, response))
        }

        mutating func run(_ duration: Duration) {
            let end = now.advanced(by: duration)
            while let deadline = table.nextDeadline, deadline <= end {
                now = max(now, deadline)
                _ = feed(.timerFired)
            }
            now = end
        }
    }

    @Test(
        "However large requests are, however they are answered, from however many hosts: no more memory than there is, and none at the end"
    )
    func property() throws {
        for seed in UInt64(1)...10 {
            var random = SeededGenerator(seed: seed)
            var run = Run(memory: 1 << 20)
            var open: [(SIPRequest, TransactionID)] = []
            for step in 0..<600 {
                let flow =
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: Self.server
                    default: Self.flow(-1 - step, "198.51.100.\(Int.random(in: 1...40, using: &random))")
                    }
                let method: SIPMethod = Bool.random(using: &random) ? .invite : .options
                let sizes = [0, 0, 100, 3_000, 29_000]
                let via = sizes.randomElement(using: &random) ?? 0
                let body =
                    method == .invite ? [0, 300, 1_500, 30_000, 60_000 - via].randomElement(using: &random) ?? 0 : 0
                if let taken = try run.take(method, from: flow, via: via, body: min(body, 33_000)) {
                    open.append(taken)
                }
                #expect(run.table.bytes <= 1 << 20)
                while open.count > Int.random(in: 0...20, using: &random) {
                    let index = Int.random(in: open.indices, using: &random)
                    let status = [180, 200, 486].randomElement(using: &random) ?? 486
                    // Our own part is small, or larger than all that was set aside.
                    run.answer(open[index], status, body: sizes.randomElement(using: &random) ?? 0)
                    if status >= 200 { open.remove(at: index) }
                    #expect(run.table.bytes <= 1 << 20)
                }
                if step.isMultiple(of: 50) { run.run(.milliseconds(Int.random(in: 0...8_000, using: &random))) }
            }
            #expect(run.refused > 0 && run.refused == run.table.refusals, "the edge was reached")
            for taken in open { run.answer(taken, 486) }
            run.run(.seconds(300))
            #expect(run.table.count == 0 && run.table.bytes == 0)
        }
    }

    @Test("At the edge: the documented number of the largest requests is taken, and the next one gets 503")
    func edge() throws {
        var run = Run()
        var taken: [(SIPRequest, TransactionID)] = []
        while let next = try run.take(.options, via: 29_000) { taken.append(next) }
        // 8 MiB, of which each takes up its text and some 6 kB.
        #expect((220...250).contains(taken.count), "\(taken.count)")
        // Once one is over there is room again.
        run.answer(taken[0], 200)
        run.run(.seconds(33))
        #expect(try run.take(.options, via: 29_000) != nil)
        var invites = Run()
        var count = 0
        while try invites.take(.invite, body: 60_000) != nil { count += 1 }
        #expect((40...50).contains(count), "\(count)")
    }

    @Test("After a final answer only that answer counts and is kept")
    func answered() throws {
        var run = Run()
        for _ in 0..<300 { run.answer(try #require(try run.take(.invite, body: 60_000)), 486) }
        #expect(run.refused == 0)
        #expect(run.table.bytes < 300 * 3_000, "\(run.table.bytes / 300) bytes each")
        // As many usual requests as the page says.
        var usual = Run()
        while let taken = try usual.take(.options) { usual.answer(taken, 200) }
        #expect((3_000...5_000).contains(usual.count), "\(usual.count)")
    }

    @Test("Strangers leave room for those in calls, those for the server, and none of them uses up what others need")
    func shares() throws {
        var run = Run()
        let caller = Self.flow(-1, "192.0.2.50")
        run.table.callers = HostSet([try #require(SIPHost("192.0.2.50"))])
        for host in 1...254 {
            while try run.take(.options, from: Self.flow(-host, "198.51.100.\(host)"), via: 8_000) != nil {}
        }
        #expect(run.table.bytes <= Self.memory / 2)
        #expect(try run.take(.bye, from: caller) != nil)
        while try run.take(.options, from: caller, via: 8_000) != nil {}
        #expect(run.table.bytes <= Self.memory / 4 * 3)
        #expect(try run.take(.invite, body: 60_000) != nil)
        // One stranger alone, with as many requests, leaves seven eighths to the next; an address of its /64 is the same one.
        var one = Run()
        while try one.take(.options, from: Self.flow(-1, "2001:db8::1"), via: 8_000) != nil {}
        #expect(one.table.bytes <= Self.memory / 16)
        #expect(try one.take(.options, from: Self.flow(-2, "2001:db8::2"), via: 8_000) == nil)
        #expect(try one.take(.options, from: Self.flow(-3, "2001:db8:1::1"), via: 8_000) != nil)
    }

    @Test("There is room for what we send, regardless of peers' use")
    func own() throws {
        var run = Run(memory: 8_000)
        while try run.take(.options) != nil {}
        let sent = run.feed(.start(1, Sample.request(.bye), Self.server))
        #expect(sent.contains { if case .transmit = $0 { true } else { false } })
    }

    @Test("The memory that is counted is that which is used, and a table gives it back")
    func measured() async {
        // In a process of its own, because other tests use memory, too.
        await #expect(processExitsWith: .success) {
            let memory = SIPLimits.transactionMemory.lowerBound
            let requests = [(SIPMethod.options, 29_000, 0), (.options, 0, 0), (.invite, 0, 30_000)]
            // What a process needs only once is in memory after the first round.
            for (round, (method, via, body)) in (requests + requests).enumerated() {
                ProcessMemory.releaseFreeMemory()
                let before = ProcessMemory.residentBytes
                var run = Run(memory: memory)
                run.isRead = true
                var taken: [TransactionID] = []
                while let next = try run.take(method, via: via, body: body) {
                    if method == .options { run.answer(next, 200) } else { taken.append(next.1) }
                }
                let full = ProcessMemory.residentBytes - before
                print("\(method) \(via) \(body): \(full >> 10) KiB used for \(run.table.count) transactions")
                guard round >= requests.count else { continue }
                #expect(full < memory + 2 << 20, "\(method) \(via) \(body): \(full >> 10) KiB used")
                for id in taken { _ = run.feed(.respond(id, SIPResponse(486, to: Sample.request(.invite)))) }
                taken = []
                run.run(.seconds(70))
                #expect(run.table.count == 0 && run.table.bytes == 0)
                ProcessMemory.releaseFreeMemory()
                let after = ProcessMemory.residentBytes - before
                print("\(after >> 10) KiB left")
                #expect(after < 2 << 20, "\(method) \(via) \(body): \(after >> 10) KiB left")
            }
        }
    }

    @Test("A machine's memory says what transactions may take up: a sixteenth, between 8 and 64 MiB")
    func machines() {
        #expect(SIPLimits.transactionMemory(of: nil) == 8 << 20)
        #expect(SIPLimits.transactionMemory(of: 128 << 20) == 8 << 20)
        #expect(SIPLimits.transactionMemory(of: 512 << 20) == 32 << 20)
        #expect(SIPLimits.transactionMemory(of: 8 << 30) == 64 << 20)
    }
}
