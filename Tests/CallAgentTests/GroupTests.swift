import ExchangeServer
import CallAgent
import CallControl
import ExchangeCore
import JSON
import CallMedia
import MediaEngine
import TestSupport
import Testing

@Suite("Groups, rooms and moving, on an exchange with real sockets", .timeLimit(.minutes(5)))
struct GroupTests {
    private func first<Value>(_ device: Handheld, _ pick: (DeviceEvent) -> Value?) async throws -> Value {
        while let event = await device.next() {
            if let value = pick(event) { return value }
        }
        throw StreamEnded()
    }

    private func invited(_ device: Handheld) async throws -> IncomingInvite {
        try await first(device) { if case .invited(let invite) = $0 { invite } else { nil } }
    }

    private func accepted(_ device: Handheld) async throws -> InviteAnswer {
        try await first(device) { if case .invite(.accepted(let answer)) = $0 { answer } else { nil } }
    }

    @Test(
        "GRP-1, GRP-2, GRP-3: A group raises hands by one invite, everybody hears who did, and a second asks one to speak"
    )
    func handRaising() async throws {
        let site = try await Site(users: ["teacher", "ann", "ben"])
        let teacher = try await site.device("teacher", named: "t")
        let ann = try await site.device("ann", named: "a")
        let ben = try await site.device("ben", named: "b")
        let group = try await teacher.device.groups.create(name: "Class", members: ["ann", "ben"])
        #expect(Set(try await ann.device.groups.group(group).members) == ["teacher", "ann", "ben"])
        #expect(try await ben.device.groups.all().map(\.id) == [group])
        let change = try await first(ann) {
            if case .signaling(.groupChanged(let change)) = $0 { change } else { nil }
        }
        #expect(change.group == group && change.kind == .created)

        let hands = try await teacher.device.invites.send(["ann", "ben"], in: group, data: ["do": "raise"])
        let atAnn = try await invited(ann)
        #expect(try await invited(ben).received.group == group)
        #expect(atAnn.id == hands.id && atAnn.received.data == ["do": "raise"])
        try await atAnn.accept()
        #expect(try await accepted(teacher).invitee == "ann")
        #expect(try await accepted(ben).invitee == "ann", "every member hears each answer")

        let floor = try await teacher.device.invites.send(["ann"], in: group, data: ["do": "speak"])
        let asked = try await invited(ann)
        #expect(asked.id == floor.id && asked.asksUs)
        let overheard = try await invited(ben)
        #expect(overheard.id == floor.id && !overheard.asksUs)
        try await asked.accept()
        #expect(try await accepted(teacher).invite == floor.id)
        try await teacher.device.groups.dismiss(group)
        #expect(try await ann.device.groups.all().isEmpty)
        try await site.close(teacher, ann, ben)
    }

    @Test(
        "CALL-6, CONN-12: Devices asked to move in a call connect again, nobody hears of a drop, and the call goes on"
    )
    func moveInCall() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk", answer: AnswerPolicy(manner: .answer(after: .zero)))
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        _ = try await caller.flowing()
        _ = try await echo.flowing()
        let sessions = await site.exchange.counters().sessions
        site.exchange.requestMoves(within: .seconds(10))
        try await until { await site.exchange.counters().sessions >= sessions + 2 }
        #expect(await site.exchange.counters().openCalls == 1)
        // What one says to the other passes on the new connections, and nothing was told of the change.
        for (number, devices) in [(caller, echo), (echo, caller)].enumerated() {
            try await devices.0.device.signal("move", data: .integer(Int64(number)), on: call)
            var told: [SignalingEvent] = []
            while true {
                let event = try await first(devices.1) { if case .signaling(let event) = $0 { event } else { nil } }
                if case .callSignal = event { break }
                told.append(event)
            }
            let names = told.map { "\($0)".prefix { $0 != "(" } }.filter { $0 != "connected" }
            #expect(names == ["moveRequested"])
        }
        // Media that came after the move shows that the call was left alone.
        let before = try #require(await caller.device.mediaReport(on: call)).peer.packetsReceived
        try await until { try #require(await caller.device.mediaReport(on: call)).peer.packetsReceived > before }
        await caller.device.hangUp(call)
        let (mine, theirs) = (try await caller.ended(), try await echo.ended())
        #expect(mine.record.reason == .completed && theirs.record.reason == .completed)
        #expect(theirs.record.endedBy == .remote)
        try await site.close(caller, echo)
    }

    @Test(
        "INV-3, GRP-2: Of several who are called in a group the first to accept gets the call, and the rest are let go")
    func callingSeveral() async throws {
        let site = try await Site(users: ["caller", "ann", "ben", "cy"])
        let caller = try await site.device("caller", named: "c")
        let ann = try await site.device("ann", named: "a")
        let ben = try await site.device("ben", named: "b")
        let cy = try await site.device("cy", named: "y")
        let group = try await caller.device.groups.create(members: ["ann", "ben", "cy"])
        let call = await caller.device.call(
            ["ann", "ben"], in: group, audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        let atBen = try await ben.incoming()
        let atAnn = try await ann.incoming()
        // Who is in the group and not asked hears of it, and does not ring.
        #expect(try await !invited(cy).asksUs)
        await ben.device.answer(atBen)
        _ = try await caller.flowing()
        _ = try await ben.flowing()
        await ann.device.answer(atAnn)  // Too late, or just about: either way there is no call.
        let missed = try await ann.ended().record
        #expect(missed.duration == .zero && missed.reason != .completed)
        await caller.device.hangUp(call)
        let (mine, theirs) = (try await caller.ended().record, try await ben.ended().record)
        #expect(mine.reason == .completed && mine.peer == "ben" && theirs.reason == .completed)
        try await until { await site.exchange.counters().openCalls == 0 }
        try await site.close(caller, ann, ben, cy)
    }

    @Test("INV-3, SIG-1: Each of several who accept an invite is spoken to by name, and leaves by itself")
    func severalAccept() async throws {
        let site = try await Site(users: ["host", "ann", "ben"])
        let host = try await site.device("host", named: "h")
        let ann = try await site.device("ann", named: "a")
        let ben = try await site.device("ben", named: "b")
        let meeting = try await host.device.invites.send(["ann", "ben"], data: ["what": "meeting"])
        let atAnn = try await invited(ann)
        let atBen = try await invited(ben)
        try await atAnn.accept()
        try await atBen.accept()
        let accepted = [try await accepted(host).invitee, try await self.accepted(host).invitee]
        #expect(Set(accepted) == ["ann", "ben"])
        await #expect(throws: SignalingError.self, "one of two has to be named") {
            try await meeting.signal("agenda", data: ["n": 0])
        }
        try await meeting.signal("agenda", data: ["n": 1], to: "ben")
        let heard = try await first(ben) { if case .signaling(.callSignal(let signal)) = $0 { signal } else { nil } }
        #expect(heard.data == ["n": 1] && heard.from == "host")
        try await atAnn.signal("question", data: ["n": 2])
        let asked = try await first(host) { if case .signaling(.callSignal(let signal)) = $0 { signal } else { nil } }
        #expect(asked.data == ["n": 2] && asked.from == "ann")
        try await meeting.leave("ann")
        #expect(try await left(ann) == ["host"])
        try await atBen.leave()
        #expect(try await left(host) == ["ben"])
        #expect(await site.exchange.counters().openCalls == 0)
        try await site.close(host, ann, ben)
    }

    private func left(_ device: Handheld) async throws -> [UserID] {
        [try await first(device) { if case .invite(.left(_, let user)) = $0 { user } else { nil } }]
    }

    @Test("INV-15: The inviter changes what a pending invite says, and the invitee hears it")
    func modified() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo", data: ["at": "noon"])
        _ = try await invited(echo)
        try await invite.modify(data: ["at": "one"])
        let news = try await first(echo) { if case .invite(let news) = $0 { news } else { nil } }
        #expect(news == .modified(invite.id, data: ["at": "one"]))
        try await site.close(caller, echo)
    }

    @Test("INV-14: A device that comes later hears an invite that still stands, once, with the time that is left")
    func comesLater() async throws {
        let site = try await Site()
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo", timeToLive: .seconds(60))
        let echo = try await site.device("echo", named: "desk")
        let received = try await invited(echo)
        #expect(received.id == invite.id)
        #expect(try #require(received.received.remaining) <= .seconds(60))
        try await received.accept()
        #expect(try await accepted(caller).invite == invite.id)
        try await site.close(caller, echo)
    }

    @Test("SIG-1, CONN-7: What is said in a room reaches the others there")
    func room() async throws {
        let site = try await Site()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        try await echo.device.rooms.join("lobby", data: "at the desk")
        #expect(try await caller.device.rooms.join("lobby").map(\.data) == ["at the desk"])
        try await caller.device.rooms.signal("hello", data: ["n": 1], in: "lobby")
        let heard = try await first(echo) { if case .signaling(.roomSignal(let signal)) = $0 { signal } else { nil } }
        #expect(heard.type == "hello" && heard.data == ["n": 1] && heard.user == "caller")
        do throws(SignalingError) {
            try await caller.device.rooms.signal(
                "big", data: .string(String(repeating: "x", count: 9_000)), in: "lobby")
            Issue.record("it was sent")
        } catch {
            #expect(error.code == .tooLarge)
        }
        try await site.close(caller, echo)
    }
}
