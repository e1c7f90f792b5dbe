import CallBridging
import CallFlow
import CallParticipation
import Core
import TestSupport
import Testing

@Suite("Queues in which callers wait")
struct CallQueuesTests {
    private typealias Line = Timeline<CallQueues>

    private let ann = CallID(number: 1)
    private let ben = CallID(number: 2)
    private let cem = CallID(number: 3)
    private let agent = CallID(number: 11)
    private let other = CallID(number: 12)

    private func line(_ limits: CallQueues.Limits = .init()) -> Line { Line(CallQueues(limits)) }

    private func enter(_ call: CallID, _ queue: String = "q", hasMusic: Bool = false) -> CallQueues.Input {
        .enter(call, queue: queue, sid: "QU-\(queue)", hasMusic: hasMusic)
    }

    private func take(_ call: CallID, _ queue: String = "q") -> CallQueues.Input {
        .take(call, queue: queue, .flow(nil))
    }

    /// The places that are reported, as `caller:position/size`.
    private func places(_ outputs: [CallQueues.Output]) -> [String] {
        outputs.compactMap {
            if case .place(let call, let place) = $0 { "\(call.number):\(place.position)/\(place.size)" } else { nil }
        }
    }

    /// What is ordered besides places and reports.
    private func orders(_ outputs: [CallQueues.Output]) -> [CallQueues.Output] {
        outputs.filter { output in
            switch output {
            case .place, .reportEntry, .reportExit: false
            case .playMusic, .stopMusic, .called, .returned, .found, .won, .join, .part, .hangUp, .ended, .takerEnded:
                true
            }
        }
    }

    private func results(_ outputs: [CallQueues.Output]) -> [String] {
        outputs.compactMap {
            if case .reportExit(let call, _, let result, let time) = $0 {
                "\(call.number) \(result.rawValue) \(time.text)"
            } else {
                nil
            }
        }
    }

    @Test("Callers wait in the order in which they came, and each change gives all of them their places")
    func places() {
        var line = line()
        #expect(places(line.feed(enter(ann))) == ["1:1/1"])
        line.advance(by: .seconds(10), firing: .timerFired)
        #expect(places(line.feed(enter(ben))) == ["1:1/2", "2:2/2"])
        line.advance(by: .seconds(20), firing: .timerFired)
        let outputs = line.feed(enter(cem))
        guard case .place(_, let place)? = outputs.last else {
            Issue.record("no place")
            return
        }
        #expect(place.sid == "QU-q" && place.position == 3 && place.size == 3 && place.most == 100)
        // 0, 10 and 30 s: the mean is 13.3 s.
        #expect(Int(Instant.zero.duration(to: place.meanSince).milliseconds) == 13_333)
        #expect(results(line.feed(.ended(ann))) == ["1 hangup 30 s"])
        #expect(line.core.all.map(\.callers) == [[ben, cem]])
    }

    @Test(
        "A call takes the caller that has waited longest, who is joined once both are ready, and both continue behind that"
    )
    func takes() {
        var line = line()
        line.feed(enter(ann))
        line.feed(enter(ben))
        line.advance(by: .seconds(7), firing: .timerFired)
        #expect(orders(line.feed(take(agent))) == [.found(taker: agent), .called(ann, by: agent, nil, attempt: 1)])
        #expect(line.feed(.join(agent)).isEmpty)
        #expect(line.feed(.ready(ann, attempt: 1)) == [.won(taker: agent)])
        let joined = line.feed(.join(agent))
        #expect(orders(joined) == [.join(ann, taker: agent, .flow(nil))])
        #expect(results(joined) == ["1 bridged 7 s"] && places(joined) == ["2:1/1"])
        #expect(line.core.isInFlow(ann) && line.core.isInFlow(agent) && !line.core.isQueued(ann))
        line.advance(by: .seconds(5), firing: .timerFired)
        #expect(
            line.feed(.giveUp(agent, isTimeout: false)) == [
                .part(taker: agent), .ended(ann, .bridged, waited: .seconds(7)),
                .takerEnded(agent, .completed, joined: .seconds(5)),
            ])
        #expect(!line.core.isInFlow(ann) && !line.core.isTaking(agent))
    }

    @Test("Behind a join only the flow of the call continues that is still there")
    func joinEnds() {
        for (gone, expected) in [
            (ann, CallQueues.Output.takerEnded(agent, .completed, joined: .zero)),
            (agent, .ended(ann, .bridged, waited: .zero)),
        ] {
            var line = line()
            line.feed(enter(ann))
            line.feed(take(agent))
            line.feed(.ready(ann, attempt: 1))
            line.feed(.join(agent))
            #expect(line.feed(.ended(gone)) == [expected])
        }
    }

    @Test(
        "A call that gives up, or ends, before the join loses no caller: it has its place, and the next call takes it")
    func returns() {
        var line = line()
        line.feed(enter(ann, hasMusic: true))
        line.feed(enter(ben))
        #expect(
            orders(line.feed(take(agent))) == [
                .stopMusic(ann), .found(taker: agent), .called(ann, by: agent, nil, attempt: 1),
            ])
        #expect(line.feed(.ended(agent)) == [.returned(ann), .playMusic(ann)])
        #expect(line.core.all.first?.callers == [ann, ben])
        #expect(orders(line.feed(take(other))).last == .called(ann, by: other, nil, attempt: 2))
        line.feed(.ready(ann, attempt: 2))
        #expect(
            orders(line.feed(.giveUp(other, isTimeout: true))) == [
                .takerEnded(other, .noAnswer, joined: .zero), .returned(ann), .playMusic(ann),
            ])
        // A late answer of the caller's flow counts no more.
        #expect(line.feed(.ready(ann, attempt: 2)).isEmpty && line.feed(.join(other)).isEmpty)
    }

    @Test("A caller that hangs up while a call takes it gives that call the next caller, or has it wait for one")
    func callerGone() {
        var line = line()
        line.feed(enter(ann))
        line.feed(enter(ben))
        line.feed(take(agent))
        #expect(
            orders(line.feed(.ended(ann))) == [.found(taker: agent), .called(ben, by: agent, nil, attempt: 2)])
        #expect(orders(line.feed(.ended(ben))).isEmpty)
        #expect(line.core.all.isEmpty && line.core.isTaking(agent))
        #expect(orders(line.feed(enter(cem))) == [.found(taker: agent), .called(cem, by: agent, nil, attempt: 3)])
    }

    @Test("A call that is about to be joined is given back when its caller hangs up, because it does not ring any more")
    func readyCallerGone() {
        var line = line()
        line.feed(enter(ann))
        line.feed(enter(ben))
        line.feed(take(agent))
        line.feed(.ready(ann, attempt: 1))
        #expect(orders(line.feed(.ended(ann))) == [.takerEnded(agent, .noAnswer, joined: .zero)])
        #expect(orders(line.feed(.join(agent))).isEmpty)
        #expect(orders(line.feed(take(other))) == [.found(taker: other), .called(ben, by: other, nil, attempt: 2)])
    }

    @Test("Calls that find no caller wait in the order in which they came, each for its queue")
    func waitingTakers() {
        var line = line()
        #expect(line.feed(take(agent)).isEmpty && line.feed(take(other)).isEmpty)
        #expect(orders(line.feed(enter(cem, "r"))).isEmpty)
        #expect(orders(line.feed(enter(ann))) == [.found(taker: agent), .called(ann, by: agent, nil, attempt: 1)])
        #expect(
            line.feed(.giveUp(other, isTimeout: true)) == [.takerEnded(other, .noAnswer, joined: .zero)])
        #expect(orders(line.feed(enter(ben))).isEmpty)
    }

    @Test("A call that a user has chosen is joined at once, and is hung up or goes back when its caller hangs up")
    func byUser() {
        var line = line()
        #expect(line.core.next(of: "q") == nil)
        line.feed(enter(ann))
        #expect(line.core.next(of: "q") == ann)
        #expect(
            orders(line.feed(.take(agent, queue: "q", .user(goesBack: true)))) == [
                .called(ann, by: agent, nil, attempt: 1)
            ])
        #expect(orders(line.feed(.ready(ann, attempt: 1))) == [.join(ann, taker: agent, .user(goesBack: true))])
        #expect(line.core.isInFlow(ann) && !line.core.isInFlow(agent) && line.core.isTaking(agent))
        #expect(line.feed(.ended(agent)) == [.ended(ann, .bridged, waited: .zero)])
        // One whose caller leaves before the join has asked for that caller alone.
        line.feed(enter(ann))
        line.feed(enter(ben))
        line.feed(.take(agent, queue: "q", .user(goesBack: false)))
        line.feed(.leave(ann, .leave))
        #expect(!line.core.isTaking(agent) && line.core.next(of: "q") == ben)
    }

    @Test("Callers, queues and the time in them are bounded")
    func bounds() {
        var line = line(.init(callers: 2, wait: .seconds(60)))
        line.feed(enter(ann))
        line.advance(by: .seconds(1), firing: .timerFired)
        line.feed(enter(ben))
        #expect(line.feed(enter(cem)) == [.ended(cem, .queueFull, waited: .zero)])
        line.advance(by: .seconds(59), firing: .timerFired)
        #expect(results(line.outputs) == ["1 timeout 60 s"])
        #expect(line.outputs.contains(.ended(ann, .timeout, waited: .seconds(60))))
        for number in 0..<UInt64(CallQueues.mostQueues - 1) {
            #expect(!line.feed(enter(CallID(number: 100 + number), "q\(number)")).isEmpty)
        }
        #expect(line.feed(enter(cem, "one-more")) == [.ended(cem, .queueFull, waited: .zero)])
    }

    @Test("Leave and a user end the waiting, with their results")
    func leaves() {
        var line = line()
        line.feed(enter(ann, hasMusic: true))
        #expect(
            orders(line.feed(.leave(ann, .redirected))) == [
                .stopMusic(ann), .ended(ann, .redirected, waited: .zero),
            ])
        #expect(line.feed(.leave(ann, .leave)).isEmpty)
    }

    @Test(
        "A device that takes no calls ends the waiting on both sides, lets joins come about, and takes no further callers"
    )
    func closes() {
        var line = line()
        line.feed(enter(ann))
        line.feed(enter(ben))
        line.feed(take(agent))
        line.feed(.take(other, queue: "r", .flow(nil)))
        #expect(
            orders(line.feed(.close(true))) == [
                .takerEnded(other, .failed, joined: .zero), .ended(ben, .systemError, waited: .zero),
            ])
        #expect(line.feed(enter(cem)) == [.ended(cem, .systemError, waited: .zero)])
        #expect(line.feed(take(other)) == [.takerEnded(other, .failed, joined: .zero)])
        #expect(line.feed(.ready(ann, attempt: 1)) == [.won(taker: agent)])
        #expect(
            orders(line.feed(.giveUp(agent, isTimeout: false))) == [
                .takerEnded(agent, .canceled, joined: .zero), .ended(ann, .systemError, waited: .zero),
            ])
        line.feed(.close(false))
        #expect(places(line.feed(enter(cem))) == ["3:1/1"])
    }

    @Test("A call that takes the place of one that is joined has its end")
    func replaced() {
        var line = line()
        line.feed(enter(ann))
        line.feed(take(agent))
        line.feed(.ready(ann, attempt: 1))
        line.feed(.join(agent))
        line.feed(.replaced(agent, by: other))
        #expect(line.feed(.ended(agent)).isEmpty)
        #expect(line.feed(.ended(other)) == [.ended(ann, .bridged, waited: .zero)])
    }

    @Test(
        "The call in a caller's place is hung up when the call that has taken it leaves: it has no flow to go back to")
    func replacedCaller() {
        var line = line()
        line.feed(enter(ann))
        line.feed(take(agent))
        line.feed(.ready(ann, attempt: 1))
        line.feed(.join(agent))
        line.feed(.replaced(ann, by: ben))
        #expect(line.feed(.ended(ann)).isEmpty)
        line.advance(by: .seconds(5), firing: .timerFired)
        #expect(
            line.feed(.giveUp(agent, isTimeout: false)) == [
                .part(taker: agent), .hangUp(ben), .takerEnded(agent, .completed, joined: .seconds(5)),
            ])
        #expect(!line.core.isTaking(agent) && !line.core.isInFlow(ben))
        #expect(line.feed(.ended(ben)).isEmpty)
    }

    @Test(
        "A caller that was ready for a call that has given up is not joined to the next before it has heard that one's document"
    )
    func lateReadiness() throws {
        var line = line()
        let whisper = FlowWhisper(.file(try FlowFileName("hello.xml")))
        line.feed(enter(ann))
        line.feed(take(agent))
        line.feed(.take(other, queue: "q", .flow(whisper)))
        let next = line.feed(.giveUp(agent, isTimeout: false))
        #expect(
            next == [
                .takerEnded(agent, .canceled, joined: .zero), .returned(ann), .found(taker: other),
                .called(ann, by: other, whisper, attempt: 2),
            ])
        #expect(line.feed(.ready(ann, attempt: 1)).isEmpty)
        #expect(line.feed(.ready(ann, attempt: 2)) == [.won(taker: other)])
        // Nor to the same call, when that takes it again.
        line.feed(.giveUp(other, isTimeout: false))
        line.feed(take(other))
        #expect(line.feed(.ready(ann, attempt: 2)).isEmpty)
    }

    @Test(
        "Callers that leave together are not given the places of each other, and those who stay are given theirs once")
    func placesAtOnce() {
        let many = (UInt64(100)..<200).map { CallID(number: $0) }
        var line = line(.init(callers: 101, wait: .seconds(60)))
        line.feed(take(agent))
        for call in [ann] + many { line.feed(enter(call)) }
        let closed = line.feed(.close(true))
        #expect(places(closed) == ["1:1/1"])
        #expect(results(closed).count == 100 && closed.count == 201)
        // The same for those whose time is up.
        line = self.line(.init(callers: 101, wait: .seconds(60)))
        for call in many { line.feed(enter(call)) }
        line.advance(by: .seconds(1), firing: .timerFired)
        line.feed(enter(ann))
        let before = line.outputs.count
        line.advance(by: .seconds(59), firing: .timerFired)
        #expect(places(Array(line.outputs[before...])) == ["1:1/1"])
    }

    @Test("In 2,000 random steps no caller is in two places, and each that was entered leaves once")
    func random() {
        for seed in UInt64(0)..<20 {
            var random = SeededGenerator(seed: seed)
            var line = line(.init(callers: 5, wait: .seconds(30)))
            var entered: Set<CallID> = []
            var attempts: [CallID: Int] = [:]
            let calls = (1...8).map { CallID(number: $0) }
            let agents = (11...14).map { CallID(number: $0) }
            func check(_ outputs: [CallQueues.Output]) {
                for output in outputs {
                    switch output {
                    case .reportEntry(let call, _, _): #expect(entered.insert(call).inserted)
                    case .reportExit(let call, _, _, _): #expect(entered.remove(call) != nil)
                    case .join(let call, let taker, _): #expect(calls.contains(call) && agents.contains(taker))
                    case .called(let call, _, _, let attempt): attempts[call] = attempt
                    case .place, .playMusic, .stopMusic, .returned, .found, .won, .part, .hangUp, .ended, .takerEnded:
                        break
                    }
                }
                let listed = line.core.all.flatMap(\.callers)
                #expect(Set(listed).count == listed.count && Set(listed) == entered)
            }
            for _ in 0..<2_000 {
                let call = calls[Int.random(in: 0..<calls.count, using: &random)]
                let agent = agents[Int.random(in: 0..<agents.count, using: &random)]
                let queue = Bool.random(using: &random) ? "q" : "r"
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1: check(line.feed(enter(call, queue, hasMusic: Bool.random(using: &random))))
                case 2: check(line.feed(take(agent, queue)))
                case 3: check(line.feed(.take(agent, queue: queue, .user(goesBack: Bool.random(using: &random)))))
                case 4: check(line.feed(.ready(call, attempt: attempts[call] ?? 0)))
                case 5: check(line.feed(.join(agent)))
                case 6: check(line.feed(.giveUp(agent, isTimeout: Bool.random(using: &random))))
                case 7: check(line.feed(.ended(Bool.random(using: &random) ? call : agent)))
                case 8: check(line.feed(.leave(call, .leave)))
                default:
                    let before = line.outputs.count
                    line.advance(by: .seconds(1), firing: .timerFired)
                    check(Array(line.outputs[before...]))
                }
            }
            for call in calls { check(line.feed(.ended(call))) }
            #expect(entered.isEmpty && line.core.nextDeadline == nil)
        }
    }
}
