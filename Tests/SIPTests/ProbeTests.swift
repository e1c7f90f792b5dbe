import SIP
import TestSupport
import Testing
import Core

@Suite("Probes of a call's peer: OPTIONS in the dialog")
struct ProbeTests {
    private let a = CallRun.a
    private let b = CallRun.b

    private func probes(_ run: CallRun, _ side: CallRun.Side = .alice) -> [Int?] {
        run.events(side, side == .alice ? a : b).compactMap {
            if case .probed(let status) = $0 { .some(status) } else { nil }
        }
    }

    @Test("RFC 3261 §11: Either side is answered with 200, and nothing of the session changes")
    func answered() throws {
        var run = CallRun()
        try run.connect()
        for side in CallRun.Side.allCases {
            let call = side == .alice ? a : b
            run.command(side, call, .probe)
            run.command(side, call, .probe)
            try run.run(.seconds(1))
            #expect(probes(run, side) == [200, 200])
            let request = try run.last(side, "OPTIONS").asRequest
            #expect(request.headers.to?.tag != nil && request.headers["Accept"]?.contains("application/sdp") == true)
        }
        run.command(.alice, a, .offer(CallRun.offer))
        try run.run(.seconds(1))
        #expect(run.events(.bob, b).last == .offered(CallRun.offer))
        run.command(.alice, a, .end(cause: nil))
        try run.expectNothingLeft()
    }

    @Test(
        "RFC 3261 §17.1.2: Over UDP a peer that vanishes has not answered after 32 s; the call ends when its owner says so"
    )
    func vanished() throws {
        var run = CallRun()
        try run.connect()
        run.losses = Array(repeating: (.alice, "OPTIONS"), count: 20) + Array(repeating: (.alice, "BYE"), count: 20)
        run.command(.alice, a, .probe)
        try run.run(.milliseconds(31_999))
        #expect(probes(run).isEmpty)
        try run.run(.milliseconds(1))
        #expect(probes(run) == [408])
        #expect(run.ends(.alice, a).isEmpty)
        #expect(run.count(.alice, "OPTIONS") == 11)
        run.command(.alice, a, .end(cause: nil))
        #expect(run.ends(.alice, a) == [.local])
        #expect(run.count(.alice, "BYE") == 1)
    }

    @Test("A peer that has forgotten the dialog says so, and the call continues until its owner ends it")
    func forgotten() throws {
        var run = CallRun()
        try run.connect()
        run.losses = Array(repeating: (.bob, "BYE"), count: 20)
        run.command(.bob, b, .end(cause: nil))
        run.command(.alice, a, .probe)
        try run.run(.seconds(1))
        #expect(probes(run) == [481])
        #expect(run.ends(.alice, a).isEmpty)
    }

    @Test("A peer that knows no OPTIONS has answered; a probe that meets a lost connection was not sent")
    func otherAnswers() throws {
        var run = CallRun(bob: { $0.screen.methods.removeAll { $0 == .options } })
        try run.connect()
        run.command(.alice, a, .probe)
        try run.run(.seconds(1))
        #expect(probes(run) == [405])
        run.failFlow(.alice)
        run.command(.alice, a, .probe)
        #expect(probes(run) == [405, nil])
        #expect(run.ends(.alice, a).isEmpty)
    }
}

extension SIPMessage {
    fileprivate var asRequest: SIPRequest {
        get throws {
            guard case .request(let request) = self else { throw TestFailure("a request") }
            return request
        }
    }
}
