import Foundation
import SIP
import TestSupport
import Testing

/// A message of the RFC's, from Vectors.
func vector(_ name: String) throws -> [UInt8] {
    let url = try #require(Bundle.module.url(forResource: "Vectors/" + name, withExtension: nil))
    return [UInt8](try Data(contentsOf: url))
}

/// What an element does with a message.
enum Outcome: Equatable {
    /// It acts on it.
    case accepted
    /// It answers with this status.
    case refused(Int)
    /// It ignores it.
    case dropped

    /// The outcome at an element that serves every known method.
    init(_ bytes: [UInt8], methods: [SIPMethod] = everyMethod) {
        do throws(SIPParseError) {
            switch try SIPMessage(parsing: bytes) {
            case .request(let request):
                var screen = RequestScreen.userAgent
                screen.methods = methods
                screen.bodies += ["text/plain", "application/octet-stream"].compactMap { MediaType($0) }
                self = screen.refusal(of: request).map { .refused($0.status) } ?? .accepted
            case .response: self = .accepted
            }
        } catch {
            self = error.status.map { .refused($0) } ?? .dropped
        }
    }
}

let everyMethod: [SIPMethod] = [
    .invite, .ack, .bye, .cancel, .options, .prack, .update, .info, .refer, .notify, .register, .message,
]

@Suite("The torture messages of RFC 4475 and RFC 5118")
struct TortureTests {
    /// Sections of RFC 4475; where it leaves a choice, the reason of ours is given.
    static let outcomes4475: [(String, Outcome)] = [
        // 3.1.1: valid messages.
        ("wsinv", .accepted),
        // Valid, of a method that nobody has.
        ("intmeth", .refused(501)),
        ("esc01", .accepted), ("escnull", .accepted),
        // "RE%47IST%45R" is no REGISTER, for methods have no escapes.
        ("esc02", .refused(501)),
        ("lwsdisp", .accepted), ("longreq", .accepted), ("dblreq", .accepted), ("semiuri", .accepted),
        ("transports", .accepted), ("mpart01", .accepted), ("unreason", .accepted), ("noreason", .accepted),
        // 3.1.2: invalid messages.
        ("badinv01", .refused(400)), ("clerr", .refused(400)), ("ncl", .refused(400)), ("scalar02", .refused(400)),
        // A response that is malformed is ignored.
        ("scalarlg", .dropped),
        ("quotbal", .refused(400)), ("ltgtruri", .refused(400)), ("lwsruri", .refused(400)),
        ("lwsstart", .refused(400)), ("trws", .refused(400)), ("escruri", .refused(400)),
        // The date has no meaning here, so its time zone harms nothing.
        ("baddate", .accepted),
        ("regbadct", .refused(400)),
        // It could be read by guessing; we do not guess.
        ("badaspec", .refused(400)),
        // Its name is read (below); the original has no empty line behind its headers.
        ("baddn", .refused(400)),
        ("badvers", .refused(505)), ("mismatch01", .refused(400)),
        // 400 as good as 501: the mismatch is found before the method is looked at.
        ("mismatch02", .refused(400)),
        ("bigcode", .dropped),
        // 3.2: transaction layer. The promise of a unique branch is broken.
        ("badbranch", .refused(400)),
        // 3.3: application layer.
        ("insuf", .refused(400)), ("unkscm", .refused(416)), ("novelsc", .refused(416)), ("unksm2", .refused(400)),
        ("bext01", .refused(420)), ("invut", .refused(415)),
        // The challenge is the digest's business; the scheme that nobody knows is no syntax error.
        ("regaut01", .accepted),
        ("multi01", .refused(400)), ("mcl01", .refused(400)),
        // The second Via is found by whoever matches the response with its request.
        ("bcast", .accepted),
        // An endpoint serves it; a proxy would answer 483.
        ("zeromf", .accepted),
        ("cparam01", .accepted), ("cparam02", .accepted), ("regescrt", .accepted), ("sdp01", .refused(406)),
        // 3.4: backward compatibility.
        ("inv2543", .accepted),
        // In the archive, but not in the text: no version in the request line, and a line without a colon.
        ("test", .refused(400)),
    ]

    @Test("Each message of RFC 4475 has the outcome that the RFC gives it", arguments: outcomes4475)
    func rfc4475(name: String, outcome: Outcome) throws {
        #expect(Outcome(try vector("rfc4475/\(name).dat")) == outcome)
    }

    @Test("All 50 messages of RFC 4475 are tried")
    func completeness() throws {
        let folder = try #require(Bundle.module.url(forResource: "Vectors/rfc4475", withExtension: nil))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".dat") }
        #expect(names.count == 50)
        #expect(Set(names) == Set(Self.outcomes4475.map { $0.0 + ".dat" }))
    }

    static let outcomes5118: [(String, Outcome)] = [
        ("ipv6-good", .accepted), ("ipv6-bad", .refused(400)), ("port-ambiguous", .accepted),
        ("port-unambiguous", .accepted), ("via-received-param-with-delim", .accepted),
        ("via-received-param-no-delim", .accepted), ("ipv6-in-sdp", .accepted), ("mult-ip-in-header", .accepted),
        ("mult-ip-in-sdp", .accepted), ("ipv4-mapped-ipv6", .accepted),
        // The grammar of RFC 3261 allowed three colons by mistake; RFC 5954 takes that back.
        ("ipv6-bug-abnf-3-colons", .refused(400)), ("ipv6-correct-abnf-2-colons", .accepted),
    ]

    @Test("Each message of RFC 5118 has the outcome that the RFC gives it", arguments: outcomes5118)
    func rfc5118(name: String, outcome: Outcome) throws {
        #expect(Outcome(try wire(name)) == outcome)
    }

    /// The message as it is on the wire.
    private func wire(_ name: String) throws -> [UInt8] {
        var text = String(decoding: try vector("rfc5118/\(name)"), as: UTF8.self)
        if name.hasPrefix("ipv6-bug") || name.hasPrefix("ipv6-correct") { text += "\n" }
        // Lengths are printed for other line ends, and 268 for none.
        let body = text.components(separatedBy: "\n\n").last?.replacingOccurrences(of: "\n", with: "\r\n") ?? ""
        if !body.isEmpty {
            text = text.replacingOccurrences(
                of: "Content-Length: [0-9]+", with: "Content-Length: \(body.utf8.count)", options: .regularExpression)
        }
        return Array(text.replacingOccurrences(of: "\n", with: "\r\n").utf8)
    }

    @Test("What the short tortuous INVITE says is read right")
    func tortuousInvite() throws {
        let message = try SIPMessage(parsing: try vector("rfc4475/wsinv.dat"))
        let headers = message.headers
        #expect(headers.to?.tag == "1918181833n")
        #expect(headers.from?.displayName == "J Rosenberg \\\"")
        #expect(headers.from?.tag == "98asjd8")
        #expect(headers.sequence == CSeq(9, .invite))
        #expect(headers.number("Max-Forwards") == 68)
        #expect(headers["Subject"] == "")
        #expect(headers["newfangledheader"] == "newfangled value continued newfangled value")
        #expect(headers["UnknownHeaderWithUnusualValue"] == ";;,,;;,;")
        let vias = try #require(headers.vias)
        #expect(vias.map(\.transport) == ["UDP", "TCP", "UDP"])
        #expect(vias.map(\.branch) == ["390skdjuw", "z9hG4bK9ikj8", "z9hG4bK30239"])
        #expect(vias[0].transactionBranch == nil)
        let contact = try #require(headers.contacts?.first)
        #expect(contact.displayName == "Quoted string \"\"")
        #expect(contact.parameters["newparam"] == "newvalue")
        #expect(contact.parameters.contains("secondparam"))
        #expect(contact.parameters["q"] == "0.33")
        #expect(message.body.count == 150)
    }

    @Test("A datagram's bytes behind Content-Length are ignored")
    func secondRequest() throws {
        let message = try SIPMessage(parsing: try vector("rfc4475/dblreq.dat"))
        #expect(message.headers.callID == "dblreq.0ha0isndaksdj99sdfafnl3lk233412")
        #expect(message.body.isEmpty)
    }

    @Test("A multipart body with binary parts is opened")
    func multipart() throws {
        let message = try SIPMessage(parsing: try vector("rfc4475/mpart01.dat"))
        let parts = try #require(message.parts)
        #expect(parts.map(\.type.name) == ["text/plain", "application/octet-stream"])
        #expect(parts[0].bytes == Array("Hello".utf8))
        #expect(parts[1].bytes.starts(with: [0x30, 0x82, 0x01, 0x52]))
    }

    @Test("A refusal of a malformed request goes back by its Via, and not without one")
    func answers() throws {
        let error = #expect(throws: SIPParseError.self) {
            try SIPMessage(parsing: try vector("rfc4475/badvers.dat"))
        }
        #expect(error?.answer?.status == 505)
        #expect(error?.answer?.headers.callID == "badvers.31417@c.example.com")
        let unanswerable = #expect(throws: SIPParseError.self) {
            try SIPMessage(parsing: try vector("rfc4475/badinv01.dat"))
        }
        #expect(unanswerable?.status == 400)
        #expect(unanswerable?.answer == nil)
        let unsupported = try SIPMessage(parsing: try vector("rfc4475/bext01.dat"))
        guard case .request(let request) = unsupported else { throw TestFailure("a request") }
        let refusal = RequestScreen.userAgent.refusal(of: request)
        #expect(refusal?.headers["Unsupported"] == "nothingSupportsThis, nothingSupportsThisEither")
    }

    @Test("Methods that others serve get 405 with Allow")
    func unserved() throws {
        #expect(Outcome(try vector("rfc4475/cparam01.dat"), methods: [.invite, .ack]) == .refused(405))
    }

    @Test("RFC 4475 §3.1.2.15: A name without its quotation marks is read, since its end is certain")
    func unquotedName() throws {
        let message = try SIPMessage(parsing: try vector("rfc4475/baddn.dat") + Array("\r\n".utf8))
        #expect(message.headers.from?.displayName == "Bell, Alexander")
    }

    static let accepted = outcomes4475.filter { $0.1 == .accepted }.map { "rfc4475/\($0.0).dat" }

    @Test("What is read is written and read again the same", arguments: accepted)
    func roundTrip(name: String) throws {
        let message = try SIPMessage(parsing: try vector(name))
        let again = try SIPMessage(parsing: message.bytes)
        #expect(again.body == message.body)
        #expect(again.bytes == message.bytes)
        #expect(
            again.headers.all.filter { $0.name != "Content-Length" }
                == message.headers.all.filter { $0.name != "Content-Length" })
    }

    @Test("A message cut anywhere, and one with any byte changed, does not trap", arguments: accepted)
    func damage(name: String) throws {
        let bytes = try vector(name)
        // Every length, but for the longest message: there the square would take seconds.
        for count in stride(from: 0, to: bytes.count, by: bytes.count > 2_000 ? 13 : 1) {
            _ = try? SIPMessage(parsing: Array(bytes[..<count]))
        }
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<200 {
            var damaged = bytes
            damaged[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            if let message = try? SIPMessage(parsing: damaged) { _ = message.parts }
        }
    }
}

/// Something that a test needs is not there.
struct TestFailure: Error {
    let what: String
    init(_ what: String) { self.what = what }
}
