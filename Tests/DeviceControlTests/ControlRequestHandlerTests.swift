import CallAgent
import ConfigReader
import ControlWire
@testable import DeviceControl
import Logging
import Testing

@Suite("What clients ask of accounts that have no device", .timeLimit(.minutes(1)))
struct ControlRequestHandlerTests {
    private struct Absent: Error {}

    @Test(
        "While every account waits, the shared card is muted and its volume set, and the status reports it and drained accounts"
    )
    func waiting() async throws {
        let text = """
            accounts:
              - name: a
                account:
                  anonymous: a
                  server: http://127.0.0.1:1
                behaviour:
                  source: card
            audio:
              playback: "null"
              capture: "null"
            media:
              realtime_priority: 0
            """
        let configuration = try AccountsConfiguration.read(ConfigDocument.read(text: text, environment: { _ in nil }))
        let logger = Logger(label: "desk") { _ in SwiftLogNoOpLogHandler() }
        let media = try SharedMedia(for: configuration.accounts.map(\.configuration), logger: logger)
        let accounts = AccountSet(configuration, media: media, logger: logger) { _ in throw Absent() }
        let handler = ControlRequestHandler(accounts, version: "1")
        await accounts.start()
        for await event in accounts.events { if case .failed = event.kind { break } }

        let mute = try await handler.carryOut(ControlRequest(.mute(true)))
        #expect(mute.reply.sound?.isMuted == true)
        let volume = try await handler.carryOut(ControlRequest(.volume(playbackDB: -3, microphoneDB: nil)))
        #expect(volume.reply.sound?.volumeDB == -3 && volume.reply.sound?.isMuted == true)
        _ = try await handler.carryOut(ControlRequest(.drain(true), account: "a"))
        let status = try #require(try await handler.carryOut(ControlRequest(.status)).reply.status)
        #expect(status.sound?.volumeDB == -3 && status.card != nil && status.load != nil)
        #expect(status.accounts?.map(\.connection) == ["waiting"] && status.isDraining == true)
        await accounts.shutDown()
    }
}
