import CallAgent

/// The code of the page "Taking part in calls", word for word: a test compares the page with this file, and another runs it
/// against an exchange.
enum TakingPart {
    static func logIn(_ server: String, _ token: Secret) async throws -> Device {
        let account = AccountConfiguration(server: server, credential: .mediaToken(token))
        var configuration = DeviceConfiguration(account: account)
        configuration.answer = AnswerPolicy(manner: .answer(after: .zero))
        configuration.behaviour.source = .program
        return try await Device.login(configuration)
    }

    static func answer(_ bob: Device, with greeting: [Int16]) async {
        await bob.providePorts(PortPlan(rate: .hz16000)) { port in
            do {
                try await port.write(greeting)
                try port.mark("greeted")
                for await frame in port.frames { try await port.write(frame.samples) }
            } catch {
                print("\(port.call): \(error)")
            }
        }
    }

    /// Samples of sound that are heard in the first so many seconds.
    static func hear(_ port: CallPort, seconds: Int) async -> Int {
        var loud = 0
        for await frame in port.frames {
            if frame.samples.contains(where: { $0.magnitude > 1_000 }) { loud += frame.samples.count }
            if frame.position > seconds * port.rate.rawValue { break }
        }
        return loud
    }

    static func speak(_ alice: Device, _ question: [Int16]) async throws -> Int {
        var events = alice.events.makeAsyncIterator()
        let call = await alice.call("bob", audio: AudioBehaviour(source: .silence))
        while let event = await events.next() {
            if case .established = event { break }
            guard case .ended(call, let record, _) = event else { continue }
            print("nobody answers: \(record.reason)")
            return 0
        }
        let port = try await alice.attachPort(PortPlan(rate: .hz16000), to: call)
        async let heard = hear(port, seconds: 3)
        try await port.write(question)
        try port.mark("asked")
        for await event in port.events {
            guard case .played(mark: "asked", let position) = event else { continue }
            print("\(position) samples are played")
            break
        }
        let answer = await heard
        await port.drain()
        try await alice.detach(from: call)
        await alice.hangUp(call)
        while let event = await events.next() {
            if case .ended(call, let record, _) = event {
                print("\(call) is over: \(record.reason)")
                break
            }
        }
        return answer
    }
}
