import Foundation
import JSON
import NIOCore
import SignalWire
import Synchronization

@testable import SignalingClient
import TLS

/// The least that a client takes for an exchange: logs everybody in, starts sessions, and says what a test tells it to.
final class ScriptedExchange: Sendable {
    /// A request as JSON-RPC has it.
    struct Call: Sendable {
        let method: String
        let params: JSONValue
    }

    private struct State {
        var calls: [Call] = []
        var sockets: [ScriptedSocket] = []
        var answers: [String: @Sendable (JSONValue) -> String] = [:]
        var sequence = 0
        var logins: [String: @Sendable (RecordedRequest) -> ScriptedAnswer] = [:]
    }

    private let state = Mutex(State())
    private let server = Mutex<ScriptedServer?>(nil)

    var calls: [Call] { state.withLock { $0.calls } }
    var methods: [String] { calls.map(\.method) }
    var port: Int { server.withLock { $0?.port ?? 0 } }
    var requests: [RecordedRequest] { server.withLock { $0?.requests ?? [] } }

    func start(on group: any EventLoopGroup, port: Int = 0, tls: TLSContext? = nil) async throws {
        let scheme = tls == nil ? "ws" : "wss"
        let started = try await ScriptedServer.start(
            on: group, port: port, tls: tls, conversation: { [self] in converse($0, $1) },
            answer: { [self] request in
                if let answer = state.withLock({ $0.logins[request.path] }) { return answer(request) }
                return Self.answer(request, webSocket: "\(scheme)://localhost:\(self.port)/v1/rtc")
            })
        server.withLock { $0 = started }
    }

    func stop() async {
        let stopped = server.withLock { $0 }
        await stopped?.stop()
    }

    /// From now on `method` is answered with this JSON text as its result, or as its error if it begins with `!`.
    func answer(_ method: String, _ text: @escaping @Sendable (JSONValue) -> String) {
        state.withLock { $0.answers[method] = text }
    }

    /// From now on requests to `path` are answered so.
    func answer(path: String, _ answer: @escaping @Sendable (RecordedRequest) -> ScriptedAnswer) {
        state.withLock { $0.logins[path] = answer }
    }

    /// Tells the newest connection an event.
    func tell(_ type: String, _ data: String) {
        let (socket, sequence) = state.withLock { state in
            state.sequence += 1
            return (state.sockets.last, state.sequence)
        }
        let params = #"{"sequence":\#(sequence),"type":"\#(type)","data":\#(data)}"#
        socket?.send(#"{"jsonrpc":"2.0","method":"event","params":\#(params)}"#)
    }

    func sendRaw(_ text: String) { state.withLock { $0.sockets.last }?.send(text) }

    func closeNewest(code: UInt16) { state.withLock { $0.sockets.last }?.close(code: code) }

    func dropConnections() { server.withLock { $0 }?.dropConnections() }

    private static func answer(_ request: RecordedRequest, webSocket: String) -> ScriptedAnswer {
        switch request.path {
        case "/v1.1/login": ScriptedAnswer(body: #"{"token":"T","expires_in":"3600","id":"u1"}"#)
        case "/v1.1/login/anonymous": ScriptedAnswer(body: #"{"token":"A"}"#)
        case "/v1/allidentities": ScriptedAnswer(body: #"{"public_ids":["alice@x"],"routing_id":"r1"}"#)
        case "/v1/connection":
            ScriptedAnswer(
                body: #"{"websocket_url":"\#(webSocket)","ice_servers":[{"urls":["stun:s"]}],"#
                    + #""keepalive_seconds":25,"resume_window_seconds":60}"#)
        default: ScriptedAnswer(status: 404, body: "no")
        }
    }

    private struct Envelope: Decodable {
        var id: Int
        var method: String
        var params: JSONValue?
    }

    private func converse(_ message: String, _ socket: ScriptedSocket) {
        guard let request = try? JSONDecoder().decode(Envelope.self, from: Data(message.utf8)) else { return }
        let params = request.params ?? .null
        let answer = state.withLock { state in
            state.calls.append(Call(method: request.method, params: params))
            if request.method == "session.start" { state.sockets.append(socket) }
            return state.answers[request.method]
        }
        let text = answer?(params) ?? Self.defaultAnswer(to: request.method)
        guard !text.isEmpty else { return }
        let body = text.hasPrefix("!") ? #""error":\#(text.dropFirst())"# : #""result":\#(text)"#
        socket.send(#"{"jsonrpc":"2.0","id":\#(request.id),\#(body)}"#)
    }

    private static func defaultAnswer(to method: String) -> String {
        switch method {
        case "session.start":
            #"{"session":"s1","connection":"c1","user":"u1","public_ids":["alice@x"],"resumed":false,"sequence":0,"#
                + #""keepalive_seconds":25,"anonymous":false}"#
        case "invite.send": #"{"invite":"i1","invitees":["bob"]}"#
        default: "{}"
        }
    }
}
