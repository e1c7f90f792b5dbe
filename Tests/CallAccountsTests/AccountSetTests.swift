@testable import CallAgent
import CallControl
import ConfigReader
import Logging
import SignalingClient
import Synchronization
import Testing

/// Something that happens once, and is waited for.
private final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiters: [CheckedContinuation<Void, Never>])>((false, []))

    func open() {
        let waiters = state.withLock { state in
            defer { state = (true, []) }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiters.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}

@Suite("The accounts of a process", .timeLimit(.minutes(1)))
struct AccountSetTests {
    private func entry(_ name: String, _ more: String = "") -> String {
        "  - name: \(name)\n    account:\n      anonymous: \(name)\n      server: http://127.0.0.1:1\n\(more)"
    }

    private func configuration(_ entries: String...) throws -> AccountsConfiguration {
        let text = "accounts:\n" + entries.joined() + "media:\n  realtime_priority: 0\n"
        return try AccountsConfiguration.read(ConfigDocument.read(text: text, environment: { _ in nil }))
    }

    /// A set whose accounts have these services, made in turn.
    private func set(
        _ configuration: AccountsConfiguration, _ services: @escaping @Sendable () -> ScriptedService
    ) throws -> AccountSet {
        let logger = Logger(label: "accounts", factory: { _ in SwiftLogNoOpLogHandler() })
        let media = try SharedMedia(for: configuration.accounts.map(\.configuration), logger: logger)
        return AccountSet(configuration, media: media, logger: logger) { account in
            let device = try Device(
                account.configuration, service: services(), mediaAddress: MediaAddress(for: account.configuration),
                sharing: media, logger: logger)
            return AccountDevice(device)
        }
    }

    /// The next event that is of interest.
    private func next<Found>(
        _ events: inout AsyncStream<AccountEvent>.Iterator, _ find: (AccountEvent) -> Found?
    ) async throws -> Found {
        while let event = await events.next() {
            if let found = find(event) { return found }
        }
        return try #require(nil, "the events have ended")
    }

    private func isConnected(_ event: AccountEvent) -> Void? {
        if case .connected = event.kind { () } else { nil }
    }

    private func isLost(_ event: AccountEvent) -> Void? {
        if case .lost = event.kind { () } else { nil }
    }

    private func isOver(_ event: AccountEvent) -> Void? {
        if case .device(.signaling(.disconnected)) = event.kind { () } else { nil }
    }

    @Test("An account whose connection ends for good before its device says that it is connected is tried again")
    func lostEarly() async throws {
        let heard = Gate()
        let accounts = try set(configuration(entry("a"))) {
            ScriptedService(connecting: { hub throws(SignalingError) in
                hub.publish(.connected)
                hub.publish(.disconnected)
                await heard.wait()
            })
        }
        var events = accounts.events.makeAsyncIterator()
        await accounts.start()
        try await next(&events, isOver)
        heard.open()
        try await next(&events, isConnected)
        try await next(&events, isLost)
        let failures = try await next(&events) {
            if case .failed(_, _, let failures) = $0.kind { failures } else { nil }
        }
        #expect(failures == 2)
        await accounts.shutDown()
    }

    @Test("The only account of a process gives up with the reason when its connection ends for good")
    func lostForGood() async throws {
        let service = ScriptedService()
        let text = "account:\n  anonymous: a\n  server: http://127.0.0.1:1\nmedia:\n  realtime_priority: 0\n"
        let only = try AccountsConfiguration.read(ConfigDocument.read(text: text, environment: { _ in nil }))
        let accounts = try set(only) { service }
        var events = accounts.events.makeAsyncIterator()
        await accounts.start()
        try await next(&events, isConnected)
        let reason = SignalingError(.tokenExpired, activity: "stay logged in", cause: "the user was removed")
        service.publish(.error(reason))
        service.publish(.disconnected)
        let failure = try await next(&events) {
            if case .gaveUp(let error) = $0.kind { error as? SignalingError } else { nil }
        }
        #expect(failure == reason)
        await accounts.shutDown()
    }

    @Test("Whether an account takes calls is said of its next device, too: while it waits, and while one ends")
    func draining() async throws {
        let (ending, goOn) = (Gate(), Gate())
        let service = ScriptedService(disconnecting: {
            ending.open()
            await goOn.wait()
        })
        let accounts = try set(configuration(entry("a"))) { service }
        var events = accounts.events.makeAsyncIterator()
        await accounts.start()
        try await next(&events, isConnected)
        #expect(await accounts.setDraining(true, of: "a"))
        service.publish(.disconnected)
        try await next(&events, isLost)
        await ending.wait()
        #expect(await accounts.members.first?.device?.isDraining == true)
        #expect(await !accounts.setDraining(false, of: "a"))
        #expect(await accounts.members.first?.isDraining == false)
        #expect(await accounts.setDraining(true, of: "a"))
        goOn.open()
        try await next(&events) { if case .failed = $0.kind { () } else { nil } }
        let member = try #require(await accounts.members.first)
        #expect(member.device == nil && member.isDraining)
        await accounts.shutDown()
    }

    @Test("A device that was asked to end does not connect")
    func closed() async throws {
        let configuration = try configuration(entry("a")).accounts[0].configuration
        let service = ScriptedService()
        let device = try Device(
            configuration, service: service, mediaAddress: MediaAddress(for: configuration),
            logger: Logger(label: "device", factory: { _ in SwiftLogNoOpLogHandler() }))
        await device.shutDown()
        await #expect(throws: SignalingError.self) { try await device.connect() }
        #expect(service.connects == 0)
    }

    @Test("Busy workers are an event of no account")
    func load() async throws {
        let accounts = try set(configuration(entry("a"), entry("b"))) { ScriptedService() }
        var events = accounts.events.makeAsyncIterator()
        await accounts.start()
        for _ in 0..<2 { try await next(&events, isConnected) }
        let device = try #require(await accounts.members.last?.device)
        await device.publish(.loadChanged(device.load))
        let account = try await next(&events) { event in
            if case .device(.loadChanged) = event.kind { event.account ?? "nobody" } else { nil }
        }
        #expect(account == "nobody")
        await accounts.shutDown()
    }

    @Test("A reload adds no account whose calls the workers have no memory for, whether it is new or comes back")
    func memory() async throws {
        func calls(_ count: Int) -> String { "    answer:\n      max_calls: \(count)\n" }
        let (ending, goOn) = (Gate(), Gate())
        let accounts = try set(configuration(entry("a"), entry("b", calls(300)))) {
            ScriptedService(disconnecting: {
                ending.open()
                await goOn.wait()
            })
        }
        var events = accounts.events.makeAsyncIterator()
        await accounts.start()
        for _ in 0..<2 { try await next(&events, isConnected) }
        let more = try await accounts.adopt(configuration(entry("a"), entry("b", calls(300)), entry("c", calls(1))))
        #expect(more.added.isEmpty && more.refused.map(\.name) == ["c"])
        #expect(more.refused.first?.reason.contains("301 streams") == true, "\(more)")

        // One that goes leaves its room, and has it again only if nobody else took it.
        let other = try await accounts.adopt(configuration(entry("a"), entry("c", calls(200))))
        #expect(other.removed == ["b"] && other.added == ["c"])
        await ending.wait()
        let back = try await accounts.adopt(configuration(entry("a"), entry("b", calls(300)), entry("c", calls(200))))
        #expect(back.added.isEmpty && back.refused.map(\.name) == ["b"], "\(back)")
        goOn.open()
        await accounts.shutDown()
    }
}
