import ExchangeServer
@testable import CallAgent
import CallControl
import ConfigReader
import ExchangeCore
import Foundation
import JSON
import CallMedia
import MediaEngine
import struct SignalWire.Identifier
import SignalingClient
import TestSupport
import Testing

@Suite("The ways in, by the examples in config/examples", .witnessed(slack: .seconds(1)), .timeLimit(.minutes(5)))
struct WaysInTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("config/examples")

    private static let secrets = [
        "HANDSET_APP_SECRET": "demo", "HANDSET_MEDIA_TOKEN": "token of caller", "HANDSET_SESSION_TOKEN": "T",
        "HANDSET_PASSWORD": "P",
    ]

    private func read(_ name: String, server: String? = nil) throws -> DeviceConfiguration {
        let text = try String(contentsOf: Self.folder.appendingPathComponent(name), encoding: .utf8)
        let section = try ConfigDocument.read(
            text: server.map { text.replacingOccurrences(of: "http://127.0.0.1:8555", with: $0) } ?? text,
            environment: { Self.secrets[$0] })
        var problems: [ConfigProblem] = []
        var configuration = DeviceConfiguration(section, &problems)
        #expect(problems == [], "\(name)")
        configuration.media.realtimePriority = nil
        return configuration
    }

    @Test("Each example is a configuration without problems, of the kind that it says")
    func examples() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).sorted()
        var kinds: [String: String] = [:]
        #expect(try read("sip.yaml").account.eventsURL == "sips://example.org")
        for name in names where name != "sip.yaml" {
            kinds[name] = Mirror(reflecting: try read(name).account.credential).children.first?.label
        }
        #expect(
            kinds == [
                "anonymous-room.yaml": "anonymous", "group-invites.yaml": "mediaToken",
                "invites-with-payloads.yaml": "password", "media-token.yaml": "mediaToken",
                "signed-session.yaml": "sessionToken", "user-session-token.yaml": "sessionToken",
            ])
        #expect(try read("signed-session.yaml").allRooms == ["lecture"])
        #expect(try read("group-invites.yaml").invites.timings.grace == .zero)
        #expect(try read("invites-with-payloads.yaml").invites.missedPayload == "You missed a call")
        let settings = try HandsetServiceConfiguration(
            try read("user-session-token.yaml"), program: DeviceProgram(version: "1"))
        #expect(settings.credentials == .sessionToken(user: "caller", .command(["cat", "token"])))
        #expect(settings.sessionStore?.application == "demo")
    }

    @Test("AUTH-1, AUTH-2: The example with a media token logs in, and can be called by each of its public ids")
    func mediaToken() async throws {
        let site = try await Site()
        let device = try await Device.login(
            try read("media-token.yaml", server: site.exchange.url), logger: site.logger)
        #expect(await device.service.session?.publicIDs.contains("caller@localhost") == true)
        let other = try await site.device("echo", named: "desk")
        _ = try await other.device.invites.send("caller@localhost")
        for await event in device.events {
            guard case .invited(let invite) = event else { continue }
            #expect(invite.received.inviter == "echo")
            break
        }
        await device.shutDown()
        try await site.close(other)
    }

    @Test("INV-8: The example with group invites tells a timeout by the device's own timer")
    func ownTimer() async throws {
        let site = try await Site()
        let device = try await Device.login(
            try read("group-invites.yaml", server: site.exchange.url), logger: site.logger)
        let other = try await site.device("echo", named: "desk")
        let invite = try await device.invites.send("echo", timeToLive: .milliseconds(200))
        for await event in device.events {
            guard case .invite(.timedOut(let id, let users)) = event else { continue }
            #expect(id == invite.id && users == ["echo"])
            break
        }
        await device.shutDown()
        try await site.close(other)
    }

    @Test(
        "AUTH-4: The example with a session token logs in by what a command prints, and its access token by the exchange's login"
    )
    func sessionToken() async throws {
        let site = try await Site()
        var configuration = try read("user-session-token.yaml", server: site.exchange.url)
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let end = Date().timeIntervalSince1970 + 600
        let key = try #require(Site.signingKey)
        let token = try SignedTokenMint.sign(
            SignedToken(application: "demo", user: "caller", issued: end - 600, expires: end), with: key)
        try Data(token.utf8).write(to: URL(fileURLWithPath: folder + "/token"))
        configuration.account.credential = .sessionToken(user: "caller", .command(["cat", folder + "/token"]))
        configuration.account.sessionFile = folder + "/session.json"
        configuration.device.callRecords = nil
        let device = try await Device.login(configuration, logger: site.logger)
        #expect(await device.status.user == "caller")
        await device.shutDown()
        configuration.account.sessionFile = nil
        configuration.account.credential = .accessToken(user: "caller", .fixed("access token of caller"))
        let second = try await Device.login(configuration, logger: site.logger)
        #expect(await second.status.user == "caller")
        await second.shutDown()
        try await site.close()
    }

    @Test("AUTH-5: The example with a signed token joins its session; a token for another one says so")
    func signedToken() async throws {
        let site = try await Site()
        let key = try #require(Site.signingKey)
        let end = Date().timeIntervalSince1970 + 600
        var configuration = try read("signed-session.yaml", server: site.exchange.url)
        for (session, works) in [("lecture", true), ("another", false)] {
            let token = try SignedTokenMint.sign(
                SignedToken(
                    application: "demo", user: "ann", issued: end - 600, expires: end,
                    session: SignedToken.Session(id: Identifier(ours: session), data: "first row")), with: key)
            configuration.account.credential = .sessionToken(user: nil, .fixed(token))
            do throws(SignalingError) {
                let device = try await Device.login(configuration, logger: site.logger)
                #expect(works)
                try await device.rooms.signal("hello", in: "lecture")
                await device.shutDown()
            } catch {
                #expect(!works, "\(error)")
                #expect("\(error)".contains("session"))
                #expect(!"\(error)".contains(token))
            }
        }
        try await site.close()
    }

    @Test("AUTH-4, CALL-6: A token that ends in a call is renewed, the call goes on, and nobody is told of a drop")
    func renewedInCall() async throws {
        let site = try await Site {
            $0.tokenLifetime = .seconds(2)
            $0.tokenNotice = .seconds(1)
        }
        let echo = try await site.device("echo", named: "desk", answer: AnswerPolicy(manner: .answer(after: .zero)))
        let device = try await Device.login(
            try read("media-token.yaml", server: site.exchange.url), logger: site.logger)
        let call = await device.call("echo", audio: AudioBehaviour(source: .silence))
        var told: [SignalingEvent] = []
        var notices = 0
        for await event in device.events {
            if case .signaling(let event) = event { told.append(event) }
            // The second notice is about a token that the first one brought.
            if case .signaling(.unknown("tokenExpiring", _)) = event {
                notices += 1
                if notices == 3 { await device.hangUp(call) }
            }
            if case .ended(_, let record, _) = event {
                #expect(record.reason == .completed)
                break
            }
        }
        #expect(!told.contains(.reconnecting) && !told.contains(.disconnected))
        await device.shutDown()
        try await site.close(echo)
    }

    @Test("AUTH-3: The example of a guest joins its room")
    func guest() async throws {
        let site = try await Site()
        let configuration = try read("anonymous-room.yaml", server: site.exchange.url)
        let first = try await Device.login(configuration, logger: site.logger)
        let second = try await Device.login(configuration, logger: site.logger)
        for await event in second.events {
            guard case .signaling(.connectionCreated("lobby", _)) = event else { continue }
            break
        }
        await first.shutDown()
        await second.shutDown()
        try await site.close()
    }

    @Test("DEV-2: Push targets are read with their secrets, none end what was there, and what is wrong is named")
    func pushTargets() throws {
        func read(_ device: String) throws -> (HandsetServiceConfiguration, [ConfigProblem]) {
            let section = try ConfigDocument.read(
                text: "account:\n  server: http://127.0.0.1\n  anonymous: a\ndevice:\n  name: Desk\n\(device)\n",
                environment: { Self.secrets[$0] })
            var problems: [ConfigProblem] = []
            let configuration = DeviceConfiguration(section, &problems)
            return (
                try HandsetServiceConfiguration(configuration, program: DeviceProgram(version: "1")), problems
            )
        }
        let target = "    - kind: apns\n      token_env: HANDSET_MEDIA_TOKEN\n"
        let (settings, problems) = try read("  push:\n" + target)
        #expect(problems == [])
        #expect(settings.device.push == [.init(kind: "apns", token: "token of caller")])
        #expect(try read("").0.device.push == nil)
        #expect(try read("  push: []").0.device.push == [])
        for (text, key) in [
            ("  push:\n    - kind: apns\n", "device.push[1].token_file"),
            ("  push:\n    - token_env: HANDSET_MEDIA_TOKEN\n", "kind"),
            ("  push:\n" + String(repeating: target, count: 9), "device.push: has 9"),
        ] {
            let found = try read(text).1
            #expect(found.count == 1 && found.first.map { "\($0)".contains(key) } == true, "\(found)")
        }
    }

    @Test(
        "An account with no way in, two ways in, or half a way in is a problem that names the key",
        arguments: [
            ("anonymous: a\n  token_command: [x]", "account.anonymous"),
            ("kind: signed_token\n  token_command: [x]", "account.session"),
            ("kind: kept", "account.session_file"), ("access_token_env: HANDSET_APP_SECRET", "account.user"),
            ("token_command: [x]\n  token_env: HANDSET_APP_SECRET", "account.token_env"),
            ("app_key: a", "account.media_token_file"),
        ])
    func wrong(account: String, key: String) throws {
        let section = try ConfigDocument.read(
            text: "account:\n  server: http://127.0.0.1\n  \(account)\n", environment: { Self.secrets[$0] })
        var problems: [ConfigProblem] = []
        _ = DeviceConfiguration(section, &problems)
        #expect(problems.count == 1 && "\(problems[0])".contains(key), "\(problems)")
    }
}
