import CallControl
import CallMedia
import Foundation
import HTTPTransport
import JSON
import MediaEngine
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport

@testable import CallAgent

/// A voice bot on loopback that is offered WebRTC legs by HTTP, and answers them with a media engine of its own. It hangs up when
/// its file is over, and on the key `#`.
final class OfferedBot: Sendable {
    /// Whose words it speaks.
    enum Words: Sendable {
        case smallWebRTC, realtime
    }

    /// A request that it got.
    struct Asked: Sendable {
        let line: String
        let headers: HTTPHeaders
        let body: String
    }

    private struct State {
        var asked: [Asked] = []
        var keys: [Character] = []
        var goodbyes = 0
    }

    private let server: ScriptedBot
    private let peer: Peer
    var port: Int { server.port }
    var asked: [Asked] { peer.state.withLock(\.asked) }
    var keys: [Character] { peer.state.withLock(\.keys) }
    /// How often the other side has said goodbye: a leg's RTCP and its DTLS both do.
    var goodbyes: Int { peer.state.withLock(\.goodbyes) }

    init(_ words: Words, _ source: AudioBehaviour.Source, on group: MultiThreadedEventLoopGroup) async throws {
        let peer = try Peer(words, source)
        self.peer = peer
        server = try await ScriptedBot(on: group, respond: { peer.answer($0) }) { _, _ in }
    }

    func stop() async {
        await server.stop()
        peer.stop()
    }

    private final class Peer: Sendable {
        let state = Mutex(State())
        private let words: Words
        private let source: AudioBehaviour.Source
        private let engine: MediaEngine
        private let media: Mutex<MediaResources>

        init(_ words: Words, _ source: AudioBehaviour.Source) throws {
            self.words = words
            self.source = source
            var configuration = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
            configuration.media.realtimePriority = nil
            let address = MediaAddress(for: configuration)
            let relay = Relay()
            engine = try MediaEngine(
                MediaEngineConfiguration(bindAddress: address.bindAddress, realtimePriority: nil)
            ) { relay.peer?.take($0) }
            media = Mutex(MediaResources(configuration, engine: engine, address: address))
            relay.peer = self
        }

        private final class Relay: @unchecked Sendable {
            // Set before there is any call, and so before any event.
            weak var peer: Peer?
        }

        func stop() { engine.shutdown() }

        private func take(_ event: MediaEvent) {
            switch event {
            case .playbackEnded(let id): engine.stop(id)
            case .digit(let id, let key, _):
                state.withLock { $0.keys.append(key) }
                if key == "#" { engine.stop(id) }
            case .goodbyeReceived(let id):
                state.withLock { $0.goodbyes += 1 }
                engine.stop(id)
            default: break
            }
        }

        func answer(_ request: HTTPRequest) -> HTTPAnswer {
            let body = String(decoding: request.body, as: UTF8.self)
            let asked = Asked(
                line: "\(request.head.method.rawValue) \(request.head.uri)", headers: request.head.headers, body: body)
            state.withLock { $0.asked.append(asked) }
            if request.head.uri.hasSuffix("/hangup") { return HTTPAnswer(status: .ok, body: []) }
            do {
                switch words {
                case .smallWebRTC:
                    let offer = JSONValue(plain: request.body, nesting: 8)?["sdp"]?.string ?? ""
                    let answer: JSONValue = [
                        "sdp": .string(try answer(offer)), "type": "answer", "pc_id": "SmallWebRTCConnection#0-1",
                    ]
                    return HTTPAnswer(status: .ok, contentType: "application/json", body: try JSONText(answer).bytes)
                case .realtime:
                    let start = body.range(of: "v=0")?.lowerBound ?? body.startIndex
                    let end = body.range(of: "\r\n--handset-part")?.lowerBound ?? body.endIndex
                    return HTTPAnswer(
                        status: .created, headers: ["Location": "/v1/realtime/calls/rtc_1"],
                        contentType: "application/sdp", body: Array(try answer(String(body[start..<end])).utf8))
                }
            } catch {
                return HTTPAnswer(status: .badRequest, body: Array("\(error)".utf8))
            }
        }

        private func answer(_ offer: String) throws -> String {
            try media.withLock { media in
                let (placement, fresh) = try media.prepareCall(usesCard: false)
                var negotiation = fresh
                let credentials = media.makeCredentials()
                let (connection, candidates) = try engine.connect(
                    try media.connectionPlan(credentials, isControlling: false), at: placement)
                negotiation.bring(credentials, candidates: candidates)
                _ = try negotiation.receive(.offer(offer))
                let (answer, agreed) = try negotiation.answer()
                let plan = try negotiation.plan(
                    for: agreed, audio: AudioBehaviour(source: source), start: .atOnce)
                _ = try engine.start(plan, at: placement, connection: connection, line: nil)
                if let remote = try negotiation.remote(for: agreed) { engine.connect(connection, to: remote) }
                return answer.sdp ?? ""
            }
        }
    }
}
