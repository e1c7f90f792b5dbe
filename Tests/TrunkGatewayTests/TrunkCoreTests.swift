import CallControl
import Core
import TestSupport
import Testing

@testable import TrunkGateway

/// A trunk by which 200 calls alice, and numbers that begin with 0 are dialled with +49 in its place.
private struct TrunkRun {
    var core: TrunkCore
    var outputs: [TrunkCore.Output] = []
    var reports: [TrunkReport] = []
    var now = Instant.zero

    init(limit: Int = 10) {
        var routes = TrunkRoutes()
        for (pattern, user) in [("200", "alice"), ("3?", "bob")] as [(String, UserID)] {
            if let pattern = NumberPattern(pattern) { routes.users.add(pattern, user) }
        }
        var rewriting = TrunkRoutes.Rewriting()
        (rewriting.strip, rewriting.prepend) = (1, "+49")
        if let pattern = NumberPattern("0*") { routes.rewritings.add(pattern, rewriting) }
        core = TrunkCore(routes: routes, limit: limit)
    }

    mutating func feed(_ input: TrunkCore.Input) -> [TrunkCore.Output] {
        var outbox: [TrunkCore.Output] = []
        core.handle(input, at: now, into: &outbox)
        for case .report(let report) in outbox { reports.append(report) }
        outbox.removeAll { if case .report = $0 { true } else { false } }
        outputs += outbox
        return outbox
    }
}

@Suite("Calls of a trunk") struct TrunkCoreTests {
    private let inside = TrunkLeg(.exchange, 1)
    private let outside = TrunkLeg(.network, 1)

    @Test("A user of the exchange calls a telephone: answered when that is, joined when both flow, ended together")
    func goesOut() {
        var run = TrunkRun()
        #expect(
            run.feed(.incoming(inside, TrunkCall(dialled: "0301234")))
                == [.place(for: inside, "+49301234", TrunkCall())])
        #expect(run.feed(.placed(outside, for: inside)).isEmpty)
        #expect(run.feed(.answered(outside)) == [.answer(inside)])
        #expect(run.feed(.answered(inside)).isEmpty)
        #expect(run.feed(.established(outside)).isEmpty)
        #expect(run.feed(.digit(outside, "1")).isEmpty)
        #expect(run.feed(.established(inside)) == [.join(inside, outside)])
        #expect(run.feed(.digit(outside, "1")) == [.press("1", inside)])
        #expect(run.feed(.digit(inside, "#")) == [.press("#", outside)])
        #expect(run.feed(.ended(inside, .completed)) == [.hangUp(outside)])
        #expect(run.feed(.ended(outside, .completed)).isEmpty)
        #expect(run.core.count == 0)
    }

    @Test("A telephone calls a user of the exchange, who learns the caller and nothing else")
    func comesIn() {
        var run = TrunkRun()
        let said = TrunkCall(dialled: "200", caller: "+4930", name: "Boss")
        #expect(
            run.feed(.incoming(outside, said))
                == [.place(for: outside, "alice", TrunkCall(caller: "+4930", name: "Boss"))])
        _ = run.feed(.placed(inside, for: outside))
        #expect(run.feed(.answered(inside)) == [.answer(outside)])
        _ = run.feed(.established(inside))
        #expect(run.feed(.established(outside)) == [.join(outside, inside)])
        #expect(run.feed(.ended(inside, .completed)) == [.hangUp(outside)])
    }

    @Test("Numbers without a route, and those that the exchange does not allow, are declined")
    func closed() {
        var run = TrunkRun()
        for dialled in ["201", "alice", "+200", "2000", "3", "", "301"] {
            #expect(run.feed(.incoming(outside, TrunkCall(dialled: dialled))) == [.reject(outside, .declined)])
        }
        // Who calls the trunk's account at the exchange without a number has not been looked at.
        for said in [nil, TrunkCall(), TrunkCall(dialled: "alice"), TrunkCall(dialled: "sip:1@evil.example")] {
            #expect(run.feed(.incoming(inside, said)) == [.reject(inside, .declined)])
        }
        #expect(run.core.count == 0)
    }

    @Test(
        "A caller learns why its call was not taken",
        arguments: [
            (CallEndReason.busy, RejectReason.busy), (.declined, .declined), (.noAnswer, .noAnswer),
            (.dialFailed, .failed), (.disconnected, .failed), (.connectionLost, .failed),
        ])
    func refused(reason: CallEndReason, told: RejectReason) {
        var run = TrunkRun()
        _ = run.feed(.incoming(inside, TrunkCall(dialled: "112")))
        _ = run.feed(.placed(outside, for: inside))
        #expect(run.feed(.ended(outside, reason)) == [.reject(inside, told)])
        #expect(run.feed(.ended(inside, .declined)).isEmpty)
        #expect(run.core.count == 0)
    }

    @Test(
        "A caller learns that there is no such number, or that it cannot be reached now, and nothing of the trunk's own media",
        arguments: [
            (CallFailureCause.noSuchNumber, CallFailureCause.noSuchNumber), (.notReachable, .notReachable),
            (.noCommonCodec, nil), (.deviceFault, nil),
        ] as [(CallFailureCause, CallFailureCause?)])
    func causes(cause: CallFailureCause, told: CallFailureCause?) {
        var run = TrunkRun()
        _ = run.feed(.incoming(inside, TrunkCall(dialled: "112")))
        _ = run.feed(.placed(outside, for: inside))
        #expect(run.feed(.ended(outside, .dialFailed, cause)) == [.reject(inside, .failed, told)])
    }

    @Test("A caller gives up: while the other half rings, and while it is being placed")
    func givenUp() {
        var run = TrunkRun(limit: 1)
        _ = run.feed(.incoming(inside, TrunkCall(dialled: "112")))
        _ = run.feed(.placed(outside, for: inside))
        #expect(run.feed(.ended(inside, .cancelled)) == [.hangUp(outside)])
        _ = run.feed(.ended(outside, .cancelled))
        let second = TrunkLeg(.exchange, 2)
        _ = run.feed(.incoming(second, TrunkCall(dialled: "112")))
        #expect(run.feed(.ended(second, .cancelled)).isEmpty)
        // It still counts.
        let third = TrunkLeg(.exchange, 3)
        #expect(run.feed(.incoming(third, TrunkCall(dialled: "112"))) == [.reject(third, .busy)])
        #expect(run.feed(.placed(TrunkLeg(.network, 2), for: second)) == [.hangUp(TrunkLeg(.network, 2))])
        #expect(run.feed(.incoming(third, TrunkCall(dialled: "112"))).count == 1)
    }

    @Test("A telephone that answers and hangs up before its caller learns it ends the caller's call")
    func goneAtOnce() {
        var run = TrunkRun()
        _ = run.feed(.incoming(inside, TrunkCall(dialled: "112")))
        _ = run.feed(.placed(outside, for: inside))
        _ = run.feed(.answered(outside))
        #expect(run.feed(.ended(outside, .completed)) == [.hangUp(inside)])
        #expect(run.feed(.established(inside)).isEmpty)
    }

    @Test("One call more than there may be is busy, in both directions together")
    func full() {
        var run = TrunkRun(limit: 2)
        _ = run.feed(.incoming(inside, TrunkCall(dialled: "112")))
        _ = run.feed(.incoming(outside, TrunkCall(dialled: "200")))
        let more = TrunkLeg(.network, 9)
        #expect(run.feed(.incoming(more, TrunkCall(dialled: "200"))) == [.reject(more, .busy)])
        _ = run.feed(.placed(TrunkLeg(.network, 2), for: inside))
        _ = run.feed(.ended(TrunkLeg(.network, 2), .busy))
        #expect(run.feed(.incoming(more, TrunkCall(dialled: "200"))).count == 1)
    }

    @Test(
        "A call that has ended makes room at once, and its end is still reported to its other half",
        arguments: [false, true])
    func over(otherHalf: Bool) {
        var run = TrunkRun(limit: 1)
        let next = TrunkLeg(.exchange, 2)
        _ = run.feed(.incoming(inside, TrunkCall(dialled: "112")))
        // While the other half is being placed, there is one.
        _ = run.feed(.over(inside))
        #expect(run.core.isFull)
        _ = run.feed(.placed(outside, for: inside))
        #expect(run.feed(.incoming(next, TrunkCall(dialled: "112"))) == [.reject(next, .busy)])
        #expect(run.feed(.over(otherHalf ? outside : inside)).isEmpty && !run.core.isFull)
        #expect(run.feed(.incoming(next, TrunkCall(dialled: "112"))).count == 1 && run.core.isFull)
        if otherHalf {
            #expect(run.feed(.ended(outside, .busy)) == [.reject(inside, .busy)])
        } else {
            #expect(run.feed(.ended(inside, .cancelled)) == [.hangUp(outside)])
        }
        #expect(run.core.count == 1 && run.core.isFull)
    }

    /// Plays both devices: a leg that the core has seen begin lives until it is told to end, or ends by itself.
    @Test("For any inputs in any order, no call is left without its other half", arguments: 0..<200)
    func random(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var run = TrunkRun(limit: 4)
        var alive: Set<TrunkLeg> = []
        var answered: Set<TrunkLeg> = []
        var placing: [TrunkLeg] = []
        var joined: [TrunkLeg: TrunkLeg] = [:]
        var halves: [TrunkLeg: TrunkLeg] = [:]
        var number: UInt64 = 0
        func take(_ outputs: [TrunkCore.Output]) {
            for output in outputs {
                switch output {
                case .place(let origin, _, _): placing.append(origin)
                case .answer(let leg): answered.insert(leg)
                case .reject(let leg, _, _):
                    #expect(!answered.contains(leg))
                    alive.remove(leg)
                case .hangUp(let leg): alive.remove(leg)
                case .join(let one, let other):
                    #expect(alive.contains(one) && alive.contains(other) && joined[one] == nil)
                    #expect(halves[one] == other || halves[other] == one)
                    (joined[one], joined[other]) = (other, one)
                case .press(_, let leg): #expect(joined[leg] != nil)
                case .report: break
                }
            }
        }
        for step in 0..<400 {
            let isEnding = step >= 300
            let leg = alive.sorted { ($0.side.rawValue, $0.number) < ($1.side.rawValue, $1.number) }
                .randomElement(using: &generator)
            switch Int.random(in: 0..<9, using: &generator) {
            case 0, 1:
                guard !isEnding else { continue }
                number += 1
                let new = TrunkLeg(Bool.random(using: &generator) ? .exchange : .network, number)
                alive.insert(new)
                take(run.feed(.incoming(new, TrunkCall(dialled: "200"))))
            case 2, 3:
                guard !placing.isEmpty else { continue }
                let origin = placing.removeFirst()
                number += 1
                let target = TrunkLeg(origin.side.other, number)
                alive.insert(target)
                halves[origin] = target
                take(run.feed(.placed(target, for: origin)))
            case 4: if let leg, halves.values.contains(leg) { take(run.feed(.answered(leg))) }
            case 5: if let leg { take(run.feed(.established(leg))) }
            case 6: if let leg { take(run.feed(.digit(leg, "5"))) }
            case 7: if let leg { take(run.feed(.over(leg))) }
            default:
                guard let leg else { continue }
                alive.remove(leg)
                take(run.feed(.ended(leg, .completed)))
            }
        }
        while !placing.isEmpty {
            let origin = placing.removeFirst()
            number += 1
            let target = TrunkLeg(origin.side.other, number)
            alive.insert(target)
            halves[origin] = target
            take(run.feed(.placed(target, for: origin)))
        }
        // What lives has its other half, which lives, too.
        for (origin, target) in halves { #expect(alive.contains(origin) == alive.contains(target)) }
        #expect(run.core.count * 2 == alive.count)
    }
}

@Suite("What a trunk reports to its operator") struct TrunkReportTests {
    private let outside = TrunkLeg(.network, 1)
    private let inside = TrunkLeg(.exchange, 2)

    /// A call from the network to alice, of whom both hear each other after 3 s.
    private func talking() -> TrunkRun {
        var run = TrunkRun(limit: 1)
        let call = TrunkCall(dialled: "200", caller: "+49301234", name: "Ann")
        _ = run.feed(.incoming(outside, call, from: "anonymous"))
        run.now = Instant.zero.advanced(by: .seconds(1))
        _ = run.feed(.placed(inside, for: outside))
        _ = run.feed(.answered(inside))
        run.now = Instant.zero.advanced(by: .seconds(3))
        _ = run.feed(.established(inside))
        _ = run.feed(.established(outside))
        return run
    }

    @Test("A call is listed with its parties, its state and its times, and its course is reported in order")
    func course() throws {
        var run = talking()
        let now = Instant.zero.advanced(by: .seconds(10))
        let call = try #require(run.core.calls(at: now).first)
        #expect(call.number == 1 && call.origin == outside && call.target == inside)
        #expect(call.parties.from == "+49301234" && call.parties.name == "Ann" && call.parties.to == "alice")
        #expect(call.progress == .talking && call.age == .seconds(10) && call.talk == .seconds(7))
        run.now = now
        _ = run.feed(.ended(inside, .completed))
        let end = TrunkCallEnd(reason: .completed, endedBy: .exchange, talk: .seconds(7))
        #expect(
            run.reports == [
                .began(1, .network, call.parties), .answered(1), .joined(1), .ended(1, .network, end),
            ])
        #expect(run.core.calls(at: now).isEmpty)
        #expect(run.core.counters.calls == 1 && run.core.counters.answered == 1)
    }

    @Test("A call that is refused is reported and counted with the reason")
    func refusals() {
        var run = talking()
        run.reports = []
        #expect(run.feed(.incoming(TrunkLeg(.network, 3), nil)) == [.reject(TrunkLeg(.network, 3), .declined)])
        _ = run.feed(.incoming(TrunkLeg(.network, 4), TrunkCall(dialled: "999"), from: "bob"))
        _ = run.feed(.incoming(TrunkLeg(.network, 5), TrunkCall(dialled: "200"), from: "bob"))
        _ = run.feed(.drain(true))
        #expect(
            run.feed(.incoming(TrunkLeg(.network, 6), TrunkCall(dialled: "200"), from: "bob"))
                == [.reject(TrunkLeg(.network, 6), .busy)])
        #expect(run.feed(.drain(true)).isEmpty)
        #expect(
            run.reports == [
                .refused(.network, from: "", dialled: nil, .notAllowed),
                .refused(.network, from: "bob", dialled: "999", .noRoute),
                .refused(.network, from: "bob", dialled: "200", .full), .draining(true),
                .refused(.network, from: "bob", dialled: "200", .draining),
            ])
        #expect(run.core.counters.refused == [.notAllowed: 1, .noRoute: 1, .full: 1, .draining: 1])
        #expect(run.core.counters.calls == 1)
        _ = run.feed(.drain(false))
        _ = run.feed(.ended(outside, .completed))
        #expect(!run.feed(.incoming(TrunkLeg(.network, 7), TrunkCall(dialled: "200"))).isEmpty)
        #expect(run.core.calls(at: .zero).map(\.number) == [2], "a trunk that is no longer drained takes calls")
    }

    @Test("The operator ends a call at any moment, and it is reported as the operator's")
    func operatorEnds() {
        var run = talking()
        #expect(run.feed(.hangUp(7)).isEmpty)
        #expect(run.feed(.hangUp(1)) == [.hangUp(outside)])
        #expect(run.core.calls(at: run.now).first?.progress == .ending)
        #expect(run.feed(.ended(outside, .completed)) == [.hangUp(inside)])
        _ = run.feed(.ended(inside, .completed))
        #expect(run.reports.last == .ended(1, .network, TrunkCallEnd(reason: .completed, endedBy: nil, talk: .zero)))
        #expect(run.feed(.hangUp(1)).isEmpty)

        // While the other half is being placed: that half is hung up as soon as it has a name.
        _ = run.feed(.incoming(TrunkLeg(.network, 8), TrunkCall(dialled: "200")))
        #expect(run.feed(.hangUp(2)) == [.hangUp(TrunkLeg(.network, 8))])
        #expect(run.feed(.ended(TrunkLeg(.network, 8), .declined)).isEmpty)
        #expect(
            run.feed(.placed(TrunkLeg(.exchange, 9), for: TrunkLeg(.network, 8))) == [.hangUp(TrunkLeg(.exchange, 9))])
        #expect(run.reports.last == .ended(2, .network, TrunkCallEnd(reason: .declined, endedBy: nil, talk: nil)))
    }
}

@Suite struct BridgeQueuePolicyTests {
    @Test("The first frame follows 40 ms of silence, and so does the first after a gap")
    func start() {
        var policy = BridgeQueuePolicy(rate: 48_000)
        #expect(policy.decide(frame: 960, waiting: 0) == .send(after: 1_920))
        #expect(policy.decide(frame: 960, waiting: 1_920) == .send(after: 0))
        #expect(policy.decide(frame: 960, waiting: 0) == .send(after: 1_920))
    }

    @Test("However late this process is at times, no more than 120 ms wait, and sound is left out only after that")
    func bounded() {
        var generator = SeededGenerator(seed: 3)
        var policy = BridgeQueuePolicy(rate: 48_000)
        var (waiting, late, gaps) = (0, 0, 0)
        for period in 0..<100 {
            let sleep = Int.random(in: 0...15, using: &generator)
            for tick in 0..<200 {
                // The other half sends a frame each 20 ms, of silence if there is none.
                if waiting < 960, period + tick > 0 { gaps += 1 }
                waiting = max(0, waiting - 960)
                late += 1
                guard tick >= sleep else { continue }
                let before = policy.dropped
                while late > 0 {
                    late -= 1
                    if case .send(let silence) = policy.decide(frame: 960, waiting: waiting) {
                        waiting += silence + 960
                    }
                }
                #expect(waiting >= 960 && waiting <= 5_760)
                #expect(tick == sleep || policy.dropped == before)
            }
        }
        #expect(gaps < 100 * 15 && policy.dropped < 100 * 15 && policy.dropped > 0)
    }
}
