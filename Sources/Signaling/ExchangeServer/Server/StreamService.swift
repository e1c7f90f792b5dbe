import ExchangeCore
import HTTPTransport
import NIOCore
import NIOHTTP1
import SDP
import SignalWire
import Core
import Realtime

/// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): streams that are offered over HTTP and answered by devices.
///
/// Reads requests and writes answers; what happens between them is ``StreamTable``'s. Lives on the hub's event loop.
final class StreamService {
    /// The type of a description.
    static let descriptionType = "application/sdp"
    /// The type of a piece of a description (RFC 8840 §9).
    static let fragmentType = "application/trickle-ice-sdpfrag"

    /// The usual size of a description, or a little less; requests of streams are charged as if they had this size.
    private static let usualBytes = 4_096

    private let hub: ExchangeHub
    private var accounts: AccountDirectory { hub.accounts }
    private var iceServers: [ICEServerConfiguration]
    private(set) var allowedOrigins: [String]
    private var table: StreamTable
    private var waiting: [TraceID: (request: RESTRequest, reply: (HTTPAnswer) -> Void)] = [:]
    private let timer: DeadlineTimer
    /// Inputs that came in while outputs of an earlier one were being carried out, oldest first.
    private var inputs: [StreamTable.Input] = []
    private var isBusy = false

    init(hub: ExchangeHub, configuration: ExchangeConfiguration) {
        self.hub = hub
        allowedOrigins = configuration.allowedOrigins
        iceServers = configuration.iceServers
        var settings = StreamTable.Settings()
        settings.ringing = configuration.streamRinging
        table = StreamTable(settings: settings)
        timer = DeadlineTimer(on: hub.loop)
        hub.use(self)
    }

    /// What may change while the exchange runs is as here from now on.
    func adopt(_ configuration: ExchangeConfiguration) {
        allowedOrigins = configuration.allowedOrigins
        iceServers = configuration.iceServers
    }

    /// Answers one request, sooner or later; false if its path is not of a stream.
    func answer(_ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void) -> Bool {
        guard let path = StreamPath(request.path) else { return false }
        guard WebOrigin.isAllowed(request.headers, allowed: allowedOrigins) else {
            reply(failure(.unknownOrigin, request))
            return true
        }
        switch (path, request.method) {
        case (.endpoint, .OPTIONS):
            reply(options(request, methods: path.methods, ["Accept-Post": Self.descriptionType]))
        case (.session, .OPTIONS):
            reply(options(request, methods: path.methods, ["Accept-Patch": Self.fragmentType]))
        case (.endpoint(let kind, let callee), .POST): offer(kind, to: callee, request, then: reply)
        case (.session(let kind, let id), .PATCH): patch(kind, id, request, then: reply)
        case (.session(let kind, let id), .DELETE): delete(kind, id, request, then: reply)
        case (.endpoint, _), (.session, _):
            var answer = failure(.methodNotAllowed, request)
            answer.headers.add(name: "Allow", value: path.methods)
            reply(answer)
        }
        return true
    }

    /// Whether a request addresses a stream and carries a valid token, regardless of what the token grants.
    func isOfUser(_ head: HTTPRequestHead) -> Bool {
        guard StreamPath(String(head.uri.prefix { $0 != "?" })) != nil,
            let token = BearerToken(head.headers.first(name: "Authorization"))
        else { return false }
        if accounts.account(streamToken: token.digest) != nil { return true }
        return (try? hub.grant(for: token.secret)) != nil
    }

    /// The client of a request that waits for its answer is gone.
    func abandon(_ trace: TraceID) {
        guard waiting.removeValue(forKey: trace) != nil else { return }
        handle(.abandoned(trace))
    }

    /// The exchange sends something to a connection of this service.
    func deliver(_ delivery: StreamTable.Delivery, to connection: ConnectionID) {
        handle(.delivered(connection, delivery))
    }

    /// Streams as of now, and candidates that came too late.
    var counts: (open: Int, lateCandidates: Int) { (table.sessions.count, table.lateCandidates) }

    /// Answers all waiting clients: the exchange is about to end.
    func stop() {
        handle(.stopping)
        timer.cancel()
    }

    // MARK: - Requests

    private func offer(
        _ kind: StreamKind, to callee: UserID, _ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void
    ) {
        do throws(Refusal) {
            let (caller, token) = try caller(request, callee: callee)
            try expect(Self.descriptionType, request)
            let opening = StreamOpening(
                id: FreshSecret.make().secret, kind: kind, caller: caller, callee: callee, token: token,
                offer: try Self.offer(kind, request.body), connection: hub.reserveConnection())
            wait(request, then: reply)
            handle(.offered(opening, request.trace))
        } catch { reply(failure(error.failure, request)) }
    }

    private func patch(
        _ kind: StreamKind, _ id: StreamID, _ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void
    ) {
        do throws(Refusal) {
            try authorize(kind, id, request)
            try expect(Self.fragmentType, request)
            let fragment: ICEFragment
            do throws(ICEFragment.Malformed) { fragment = try ICEFragment(parsing: request.body) } catch {
                throw Refusal(.malformed("line \(error.line): \(error.message)"))
            }
            wait(request, then: reply)
            let conditions = request.headers[canonicalForm: "If-Match"].map(String.init)
            handle(.patched(id, fragment, ifMatch: conditions, request.trace))
        } catch { reply(failure(error.failure, request)) }
    }

    private func delete(
        _ kind: StreamKind, _ id: StreamID, _ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void
    ) {
        do throws(Refusal) {
            try authorize(kind, id, request)
            wait(request, then: reply)
            handle(.deleted(id, request.trace))
        } catch { reply(failure(error.failure, request)) }
    }

    private func wait(_ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void) {
        waiting[request.trace] = (request, reply)
    }

    private struct Refusal: Error {
        var failure: StreamFailure
        init(_ failure: StreamFailure) { self.failure = failure }
    }

    /// The account that a client streams for: that of its access token, or of the called user's own stream token.
    private func caller(
        _ request: RESTRequest, callee: UserID
    ) throws(Refusal) -> (UserID, SecretDigest) {
        let bearer = try bearer(request)
        let token = bearer.digest
        let user: UserID
        if let owner = accounts.account(streamToken: token) {
            guard accounts.account(called: callee)?.id == owner.id else { throw Refusal(.foreignToken) }
            user = owner.id
        } else {
            let grant = try grant(bearer)
            guard !grant.isAnonymous, grant.room == nil else { throw Refusal(.noAccount) }
            user = grant.user
        }
        guard accounts.account(called: callee) != nil else { throw Refusal(.unknownUser) }
        return (user, token)
    }

    /// Authorises a change of a session: by its creator's token, or by a login of the same account.
    private func authorize(_ kind: StreamKind, _ id: StreamID, _ request: RESTRequest) throws(Refusal) {
        let bearer = try bearer(request)
        let token = bearer.digest
        let session = table.sessions[id].flatMap { $0.opening.kind == kind ? $0.opening : nil }
        if let session, session.token == token { return }
        let user: UserID
        if let owner = accounts.account(streamToken: token) {
            user = owner.id
        } else {
            let grant = try grant(bearer)
            guard grant.room == nil else { throw Refusal(.foreignToken) }
            user = grant.user
        }
        guard let session else { throw Refusal(.unknownSession) }
        guard session.caller == user else { throw Refusal(.foreignToken) }
    }

    private func bearer(_ request: RESTRequest) throws(Refusal) -> BearerToken {
        guard let token = BearerToken(request.headers.first(name: "Authorization")) else {
            hub.countRefusedLogin()
            throw Refusal(.notAuthenticated)
        }
        return token
    }

    private func grant(_ token: BearerToken) throws(Refusal) -> Grant {
        do throws(RPCError) { return try hub.grant(for: token.secret) } catch {
            hub.countRefusedLogin()
            throw Refusal(error.known == .tokenExpired ? .tokenExpired : .notAuthenticated)
        }
    }

    private func expect(_ type: String, _ request: RESTRequest) throws(Refusal) {
        let given = request.headers.first(name: "Content-Type")?.prefix { $0 != ";" && $0 != " " } ?? ""
        guard given.lowercased() == type else { throw Refusal(.wrongType(expected: type)) }
    }

    /// The offer in a body, if devices can make something of it (RFC 9725 §4.2).
    private static func offer(_ kind: StreamKind, _ body: [UInt8]) throws(Refusal) -> SessionDescription {
        guard body.count <= StreamTable.maximumOfferBytes else { throw Refusal(.tooLarge) }
        let offer: SessionDescription
        do throws(SDPError) { offer = try SessionDescription(parsing: body) } catch {
            throw Refusal(.malformed("line \(error.line): \(error.message)"))
        }
        guard let audio = offer.media.first(where: { $0.kind == "audio" && $0.port != 0 }) else {
            throw Refusal(.unusable("it offers no audio"))
        }
        guard offer.credentials != nil, offer.hasFingerprint else {
            throw Refusal(.unusable("it has no ICE credentials, or no fingerprint for DTLS"))
        }
        let direction = audio.direction ?? offer.direction
        switch kind {
        case .whip where !direction.sends: throw Refusal(.unusable("a client of WHIP must send"))
        case .whep where !direction.receives: throw Refusal(.unusable("a client of WHEP must receive"))
        case .whip, .whep: return offer
        }
    }

    // MARK: - Driving the table

    private var now: Instant { Instant(NIODeadline.now()) }

    private func handle(_ input: StreamTable.Input) {
        inputs.append(input)
        guard !isBusy else { return }
        isBusy = true
        var outbox: [StreamTable.Output] = []
        var next = 0
        while next < inputs.count {
            table.handle(inputs[next], at: now, into: &outbox)
            next += 1
            for output in outbox { carryOut(output) }
            outbox.removeAll(keepingCapacity: true)
        }
        inputs.removeAll(keepingCapacity: true)
        isBusy = false
        setTimer()
    }

    private func carryOut(_ output: StreamTable.Output) {
        switch output {
        case .attach(let connection, let endpoint, let token): hub.attach(connection, as: endpoint, token: token)
        case .request(let connection, let id, let request):
            hub.submit(.request(connection, id, request), from: connection, bytes: Self.usualBytes)
        case .detach(let connection): hub.detach(connection)
        case .reply(let ticket, let reply):
            guard let (request, finish) = waiting.removeValue(forKey: ticket) else { return }
            finish(answer(to: request, reply))
        }
    }

    private func setTimer() {
        timer.set(table.nextDeadline) { [weak self] in self?.handle(.timer) }
    }

    // MARK: - Answers

    private func answer(to request: RESTRequest, _ reply: StreamReply) -> HTTPAnswer {
        var answer: HTTPAnswer
        switch reply {
        case .created(let id, let kind, let text, let tag):
            answer = HTTPAnswer(status: .created, contentType: Self.descriptionType, body: Array(text.utf8))
            answer.headers.add(name: "Location", value: StreamPath.session(kind, id).text)
            answer.headers.add(name: "ETag", value: tag)
            let ice = ICEServerOffer(
                iceServers, user: table.sessions[id]?.opening.caller, guest: .guest(), at: MonotonicClock.wallTime)
            for link in ice.servers.flatMap(\.links) { answer.headers.add(name: "Link", value: link) }
        case .taken: answer = HTTPAnswer(status: .noContent, body: [])
        case .restarted(let fragment, let tag):
            answer = HTTPAnswer(status: .ok, contentType: Self.fragmentType, body: Array(fragment.utf8))
            answer.headers.add(name: "ETag", value: tag)
        case .ended: answer = HTTPAnswer(status: .ok, contentType: "text/plain", body: [])
        case .failed(let problem): return failure(problem, request)
        }
        answer.share(with: request)
        return answer
    }

    /// The answer while nothing can be stored; `nil` if the request's path is not of a stream.
    func unwritten(_ request: RESTRequest) -> HTTPAnswer? {
        guard StreamPath(request.path) != nil else { return nil }
        let isAllowed = WebOrigin.isAllowed(request.headers, allowed: allowedOrigins)
        return failure(isAllowed ? .notStored : .unknownOrigin, request)
    }

    private func failure(_ failure: StreamFailure, _ request: RESTRequest) -> HTTPAnswer {
        var answer = HTTPAnswer.problem(failure, trace: request.trace)
        if failure != .unknownOrigin { answer.share(with: request) }
        return answer
    }

    /// What a browser asks before it asks (CORS), and what a client may ask to see what is taken here.
    private func options(_ request: RESTRequest, methods: String, _ headers: HTTPHeaders) -> HTTPAnswer {
        var answer = HTTPAnswer(status: .noContent, headers: headers, body: [])
        answer.headers.add(name: "Allow", value: methods)
        answer.share(with: request)
        guard request.headers.contains(name: "Origin") else { return answer }
        answer.headers.add(name: "Access-Control-Allow-Methods", value: methods)
        answer.headers.add(name: "Access-Control-Allow-Headers", value: "Authorization, Content-Type, If-Match")
        answer.headers.add(name: "Access-Control-Max-Age", value: "600")
        return answer
    }
}
