internal import ControlWire
package import HTTPTransport
package import Logging
package import NIOCore
package import NIOHTTP1

/// Answers requests over HTTP, at one address. On the server's event loop.
package final class ControlHTTPService: PlainService {
    /// Connections at a time: those of ``EventStreams/limit`` clients of events, and others.
    package static let mostConnections = EventStreams.limit + 28

    private let point: any ControlPoint
    private let admission: ControlAdmission
    package let acceptLog: AcceptLog
    private let connections = OpenChannels(most: ControlHTTPService.mostConnections)

    package init(_ point: any ControlPoint, _ admission: ControlAdmission, logger: Logger) {
        self.point = point
        self.admission = admission
        acceptLog = AcceptLog(logger, for: "control")
    }

    /// Closes all connections.
    package func close() { connections.closeAll() }

    package func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        let reached = channel.localAddress?.ipAddress
        if admission.showsPages(to: request.head, reached: reached), let page = point.page(request.head) {
            return reply(page)
        }
        let send = { [admission] (answer: HTTPAnswer) in reply(admission.shared(answer, with: request.head)) }
        switch admission.judge(request.head, reached: reached) {
        case .answered(let answer): send(answer)
        case .refused(let problem):
            var answer = HTTPAnswer(problem.answer)
            // Strangers keep no connection.
            answer.endsConnection = true
            send(answer)
        case .admitted:
            connections.admit(channel)
            point.carryOut(request, send)
        }
    }

    package func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer {
        let problem =
            switch refusal {
            case .tooLong: ControlOperation.tooLong
            case .crowded: ControlProblem(ControlFault(.tooMany, "too many requests are incomplete; try again later"))
            }
        return admission.shared(HTTPAnswer(problem.answer), with: head)
    }

    package func bodyLimit(of head: HTTPRequestHead) -> Int { ControlLimits.requestBytes }

    /// If there are as many connections as there may be, the oldest without a right request makes room.
    package func accept(_ channel: any Channel) throws -> any ConnectionService {
        guard connections.track(channel) else { throw ConnectionRefusal.full }
        return self
    }
}
