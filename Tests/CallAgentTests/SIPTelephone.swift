import CallAgent
import Foundation
import Logging
import NIOCore
import NIOPosix
import SIP
import Synchronization
import TestSupport
import Testing

/// A SIP server and telephone in one, at a UDP port of this machine: it grants registrations, takes what comes in calls, and
/// sends what a test says.
final class SIPTelephone: Sendable {
    private struct State {
        var received: [SIPMessage] = []
        var device: NIOCore.SocketAddress?
        var contact = ""
        var requests = 0
        /// The status that OPTIONS are answered with; nil for no answer.
        var probeAnswer: Int?
    }

    private let state = Mutex(State())
    private let channel = Mutex<(any Channel)?>(nil)

    init() async throws {
        let opened = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Datagrams(self))
                }
            }.bind(host: "127.0.0.1", port: 0).get()
        channel.withLock { $0 = opened }
    }

    /// Answers OPTIONS from now on with this status, or not at all.
    func answerProbes(with status: Int?) { state.withLock { $0.probeAnswer = status } }

    func close() { channel.withLock { $0?.close(promise: nil) } }

    private var port: Int { channel.withLock { $0?.localAddress?.port ?? 0 } }

    /// An account at this server that answers at once, and its device, registered.
    ///
    /// - Parameters:
    ///   - sections: Lines of the configuration beside the account.
    ///   - name: The account's among those of this process.
    ///   - connects: Whether it registers; otherwise what takes it has it do so.
    func device(
        _ sections: String..., password: String = "secret", callsFrom callers: String = "server",
        account name: String? = nil, connects: Bool = true
    ) async throws -> Handheld {
        let folder = FileManager.default.temporaryDirectory.appending(path: "handset-sip-\(UUID())").path()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try password.write(toFile: "\(folder)/password", atomically: true, encoding: .utf8)
        let text = """
            account:
              kind: sip
              password_file: password
              callees: [carol]
              sip: { address: 'sip:alice@sip.test', server: '127.0.0.1:\(port)', calls_from: \(callers) }

            """
        try (text + sections.joined(separator: "\n") + "\n")
            .write(toFile: "\(folder)/device.yaml", atomically: true, encoding: .utf8)
        var configuration = try DeviceConfiguration.read(path: "\(folder)/device.yaml")
        configuration.media.realtimePriority = nil
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let service = try configuration.makeService(
            program: DeviceProgram(version: "1"), account: name, logger: logger)
        let device = try Device(
            configuration, service: service, mediaAddress: MediaAddress(for: configuration), logger: logger)
        if connects { try await device.connect() }
        return Handheld(device)
    }

    // MARK: Its calls

    /// An offer or an answer with these lines behind the address, whose sound goes to a port that nobody listens at.
    static func description(_ lines: String, version: Int = 1) -> String {
        "v=0\r\no=- 7 \(version) IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\(lines)"
    }

    /// G.711 without telephone events.
    static let pcmu = "m=audio 9 RTP/AVP 0\r\n"

    /// A call with the device, as this side knows it.
    struct Call {
        let id: String
        /// The device's address with its tag.
        var to: String
        var sequence = 1
        /// What the device answered, or offers.
        var body: String
    }

    /// Calls the device, and acknowledges its answer.
    func call(
        _ id: String, offer: String = description(pcmu), acknowledges: Bool = true, _ headers: String...
    ) async throws -> Call {
        try send("INVITE", 1, of: id, to: "<sip:alice@sip.test>", body: offer, headers)
        let answer = try await response(to: "INVITE", 1, of: id)
        let to = answer.headers["To"] ?? ""
        guard answer.status == 200 else { throw Refused(status: answer.status) }
        if acknowledges { try send("ACK", 1, of: id, to: to, body: "", []) }
        return Call(id: id, to: to, body: String(decoding: answer.body, as: UTF8.self))
    }

    /// Acknowledges the device's answer to the call's INVITE.
    func acknowledge(_ call: Call) throws { try send("ACK", 1, of: call.id, to: call.to, body: "", []) }

    struct Refused: Error { let status: Int }

    /// Sends a request in a call, and waits for its final answer.
    @discardableResult
    func request(
        _ method: String, in call: inout Call, body: String = "", acknowledging: String = "", _ headers: String...
    ) async throws -> SIPResponse {
        call.sequence += 1
        try send(method, call.sequence, of: call.id, to: call.to, body: body, headers)
        let answer = try await response(to: method, call.sequence, of: call.id)
        if method == "INVITE" {
            // The ACK of a refusal belongs to the INVITE's transaction.
            let branch = answer.status < 300 ? "ACK" : "INVITE"
            try send("ACK", call.sequence, of: call.id, to: call.to, body: acknowledging, [], branch: branch)
        }
        return answer
    }

    /// Sends a request whatever has gone before, and waits for nothing. Without `to` it goes to the device's side of the call `id`, if
    /// the device has answered that.
    func post(
        _ method: String, _ sequence: Int, of id: String, to: String? = nil, body: String = "",
        _ headers: [String] = [],
        branch: String? = nil
    ) throws {
        let address = to ?? tagged(id) ?? "<sip:alice@sip.test>"
        try send(method, sequence, of: id, to: address, body: body, headers, branch: branch)
    }

    /// The device's address in a call, with the tag of its newest response.
    func tagged(_ id: String) -> String? {
        received.reversed().lazy.compactMap { message -> String? in
            guard case .response(let response) = message, response.headers.callID == id else { return nil }
            return response.headers["To"].flatMap { $0.contains("tag=") ? $0 : nil }
        }.first
    }

    /// What the device has sent that is a request, the oldest first.
    var requestsOfDevice: [SIPRequest] {
        received.compactMap { if case .request(let request) = $0 { request } else { nil } }
    }

    /// Sends a datagram from the port of signaling to where the device wants the sound of a call, if it has said so.
    func sendMedia(_ bytes: [UInt8], in id: String) {
        let descriptions = received.reversed().lazy.compactMap { message -> String? in
            switch message {
            case .request(let request) where request.headers.callID == id: String(decoding: request.body, as: UTF8.self)
            case .response(let response) where response.headers.callID == id:
                String(decoding: response.body, as: UTF8.self)
            case .request, .response: nil
            }
        }
        guard let text = descriptions.first(where: { $0.contains("m=audio") }),
            let port = text.firstMatch(of: /m=audio (\d+)/).flatMap({ Int($0.1) }), port > 0,
            let address = try? NIOCore.SocketAddress(ipAddress: "127.0.0.1", port: port),
            let channel = channel.withLock({ $0 })
        else { return }
        channel.writeAndFlush(
            AddressedEnvelope(remoteAddress: address, data: ByteBuffer(bytes: bytes)), promise: nil)
    }

    /// Answers a request of the device's.
    func answer(_ status: Int, _ request: SIPRequest, body: String = "") {
        var response = SIPResponse(status, to: request, toTag: request.headers.to?.tag == nil ? "peer" : nil)
        if request.method == .invite {
            response.headers.append("Contact", "<sip:bob@127.0.0.1:\(port)>")
            response.headers.append("Content-Type", "application/sdp")
        }
        response.body = Array(body.utf8)
        send(SIPMessage.response(response).bytes)
    }

    /// Requests of the device, without those that came again.
    func requests(_ method: SIPMethod) -> [SIPRequest] {
        var seen: Set<String> = []
        return received.compactMap {
            if case .request(let request) = $0, request.method == method { request } else { nil }
        }
        .filter { seen.insert("\($0.headers.callID ?? "") \($0.headers["CSeq"] ?? "")").inserted }
    }

    /// The next request of that method that the device has sent beyond `count`.
    func request(_ method: SIPMethod, after count: Int = 0) async throws -> SIPRequest {
        try await until { self.requests(method).count > count }
        return requests(method)[count]
    }

    private func response(to method: String, _ sequence: Int, of call: String) async throws -> SIPResponse {
        func find() -> SIPResponse? {
            received.lazy.compactMap { if case .response(let response) = $0 { response } else { nil } }.first {
                $0.status >= 200 && $0.headers.callID == call && $0.headers["CSeq"] == "\(sequence) \(method)"
            }
        }
        try await until { find() != nil }
        return try #require(find())
    }

    private var received: [SIPMessage] { state.withLock { $0.received } }

    private func send(
        _ method: String, _ sequence: Int, of call: String, to: String, body: String, _ headers: [String],
        branch: String? = nil
    ) throws {
        let contact = state.withLock { $0.contact }
        var lines = [
            "\(method) \(contact) SIP/2.0",
            "Via: SIP/2.0/UDP 127.0.0.1:\(port);rport;branch=z9hG4bK\(call)\(sequence)\(branch ?? method)",
            "To: \(to)", "Call-ID: \(call)",
            "CSeq: \(sequence) \(method)", "Max-Forwards: 70", "Contact: <sip:bob@127.0.0.1:\(port)>",
        ]
        lines += headers
        if !headers.contains(where: { $0.hasPrefix("From:") }) {
            lines.append("From: \"Bob\" <sip:bob@sip.test>;tag=peer-\(call)")
        }
        if !body.isEmpty, !headers.contains(where: { $0.hasPrefix("Content-Type") }) {
            lines.append("Content-Type: application/sdp")
        }
        lines.append("Content-Length: \(body.utf8.count)")
        send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
    }

    private func send(_ bytes: [UInt8]) {
        guard let channel = channel.withLock({ $0 }), let device = state.withLock({ $0.device }) else { return }
        channel.writeAndFlush(
            AddressedEnvelope(remoteAddress: device, data: ByteBuffer(bytes: bytes)), promise: nil)
    }

    private func take(_ bytes: [UInt8], from address: NIOCore.SocketAddress) {
        guard let message = try? SIPMessage(parsing: bytes) else { return }
        state.withLock {
            $0.device = address
            $0.received.append(message)
        }
        guard case .request(let request) = message else { return }
        switch request.method {
        case .register:
            state.withLock { $0.contact = request.headers.contacts?.first.map { "\($0.uri)" } ?? "" }
            var response = SIPResponse(200, to: request, toTag: "server")
            for line in request.headers.lines("Contact") { response.headers.append("Contact", line) }
            send(SIPMessage.response(response).bytes)
        case .bye, .notify, .info: answer(200, request)
        case .options: if let status = state.withLock({ $0.probeAnswer }) { answer(status, request) }
        default: break
        }
    }

    private final class Datagrams: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let telephone: SIPTelephone
        init(_ telephone: SIPTelephone) { self.telephone = telephone }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = unwrapInboundIn(data)
            telephone.take(Array(envelope.data.readableBytesView), from: envelope.remoteAddress)
        }
    }
}
