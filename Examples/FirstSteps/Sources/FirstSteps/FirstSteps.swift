import CallAgent

/// The code of the page "First steps", word for word: a test compares the page with this file, and another runs it against
/// an exchange.
enum FirstSteps {
    static func logIn(_ server: String, _ token: Secret, _ folder: String) async throws -> Device {
        var account = AccountConfiguration(server: server, credential: .mediaToken(token))
        account.sessionFile = folder + "/session.json"
        var configuration = DeviceConfiguration(account: account)
        configuration.device.callRecords = folder + "/calls.jsonl"
        configuration.answer = AnswerPolicy(manner: .answer(after: .zero))
        let alice = try await Device.login(configuration)
        return alice
    }

    static func hear(_ bob: Device) async throws {
        for await event in bob.events {
            guard case .invited(let invite) = event else { continue }
            try await invite.accept(data: ["at": "noon"])
            break
        }
    }

    static func invite(_ alice: Device, _ bob: Device) async throws {
        let lunch = try await alice.invites.send("bob", data: ["what": "lunch"])
        let dinner = try await alice.invites.send("bob", data: ["what": "dinner"], timeToLive: .seconds(60))
        try await dinner.cancel()

        try await hear(bob)
        for await event in alice.events {
            guard case .invite(.accepted(let answer)) = event, answer.invite == lunch.id else { continue }
            if answer.data == ["at": "noon"] { print("bob comes at noon") }
            break
        }
    }

    static func call(_ alice: Device) async throws {
        let call = await alice.call("bob", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        for await event in alice.events {
            if case .established = event { await alice.hangUp(call) }
            if case .ended(_, let record, _) = event {
                print("the call is over: \(record.reason), after \(record.duration)")
                break
            }
        }
    }

    static func speak(_ alice: Device, _ bob: Device) async throws {
        try await alice.rooms.join("lobby")
        try await bob.rooms.join("lobby")
        try await alice.rooms.signal("hello", data: ["text": "Good morning"], in: "lobby")
    }

    static func leave(_ alice: Device, _ bob: Device) async throws {
        await bob.shutDown()
        try await alice.logOut()
    }
}
