internal import ControlPlane
internal import ControlWire
internal import CallAgent
internal import DeviceControl
internal import FoundationEssentials

/// A device that runs.
enum DeviceProcess: ControlledProcess {
    static let owner = ControlSocketError.Owner.device

    static func socket(ofConfiguration config: String?) throws -> String {
        guard let config else { return socket(named: try UnitSockets().choose(usual: ControlSocketPath.reaching(nil))) }
        try ConfigurationCheck.expect("run", path: config)
        guard let control = try ControlConfiguration.read(path: config) else {
            throw CommandFailure(
                .configuration, "\(config) has no control.socket, so a device of this configuration listens nowhere")
        }
        return ControlSocketPath.reachingHTTP(control)
    }

    /// `--socket` names the device's socket as its configuration does, `control.socket`; the one for HTTP is beside it. It may also name
    /// the one for HTTP.
    static func socket(named path: String) -> String {
        let beside = ControlHTTPConfiguration().path(beside: path)
        return FileManager.default.fileExists(atPath: beside) ? beside : path
    }
}

/// Acts on a device that runs, over HTTP.
struct DeviceClient: Sendable {
    private let http: ControlHTTPClient

    init(_ http: ControlHTTPClient) { self.http = http }

    /// Sends a request and waits for its answer.
    ///
    /// - Returns: The answer, and the line that the socket of lines would have for it.
    func ask(_ request: ControlRequest) async throws(ControlSocketError) -> (reply: ControlReply, line: String) {
        let call = ControlHTTPCall(request)
        let answer = try await http.ask(call.method, call.target, body: call.body)
        let (reply, line) = call.reply(status: answer.status, body: answer.body)
        return (reply, String(decoding: line.last == UInt8(ascii: "\n") ? line.dropLast() : line[...], as: UTF8.self))
    }

    /// Receives events in order until the device ends or the task is cancelled.
    ///
    /// - Parameters:
    ///   - line: The answer to `status`: its events and those after it are received.
    ///   - account: Whose events, with those of the process; nil for all.
    /// - Throws: ``ControlFault`` if the device refuses, and ``ControlSocketError`` if it cannot be reached.
    func receive(
        after line: String, account: String?, levels: Bool, _ take: (ControlHTTPClient.Event) async -> Void
    ) async throws {
        let cursor = ControlCoding.decode(Status.self, from: Array(line.utf8))?.status.events?.cursor
        let target = ControlHTTPCall.events(levels: levels, account: account, after: cursor)
        if let answer = try await http.receive(target, take) { throw answer.fault }
    }

    private struct Status: Decodable {
        struct Inner: Decodable {
            let events: Events?
        }
        struct Events: Decodable {
            let cursor: String
        }

        let status: Inner
    }
}
