import CallAgent
import CallControl
import ExchangeServer
import Foundation
import CallMedia
import MediaEngine
import NIOCore
import TestSupport
import Testing
import Core

@Suite("Devices whose exchange is away, with real sockets", .witnessed(slack: .seconds(1)), .timeLimit(.minutes(5)))
struct OutageTests {
    private func news(_ device: Handheld) async throws -> InviteEvent {
        while let event = await device.next() {
            if case .invite(let news) = event { return news }
        }
        throw StreamEnded()
    }

    private func invited(_ device: Handheld) async throws -> IncomingInvite {
        while let event = await device.next() {
            if case .invited(let invite) = event { return invite }
        }
        throw StreamEnded()
    }

    /// A site whose exchange can be started again where it was, with what it knew.
    private func lastingSite() async throws -> (site: Site, kept: ExchangeConfiguration, folder: String) {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var kept = ExchangeConfiguration()
        let site = try await Site {
            $0.databasePath = folder + "/exchange.db"
            kept = $0
        }
        kept.port = site.exchange.port
        return (site, kept, folder)
    }

    private func reconnected(_ device: Handheld) async throws {
        while let event = await device.next() {
            switch event {
            case .signaling(.reconnected): return
            case .invite(let news): Issue.record("told again: \(news)")
            case .ended(_, let record, _): throw EndedEarly(record: record)
            default: break
            }
        }
        throw StreamEnded()
    }

    @Test(
        "CALL-6, CONN-8, CALL-3: A call whose exchange goes away and comes back keeps its media, and is hung up over the exchange"
    )
    func callOutlivesExchange() async throws {
        let (site, kept, folder) = try await lastingSite()
        let echo = try await site.device("echo", named: "desk", answer: AnswerPolicy(manner: .answer(after: .zero)))
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call(
            "echo", audio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)))
        _ = try await caller.flowing()
        _ = try await echo.flowing()
        await site.exchange.stop()
        let before = try #require(await caller.device.mediaReport(on: call)).peer.packetsReceived
        try await until { try #require(await caller.device.mediaReport(on: call)).peer.packetsReceived > before }

        let again = try await ExchangeServer.start(kept, on: site.group, logger: site.logger)
        for device in [echo, caller] { try await reconnected(device) }
        await caller.device.hangUp(call)
        let (mine, theirs) = (try await caller.ended().record, try await echo.ended().record)
        #expect(mine.reason == .completed && theirs.reason == .completed && theirs.endedBy == .remote)
        #expect(abs((mine.duration - theirs.duration).seconds) < 1)
        await echo.device.shutDown()
        await caller.device.shutDown()
        await again.stop()
        try await site.group.shutdownGracefully()
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test(
        "INV-8, INV-16: With the exchange out of reach at the ttl, each device's own timer tells the timeout, and what the exchange says when it is back is not told again"
    )
    func ownTimer() async throws {
        let (site, kept, folder) = try await lastingSite()
        let echo = try await site.device("echo", named: "desk")
        let caller = try await site.device("caller", named: "mobile")
        let invite = try await caller.device.invites.send("echo", timeToLive: .seconds(1))
        _ = try await invited(echo)
        await site.exchange.stop()
        // Nobody but the devices is left to tell the time.
        #expect(try await news(echo) == .withdrawn(invite.id, .timedOut))
        #expect(try await news(caller) == .timedOut(invite.id, ["echo"]))
        #expect(try await news(caller) == .finished(invite.id, .done))

        let again = try await ExchangeServer.start(kept, on: site.group, logger: site.logger)
        for device in [echo, caller] { try await reconnected(device) }
        // The exchange's own timer has fired by now. What comes next is about the next invite.
        let next = try await caller.device.invites.send("echo", timeToLive: .seconds(30))
        #expect(try await invited(echo).id == next.id)
        try await next.cancel()
        #expect(try await news(echo) == .withdrawn(next.id, .cancelled))
        #expect(try await news(caller) == .finished(next.id, .cancelled))
        await echo.device.shutDown()
        await caller.device.shutDown()
        await again.stop()
        try await site.group.shutdownGracefully()
        try FileManager.default.removeItem(atPath: folder)
    }
}
