import CallAgent
import CallControl
import JSON
import TestSupport
import Testing

@Suite(
    "Invites that are no calls, on an exchange with real sockets", .witnessed(slack: .milliseconds(300)),
    .timeLimit(.minutes(5)))
struct InviteTests {
    private func invited(_ device: Handheld) async throws -> IncomingInvite {
        while let event = await device.next() {
            if case .invited(let invite) = event { return invite }
        }
        throw StreamEnded()
    }

    private func news(_ device: Handheld) async throws -> InviteEvent {
        while let event = await device.next() {
            if case .invite(let news) = event { return news }
        }
        throw StreamEnded()
    }

    @Test(
        "INV-1, INV-2, INV-3: An invite reaches the invitee with its data, and the inviter hears the answer and the end"
    )
    func accepted() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo@localhost", data: ["what": "lunch"])
        let received = try await invited(echo)
        #expect(received.id == invite.id && received.asksUs)
        #expect(received.received.data == ["what": "lunch"])
        #expect(received.received.inviter == "caller")
        try await received.accept(data: ["at": "noon"])
        guard case .accepted(let answer) = try await news(caller) else {
            Issue.record("it was not accepted")
            return
        }
        #expect(answer.invitee == "echo" && answer.data == ["at": "noon"])
        #expect(try await news(caller) == .finished(invite.id, .done))
        try await site.close(caller, echo)
    }

    @Test("INV-3, INV-10: A rejected invite is over, and a second answer is an error")
    func rejected() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        _ = try await caller.device.invites.send("echo")
        let received = try await invited(echo)
        try await received.reject(.busy)
        guard case .rejected(let answer) = try await news(caller) else {
            Issue.record("it was not rejected")
            return
        }
        #expect(answer.rejection?.reason == .busy)
        await #expect(throws: SignalingError.self) { try await received.accept() }
        try await site.close(caller, echo)
    }

    @Test(
        "INV-6: A cancelled invite is withdrawn at the invitee, finished at the inviter, and cannot be cancelled again")
    func cancelled() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo")
        let received = try await invited(echo)
        try await invite.cancel()
        #expect(try await news(echo) == .withdrawn(received.id, .cancelled))
        #expect(try await news(caller) == .finished(invite.id, .cancelled))
        do throws(SignalingError) {
            try await invite.cancel()
            Issue.record("it was cancelled twice")
        } catch {
            #expect(error.code == .inviteEnded)
        }
        try await site.close(caller, echo)
    }

    @Test(
        "INV-4, INV-17: The answering device hears nothing of its own answer, and the user's other device hears of it")
    func elsewhere() async throws {
        let site = try await Site()
        let desk = try await site.device("echo", named: "desk")
        let kitchen = try await site.device("echo", named: "kitchen")
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo")
        let atDesk = try await invited(desk)
        _ = try await invited(kitchen)
        try await atDesk.accept()
        #expect(try await news(kitchen) == .withdrawn(invite.id, .handledElsewhere(.accepted)))
        // What comes next at the desk is the next invite.
        _ = try await caller.device.invites.send("echo", data: ["n": 2])
        #expect(try await invited(desk).received.data == ["n": 2])
        try await site.close(caller, desk, kitchen)
    }

    @Test(
        "INV-7, INV-8: An invite nobody answers times out once on each side, whoever of service and device is first",
        arguments: InviteConfiguration.Timekeeper.allCases)
    func timedOut(timekeeper: InviteConfiguration.Timekeeper) async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk") { $0.invites.timekeeper = timekeeper }
        let caller = try await site.device("caller", named: "mobile") { $0.invites.timekeeper = timekeeper }
        let invite = try await caller.device.invites.send("echo", timeToLive: .milliseconds(300))
        #expect(try await news(echo) == .withdrawn(invite.id, .timedOut))
        #expect(try await news(caller) == .timedOut(invite.id, ["echo"]))
        #expect(try await news(caller) == .finished(invite.id, .done))
        // Nothing more is told of it: what comes next is about the next invite.
        let next = try await caller.device.invites.send("echo", timeToLive: .seconds(30))
        try await next.cancel()
        #expect(try await news(echo) == .withdrawn(next.id, .cancelled))
        #expect(try await news(caller) == .finished(next.id, .cancelled))
        try await site.close(caller, echo)
    }

    @Test(
        "INV-9, INV-12: A device that answers calls rejects an invite that is no call as unanswered, whatever its ttl")
    func nobodyDecides() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk") {
            $0.answer = AnswerPolicy(manner: .answer(after: .zero), ringLimit: .milliseconds(300))
        }
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo", timeToLive: .some(nil))
        _ = try await invited(echo)
        guard case .rejected(let answer) = try await news(caller) else {
            Issue.record("it was not rejected")
            return
        }
        #expect(answer.rejection?.reason == .noAnswer)
        #expect(try await news(caller) == .finished(invite.id, .done))
        #expect(try await news(echo) == .withdrawn(invite.id, .rejected(.noAnswer)))
        try await site.close(caller, echo)
    }

    @Test("INV-9: A device that rings until somebody decides leaves invites that are no calls to its program")
    func programDecides() {
        let limit = Duration.milliseconds(300)
        #expect(AnswerPolicy(manner: .answer(after: .zero), ringLimit: limit).inviteLimit == limit)
        #expect(AnswerPolicy(manner: .ring, ringLimit: limit).inviteLimit == nil)
        var policy = AnswerPolicy(manner: .reject, ringLimit: limit)
        #expect(policy.inviteLimit == nil)
        policy.isUnattended = true
        #expect(policy.inviteLimit == limit)
    }

    @Test("INV-12: Many invites stand at once, and each is answered by itself")
    func many() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        var names: Set<InviteID> = []
        for _ in 0..<8 { names.insert(try await caller.device.invites.send("echo").id) }
        var received: [IncomingInvite] = []
        while received.count < 8 { received.append(try await invited(echo)) }
        for invite in received.reversed() { try await invite.accept() }
        var accepted: Set<InviteID> = []
        while accepted.count < 8 {
            if case .accepted(let answer) = try await news(caller) { accepted.insert(answer.invite) }
        }
        #expect(accepted == names)
        try await site.close(caller, echo)
    }
}
