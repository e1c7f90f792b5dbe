import ExchangeServer
@testable import CallAgent
import CallControl
import ConfigReader
import ExchangeCore
import Foundation
import MediaEngine
import SignalingClient
import Testing

@Suite("A device's login, over restarts", .timeLimit(.minutes(5)))
struct LoginTests {
    private let folder: String

    init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private func configuration(_ site: Site, _ credential: AccountConfiguration.Credential) -> DeviceConfiguration {
        var account = AccountConfiguration(server: site.exchange.url, credential: credential)
        account.sessionFile = folder + "/session"
        var configuration = DeviceConfiguration(account: account)
        configuration.device.callRecords = folder + "/calls.jsonl"
        configuration.media.realtimePriority = nil
        return configuration
    }

    @Test(
        "AUTH-10, CALL-7: A device logs in, is called, starts again with no secret, and has kept its id and its calls")
    func restart() async throws {
        let site = try await Site()
        let first = try await Device.login(
            configuration(site, .mediaToken(Secret("token of echo"))), logger: site.logger)
        let caller = try await site.device("caller", named: "mobile")
        let call = await caller.device.call("echo", audio: .init(source: .silence))
        _ = try await caller.flowing()
        await caller.device.hangUp(call)
        _ = try await caller.ended()
        for await event in first.events { if case .ended = event { break } }
        let name = await first.service.session?.user
        await first.shutDown()
        let kept = try HandsetServiceConfiguration(configuration(site, .kept), program: DeviceProgram(version: "1"))

        let second = try await Device.login(configuration(site, .kept), logger: site.logger)
        #expect(await second.service.session?.user == name)
        #expect(kept.device.id.text.hasPrefix("handset-"))
        let records = try CallJournal.records(in: folder + "/calls.jsonl")
        #expect(records.map(\.reason) == ["completed"])
        #expect(records.first?.peer == "caller")
        await second.shutDown()
        try await site.close(caller)
    }

    @Test("AUTH-9: Logging out ends the call, forgets the login here, and makes it worthless for whoever has a copy")
    func logOut() async throws {
        let site = try await Site()
        let device = try await Device.login(
            configuration(site, .mediaToken(Secret("token of echo"))), logger: site.logger)
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: .init(source: .silence))
        _ = try await caller.flowing()
        let kept = try Data(contentsOf: URL(fileURLWithPath: folder + "/session"))
        try await device.logOut()
        let record = try await caller.ended().record
        #expect(record.endedBy == .remote)
        #expect(!FileManager.default.fileExists(atPath: folder + "/session"))
        #expect(await device.status.user == nil)
        try kept.write(to: URL(fileURLWithPath: folder + "/session"))
        do throws(SignalingError) {
            _ = try await Device.login(configuration(site, .kept), logger: site.logger)
            Issue.record("the old login is still good")
        } catch {
            #expect([.tokenRejected, .tokenExpired, .loginRefused].contains(error.code), "\(error)")
        }
        try await site.close(caller)
    }

    @Test("AUTH-6, AUTH-10: Without a kept login and without a secret the device says so, and is shut down")
    func nothingKept() async throws {
        let site = try await Site()
        do throws(SignalingError) {
            _ = try await Device.login(configuration(site, .kept), logger: site.logger)
            Issue.record("it logged in")
        } catch {
            #expect(error.code == .notAuthenticated)
            #expect("\(error)".contains("no login is kept from earlier"))
        }
        try await site.close()
    }

    @Test("AUTH-3: An anonymous device joins its room and hears who is there, and may not invite")
    func anonymousRoom() async throws {
        let site = try await Site()
        func guest(_ name: String) async throws -> Device {
            var configuration = DeviceConfiguration(
                account: AccountConfiguration(server: site.exchange.url, credential: .anonymous(name: name)))
            configuration.rooms = ["lobby"]
            configuration.media.realtimePriority = nil
            return try await Device.login(configuration, logger: site.logger)
        }
        let ann = try await guest("ann")
        let ben = try await guest("ben")
        for device in [ann, ben] {
            for await event in device.events {
                guard case .signaling(.connectionCreated("lobby", let other)) = event else { continue }
                #expect(!other.connection.text.isEmpty)
                break
            }
        }
        do throws(SignalingError) {
            _ = try await ann.invites.send("echo")
            Issue.record("a guest invited a user")
        } catch {
            #expect(error.code == .notAllowed)
        }
        await ann.shutDown()
        await ben.shutDown()
        try await site.close()
    }
}
