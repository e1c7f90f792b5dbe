import SIP
import Testing

@Suite("Messages")
struct MessageTests {
    private func sip(_ text: String) throws -> SIPURI { try #require(AnyURI(text)?.sip) }

    @Test(
        "URIs that RFC 3261 §19.1.4 calls equivalent are",
        arguments: [
            ("sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtlanTa.CoM;Transport=tcp"),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5"),
            ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;newparam=5"),
            (
                "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
                "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com"
            ),
            (
                "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
                "sip:alice@atlanta.com?priority=urgent&subject=project%20x"
            ),
            ("sip:a@[2001:db8::1]", "sip:a@[2001:DB8:0::1]"),
            ("tel:+1-201-555-0123", "TEL:+12015550123"),
        ])
    func equivalent(left: String, right: String) throws {
        let (left, right) = (try #require(AnyURI(left)), try #require(AnyURI(right)))
        #expect(left.isEquivalent(to: right))
        #expect(right.isEquivalent(to: left))
    }

    @Test(
        "URIs that RFC 3261 §19.1.4 calls different are",
        arguments: [
            ("SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP"),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp"),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:6000;transport=tcp"),
            ("sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting"),
            ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"),
            ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off"),
            ("sip:a@b.example", "sips:a@b.example"), ("sip:b.example", "sip:a@b.example"),
            ("sip:a:x@b.example", "sip:a@b.example"), ("sip:a%2Fb@c.example", "sip:a/b@c.example"),
            ("sip:a@b.example;gr=1", "sip:a@b.example"), ("tel:+12015550123", "tel:12015550123"),
        ])
    func different(left: String, right: String) throws {
        let (left, right) = (try #require(AnyURI(left)), try #require(AnyURI(right)))
        #expect(!left.isEquivalent(to: right))
        #expect(!right.isEquivalent(to: left))
    }

    @Test(
        "Texts that are no URI are refused",
        arguments: [
            "sip:", "sip:@b.example", "sip:a@", "sip:a@b@c", "sip:a@b:70000", "sip:a@b:", "sip:a%4@b", "sip:a b@c",
            "sip:a@[::1", "sip:a@[1.2.3.4]", "sip:a@b;", "sip:a@b;x=", "sip:a@b?x", "tel:", "tel:abc-", "tel:+1;=x",
            "noscheme", ":x", "1x:y", "sip:a@b>", "sip:a@2001:db8::1",
        ])
    func noURI(text: String) { #expect(AnyURI(text) == nil) }

    @Test("A URI is written as it was read")
    func uriText() throws {
        for text in [
            "sip:alice:secret@atlanta.com:5080;transport=tcp;lr?Subject=x&Priority=urgent", "sips:[2001:db8::1]:5061",
            "tel:+1-201-555-0123;ext=7", "isbn:2983792873",
        ] {
            #expect(AnyURI(text)?.description == text)
        }
        let host = try #require(SIPHost("b.example"))
        #expect(SIPURI(user: "a b@c", host: host).description == "sip:a%20b%40c@b.example")
        #expect(SIPURI(user: "a b@c", host: host).plainUser == "a b@c")
    }

    @Test("A display name cannot add a header or leave its quotes")
    func hostileNames() throws {
        let name = "Eve\"\r\nEvil: 1\\"
        let address = NameAddress(try #require(AnyURI("sip:e@b.example")), displayName: name)
        var headers = SIPHeaders()
        for (name, value) in [
            ("Via", "SIP/2.0/UDP a.example;branch=z9hG4bKx"), ("From", address.description + ";tag=1"),
            ("To", "<sip:b@b.example>"), ("Call-ID", "1"), ("CSeq", "1 OPTIONS"), ("X-Bad", "1\r\nEvil: 2"),
        ] {
            headers.append(SIPHeaderName(name), value)
        }
        let uri = try #require(AnyURI("sip:b@b.example"))
        let read = try SIPMessage(
            parsing: SIPMessage.request(SIPRequest(method: .options, uri: uri, headers: headers)).bytes)
        #expect(read.headers["Evil"] == nil)
        #expect(read.headers.from?.displayName == "Eve\"  Evil: 1\\")
        #expect(read.headers.from?.tag == "1")
    }

    @Test(
        "RFC 4475 §3.1.2.15: A display name needs no quotation marks for any of its characters",
        arguments: [
            ("M\u{FC}ller <sip:a@b>;tag=1", "M\u{FC}ller"), ("Bell, Alexander <sip:a@b>;tag=1", "Bell, Alexander"),
            ("Bell [home] (2) <sip:a@b>;tag=1", "Bell [home] (2)"), ("Al <work> <sip:a@b>;tag=1", "Al <work>"),
            ("Al \"B\" <sip:a@b>;tag=1", "Al \"B\""), ("sip:x@y <sip:a@b>;tag=1", "sip:x@y"),
            ("M\u{FC}ller<sip:a@b>;tag=1;x=\"<\"", "M\u{FC}ller"),
        ])
    func unquotedNames(text: String, name: String) throws {
        let address = try #require(NameAddress(text))
        #expect(address.displayName == name && address.uri.description == "sip:a@b" && address.tag == "1")
        // What is written has quotation marks.
        #expect(NameAddress(address.description) == address)
    }

    @Test(
        "What is not certainly one name and one address is refused",
        arguments: [
            "\"Bell <sip:a@b>", "\"Bell\" x <sip:a@b>", "<sip:x@y> <sip:a@b>", "Bell <sip:x@y> <sip:a@b>",
            "sip:x@y;tag=1 <sip:a@b>", "M\u{FC}ller < sip:a@b>", "M\u{FC}ller <sip:a@b", "M\u{FC}ller",
            "M\u{FC}ller <sip:a@b> x",
        ])
    func uncertainNames(text: String) { #expect(NameAddress(text) == nil) }

    @Test("A list's names may have commas where people choose the names, and not in routes")
    func namesInLists() {
        var headers = SIPHeaders()
        headers.append("Contact", "Bell, Alexander G., M\u{FC}ller <sip:a@b>;q=1, \"x, y\" <sip:c@d>")
        headers.append("P-Asserted-Identity", "Bell, A <sip:a@b>, <tel:+1>")
        headers.append("Route", "Bell, A <sip:a@b>")
        #expect(headers.contacts?.map(\.displayName) == ["Bell, Alexander G., M\u{FC}ller", "x, y"])
        #expect(headers.addresses("P-Asserted-Identity")?.map(\.displayName) == ["Bell, A", nil])
        #expect(headers.addresses("Route") == nil)
        headers.set("Contact", "<sip:a@b>, Bell")
        #expect(headers.contacts == nil)
        headers.set("Contact", "*, <sip:a@b>")
        #expect(headers.contacts == nil)
    }

    @Test("Compact names are their long ones, unknown headers stay in order, and lists go over several lines")
    func headerNames() throws {
        let text =
            "SIP/2.0 200 OK\r\nv: SIP/2.0/UDP a;branch=z9hG4bK1 , SIP/2.0/TCP b\r\nX-B: 2\r\nf: <sip:a@a>;tag=1\r\n"
            + "t: \"x, <y\" <sip:b@b>;tag=2\r\nVia: SIP/2.0/WSS c\r\nX-A: 1\r\nx-b: 3\r\ni: q\r\nCSeq: 1 INVITE\r\n"
            + "k: timer, 100REL\r\nx: 1800;refresher=uas\r\nr: <sip:c@c>\r\nReason: Q.850;cause=16, SIP;cause=200;text=\"Call, elsewhere\"\r\n\r\n"
        let message = try SIPMessage(parsing: Array(text.utf8))
        let headers = message.headers
        #expect(headers.vias?.map(\.transport) == ["UDP", "TCP", "WSS"])
        #expect(headers.all.filter { $0.name.text.uppercased().hasPrefix("X-") }.map(\.value) == ["2", "1", "3"])
        #expect(headers.lines("X-B") == ["2", "3"])
        #expect(headers.to?.displayName == "x, <y")
        #expect(headers.tokens("Supported") == ["timer", "100rel"])
        #expect(headers.sessionExpires == SessionExpires(seconds: 1800, refresher: .uas))
        #expect(headers.addresses("Refer-To")?.count == 1)
        #expect(headers.reasonCause == 200)
        #expect(String(decoding: message.bytes, as: UTF8.self).contains("\r\nf: <sip:a@a>;tag=1\r\n"))
    }

    @Test("A malformed contact spoils a request and an answer to INVITE, and not an answer to REGISTER")
    func malformedContact() throws {
        func message(_ first: String, _ method: String) throws -> SIPMessage {
            let text =
                "\(first)\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1\r\nFrom: <sip:a@a>;tag=1\r\nTo: <sip:b@b>;tag=2\r\nCall-ID: q\r\n"
                + "CSeq: 1 \(method)\r\nContact: <sip:ours@c>\r\nContact: <<broken\r\nContent-Length: 0\r\nl: 0\r\n\r\n"
            return try SIPMessage(parsing: Array(text.utf8))
        }
        let answer = try message("SIP/2.0 200 OK", "REGISTER")
        #expect(
            answer.headers.contacts == nil && answer.headers.readableContacts.map(\.uri.description) == ["sip:ours@c"])
        #expect(throws: SIPParseError.self) { try message("SIP/2.0 200 OK", "INVITE") }
        #expect(throws: SIPParseError.self) { try message("REGISTER sip:b SIP/2.0", "REGISTER") }
    }

    @Test("Values of the extensions are read and written")
    func values() throws {
        var headers = SIPHeaders()
        headers.append("RAck", "776656 1 INVITE")
        headers.append("RSeq", "988789")
        headers.append("Replaces", "98732@sip.example.com ;from-tag=r33th4x0r;to-tag=ff87ff;early-only")
        headers.append("Event", "refer;id=93809824")
        headers.append("Retry-After", "18000;duration=3600 (in a meeting)")
        #expect(headers.reliableAck?.description == "776656 1 INVITE")
        #expect(headers.reliableSequence == 988_789)
        #expect(headers.replaces?.callID == "98732@sip.example.com")
        #expect(headers.replaces?.isEarlyOnly == true)
        #expect(headers.replaces?.description == "98732@sip.example.com;to-tag=ff87ff;from-tag=r33th4x0r;early-only")
        #expect(headers.event?.parameters["id"] == "93809824")
        #expect(headers.retryAfterSeconds == 18_000)
    }

    @Test("Via notes where a request came from, and a name that differs")
    func received() throws {
        var via = try #require(Via("SIP/2.0/UDP 10.1.1.1:4540;rport;branch=z9hG4bKkjshdyff"))
        via.stamp(sourceHost: "192.0.2.1", sourcePort: 9_988)
        #expect(via.parameters["received"] == "192.0.2.1")
        #expect(via.parameters["rport"] == "9988")
        var same = try #require(Via("SIP/2.0/UDP [2001:db8::1]:5060;branch=z9hG4bKk"))
        same.stamp(sourceHost: "2001:db8:0::1", sourcePort: 1)
        #expect(same.parameters["received"] == nil)
        #expect(same.parameters["rport"] == nil)
    }

    @Test("A message beyond a bound is refused, and one at it is read")
    func bounds() throws {
        func message(headers: Int, value: Int) -> [UInt8] {
            var text = "OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1\r\nFrom: <sip:a@a>;tag=1\r\n"
            text += "To: <sip:b@b>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\n"
            for _ in 0..<headers { text += "X: " + String(repeating: "x", count: value) + "\r\n" }
            return Array((text + "\r\n").utf8)
        }
        #expect(throws: Never.self) { try SIPMessage(parsing: message(headers: SIPLimits.headers - 5, value: 1)) }
        #expect(Outcome(message(headers: SIPLimits.headers, value: 1)) == .refused(513))
        #expect(Outcome(message(headers: 1, value: SIPLimits.valueBytes)) == .accepted)
        #expect(Outcome(message(headers: 1, value: SIPLimits.valueBytes + 1)) == .refused(400))
        #expect(Outcome(message(headers: 8, value: 8_000)) == .refused(513))
        let long = "OPTIONS sip:" + String(repeating: "a", count: SIPLimits.uriBytes) + " SIP/2.0\r\n"
        #expect(
            Outcome(Array(long.utf8) + message(headers: 0, value: 0).drop { $0 != 10 }.dropFirst()) == .refused(414))
    }

    @Test("A stream is cut into messages wherever its pieces end, with keepalives between")
    func framing() throws {
        let one = Array("OPTIONS sip:a@b SIP/2.0\r\nl: 4\r\n\r\nbody".utf8)
        let stream = one + [13, 10, 13, 10] + one + [13, 10] + one
        for size in [1, 2, 3, 7, stream.count] {
            var framer = SIPStreamFramer()
            var elements: [SIPStreamFramer.Element] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                try framer.take(Array(stream[start..<min(start + size, stream.count)]), into: &elements)
            }
            #expect(elements.filter { $0 == .message(one) }.count == 3)
            #expect(framer.waitingBytes == 0)
            if size == stream.count {
                #expect(elements == [.message(one), .ping, .message(one), .pong, .message(one)])
            }
        }
    }

    @Test("A stream without Content-Length or beyond the bounds ends with an error")
    func framingErrors() {
        for text in [
            "OPTIONS sip:a@b SIP/2.0\r\nX: 1\r\n\r\n", "OPTIONS sip:a@b SIP/2.0\r\nl: 1\r\nl: 2\r\n\r\n",
            "OPTIONS sip:a@b SIP/2.0\r\nl: 99999999999999999999999\r\n\r\n", "OPTIONS sip:a@b SIP/2.0\r\nl: -1\r\n\r\n",
            String(repeating: "x", count: SIPLimits.headerBytes + 1),
        ] {
            var framer = SIPStreamFramer()
            var elements: [SIPStreamFramer.Element] = []
            #expect(throws: SIPParseError.self) { try framer.take(Array(text.utf8), into: &elements) }
            #expect(elements.isEmpty)
        }
    }

    @Test("A body of many parts, or of one that does not end, is refused")
    func parts() throws {
        func message(_ body: String) throws -> SIPMessage {
            let head =
                "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP a\r\nFrom: <sip:a@a>;tag=1\r\nTo: <sip:b@b>;tag=2\r\nCall-ID: 1\r\n"
                + "CSeq: 1 INVITE\r\nContent-Type: multipart/mixed; boundary=\"a b\"\r\n\r\n"
            return try SIPMessage(parsing: Array((head + body).utf8))
        }
        let sdp = "--a b\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n\r\n"
        #expect(try message(sdp + "--a b--").sessionDescription == Array("v=0\r\n".utf8))
        #expect(try message(sdp).parts == nil)
        #expect(try message(String(repeating: sdp, count: SIPLimits.parts) + "--a b--").parts?.count == SIPLimits.parts)
        #expect(try message(String(repeating: sdp, count: SIPLimits.parts + 1) + "--a b--").parts == nil)
    }
}
