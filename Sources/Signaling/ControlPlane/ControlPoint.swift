// ControlPlane: where programs act on a running process over HTTP: sockets, tokens, clients and their events. It knows no device and no
// exchange: what a request means is for the process's ControlPoint to say.

package import ControlWire
internal import Cryptography
package import HTTPTransport
package import NIOHTTP1

/// What carries out the requests that a ``ControlHTTPServer`` admits. On the server's event loop.
package protocol ControlPoint: AnyObject, SendableMetatype {
    /// Carries out a request, and answers it once.
    func carryOut(_ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void)

    /// The answer to a browser on TCP that requests a file of a page, for which it needs no token; nil for all other requests.
    func page(_ head: HTTPRequestHead) -> HTTPAnswer?

    /// Disconnects the clients that receive streams.
    func close()
}

extension ControlPoint {
    /// A process without a page.
    package func page(_ head: HTTPRequestHead) -> HTTPAnswer? { nil }
}

extension ControlHTTPRequest {
    /// What the interface reads of a request.
    package init(_ request: HTTPRequest) {
        let headers = request.head.headers
        self.init(
            request.head.method.rawValue, request.head.uri, contentType: headers.first(name: "Content-Type"),
            idempotencyKey: headers.first(name: "Idempotency-Key"), lastEventID: headers.first(name: "Last-Event-ID"),
            body: request.body)
        (range, ifRange) = (headers.first(name: "Range"), headers.first(name: "If-Range"))
    }
}

extension HTTPRequest {
    /// The same for equal requests alone.
    package var fingerprint: [UInt8] { Digest.sha256(Array("\(head.method.rawValue) \(head.uri)\n".utf8) + body) }
}

extension HTTPAnswer {
    /// An answer of the interface.
    package init(_ answer: ControlHTTPAnswer) {
        var headers = HTTPHeaders()
        for field in answer.fields { headers.add(name: field.name, value: field.value) }
        self.init(
            status: HTTPResponseStatus(statusCode: answer.status), headers: headers, contentType: answer.contentType,
            body: answer.body)
    }

    /// The answer to a request that failed.
    package init(_ fault: ControlFault) { self.init(ControlProblem(fault).answer) }
}
