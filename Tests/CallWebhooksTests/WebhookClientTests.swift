import BotWire
import CallParticipation
import CallWebhooks
import Core
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@Suite("Requests to servers of calls", .timeLimit(.minutes(1)))
struct WebhookClientTests {
    private final class Warnings: Sendable {
        let all = Mutex<[String]>([])
    }

    private func address(_ text: String) throws -> WebAddress {
        try #require(WebAddress(text, WebAddress.Scheme.requests))
    }

    private func client(
        _ own: [String] = ["127.0.0.1"], allowed: [String] = [], secret: String? = nil,
        _ warnings: Warnings = Warnings()
    ) -> WebhookClient {
        WebhookClient(
            .init(own: own, allowed: allowed, section: "behaviour.flow", trustRoots: nil, secret: secret)
        ) { what, _ in warnings.all.withLock { $0.append(what) } }
    }

    private func ask(
        _ client: WebhookClient, _ url: String, _ form: FormFields = FormFields([.init("Digits", "1 2")]),
        method: Webhook.Method = .post, within time: Duration = .seconds(20), bytes: Int = 1_000
    ) async throws -> Result<WebhookClient.Answer, WebhookFault> {
        let question = WebhookQuestion(Webhook(try address(url), method), form: form, id: "CA1-1")
        return await client.ask(question, within: time, mostBytes: bytes)
    }

    private func fault(_ result: Result<WebhookClient.Answer, WebhookFault>) -> String? {
        if case .failure(let fault) = result { fault.message } else { nil }
    }

    private func refusal(of question: WebhookQuestion, _ location: String?) -> String? {
        do throws(WebhookFault) {
            _ = try question.redirected(302, to: location)
            return nil
        } catch {
            return error.message
        }
    }

    // MARK: Redirections

    @Test("303 and, as browsers do it, 301 and 302 become GET without the form; 307 and 308 repeat the request")
    func redirects() throws {
        let question = WebhookQuestion(
            Webhook(try address("https://a.example/x/y?z=1")), form: FormFields([.init("Digits", "1")]), id: "1")
        for status in [301, 302, 303] {
            let next = try #require(try question.redirected(status, to: "../b#part"))
            #expect(next.webhook == Webhook(try address("https://a.example/b"), .get) && next.form == FormFields())
        }
        for status in [307, 308] {
            let next = try #require(try question.redirected(status, to: "//b.example/c"))
            #expect(next.webhook == Webhook(try address("https://b.example/c")) && next.form == question.form)
        }
        for status in [200, 300, 304, 404, 500] { #expect(try question.redirected(status, to: "/b") == nil) }
    }

    @Test("No redirection leads from https to http, to a URL with a user, or nowhere; no message has the user")
    func refusesRedirects() throws {
        let question = WebhookQuestion(Webhook(try address("https://a.example/")))
        for location in ["http://a.example/", "https://u:secret@a.example/", "ftp://a.example/", nil] {
            let message = refusal(of: question, location)
            #expect(message?.hasPrefix("redirects") == true && message?.contains("secret") == false)
        }
        let plain = WebhookQuestion(Webhook(try address("http://a.example/")))
        #expect(try plain.redirected(302, to: "https://a.example/")?.webhook.address.scheme == .https)
    }

    @Test("Three redirections are followed, within the allowed hosts")
    func follows() async throws {
        let server = ScriptedWebServer { request in
            switch request.target {
            case "/3": .body("there")
            case "/away": .body("", status: 302, headers: ["Location: http://localhost:1/"])
            case "/loop": .body("", status: 307, headers: ["Location: /loop"])
            default:
                .body("", status: 307, headers: ["Location: /\((Int(request.target.dropFirst()) ?? 0) + 1)"])
            }
        }
        defer { server.stop() }
        let client = client()
        let answer = try (try await ask(client, "\(server.url)/0")).get()
        #expect(answer.body == Array("there".utf8) && answer.address.target == "/3")
        #expect(server.requests.map(\.body) == Array(repeating: "Digits=1+2", count: 4))
        #expect(fault(try await ask(client, "\(server.url)/loop")) == "redirects more than 3 times")
        #expect(
            fault(try await ask(client, "\(server.url)/away"))
                == "the host \"localhost\" is neither that of behaviour.flow.url nor one of behaviour.flow.allowed_hosts"
        )
        await client.finish()
    }

    // MARK: Faults

    @Test("A server that is silent, drips, floods or fails is given up in time and in bytes, with a cause")
    func faults() async throws {
        let server = ScriptedWebServer { request in
            switch request.target {
            case "/silence": .silence
            case "/drip": .drip
            case "/endless": .endless
            case "/long": .body(String(repeating: "x", count: 1_001))
            default: .body("no", status: 500)
            }
        }
        defer { server.stop() }
        let client = client()
        let (url, short) = (server.url, Duration.milliseconds(300))
        #expect(fault(try await ask(client, "\(url)/silence", within: short)) == "was not answered within 300 ms")
        #expect(fault(try await ask(client, "\(url)/drip", within: short)) == "was not answered within 300 ms")
        let host = "127.0.0.1:\(server.port)"
        for path in ["endless", "long"] {
            #expect(
                fault(try await ask(client, "\(url)/\(path)")) == "what \(host) answers has more than 1000 bytes.")
        }
        #expect(fault(try await ask(client, "\(url)/other")) == "answers with status 500")
        #expect(server.endlessBytes < 32 << 20)
        await client.finish()
    }

    @Test("A server that is not there, and a host that is not allowed, are refused with what to try")
    func unreachable() async throws {
        let server = ScriptedWebServer { _ in .silence }
        let url = server.url
        server.stop()
        let client = client()
        #expect(fault(try await ask(client, url))?.hasPrefix("nothing listens at 127.0.0.1:") == true)
        #expect(fault(try await ask(client, "http://127.0.0.2/"))?.contains("allowed_hosts") == true)
        await client.finish()
    }

    // MARK: Signatures and reports

    @Test("Requests are signed as Standard Webhooks and as Twilio have it, by GET, too; without a secret by neither")
    func signs() async throws {
        let server = ScriptedWebServer { _ in .body("ok") }
        defer { server.stop() }
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let signing = client(secret: secret)
        _ = try await ask(signing, "\(server.url)/a")
        _ = try await ask(signing, "\(server.url)/a?b=c", method: .get)
        let open = client()
        _ = try await ask(open, "\(server.url)/a")
        let requests = server.requests
        #expect(requests.map(\.target) == ["/a", "/a?b=c&Digits=1+2", "/a"])
        for (request, signed) in zip(requests, ["Digits=1+2", "b=c&Digits=1+2"]) {
            let seconds = try #require(Int64(request.headers["webhook-timestamp"] ?? ""))
            #expect(request.headers["webhook-id"] == "CA1-1")
            let key = try #require(WebhookSignature.key(of: secret))
            let fields = WebhookSignature.fields("CA1-1", at: seconds, Array(signed.utf8), keys: [key])
            #expect(request.headers["webhook-signature"] == fields.last?.value && fields.count == 3)
            let isGet = request.method == "GET"
            let form = isGet ? FormFields() : FormFields([.init("Digits", "1 2")])
            #expect(
                request.headers["x-twilio-signature"]
                    == TwilioSignature.text(of: server.url + request.target, form, token: secret))
        }
        #expect(requests[2].headers["webhook-signature"] == nil && requests[2].headers["x-twilio-signature"] == nil)
        await signing.finish()
        await open.finish()
    }

    @Test("After its end it asks nothing, and says so")
    func ended() async throws {
        let server = ScriptedWebServer { _ in .body("") }
        defer { server.stop() }
        let client = client()
        await client.finish()
        let answer = try await ask(client, server.url)
        #expect(fault(answer) == "is not asked, because the calls end")
        client.report(
            "completed", of: CallID(number: 1),
            WebhookQuestion(Webhook(try address(server.url)), form: FormFields([.init("CallStatus", "completed")])))
        #expect(server.requests.isEmpty)
    }

    @Test("Reports of a call come in order; one that is refused is lost with a warning")
    func reports() async throws {
        let server = ScriptedWebServer { request in
            request.body.contains("refuse") ? .body("", status: 400) : .body("")
        }
        defer { server.stop() }
        let warnings = Warnings()
        let client = client(["127.0.0.1"], allowed: [], secret: nil, warnings)
        for status in ["initiated", "refuse", "completed"] {
            let form = FormFields([.init("CallStatus", status)])
            client.report(
                status, of: CallID(number: 1), WebhookQuestion(Webhook(try address("\(server.url)/s")), form: form))
        }
        try await until { server.requests.count == 3 }
        #expect(
            server.requests.map(\.body) == ["CallStatus=initiated", "CallStatus=refuse", "CallStatus=completed"])
        await client.finish()
        #expect(
            warnings.all.withLock { $0 }
                == ["the status callback \"refuse\" has failed: its answer has the status 400"])
    }
}
