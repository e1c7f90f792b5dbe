import SDP
import TestSupport
import Testing

@Suite("Session descriptions")
struct SessionDescriptionTests {
    @Test("RFC 8866's example is read line by line")
    func rfc8866() throws {
        let description = try SessionDescription(parsing: Examples.rfc8866)
        #expect(description.origin.username == "jdoe")
        #expect(description.origin.sessionID == "3724394400")
        #expect(description.origin.version == "3724394405")
        #expect(description.origin.address.address == "198.51.100.1")
        #expect(description.name == "Call to John Smith")
        #expect(description.otherLines.map(\.type) == ["i", "u", "e", "p"])
        #expect(description.connection == ConnectionAddress(address: "198.51.100.1"))
        #expect(description.times == ["0 0"])
        #expect(description.media.map(\.kind) == ["audio", "audio", "video"])
        #expect(description.media.map(\.port) == [49_170, 49_180, 51_372])
        #expect(description.media[2].connection?.address == "2001:db8::2")
        #expect(
            description.media[2].rtpMap(99) == RTPMap(payloadType: 99, encoding: "h263-1998", clockRate: 90_000))
    }

    @Test("Every example reads back the same after it is written", arguments: Examples.all)
    func roundTrip(text: String) throws {
        let description = try SessionDescription(parsing: text)
        let written = description.serialized()
        #expect(try SessionDescription(parsing: written) == description)
        #expect(try SessionDescription(parsing: written).serialized() == written)
    }

    @Test("The examples whose lines are in RFC 8866's order are written byte for byte as they were")
    func exactText() throws {
        for text in [Examples.rfc8866, Examples.chromium, Examples.softphone, Examples.firefoxLike] {
            #expect(try SessionDescription(parsing: text).serialized() == text)
        }
    }

    @Test("Blanks at the end of a line, and a colon behind a flag, change nothing", arguments: [" ", "\t", "  \t "])
    func blanksAtTheEnd(blanks: String) throws {
        let lines = [
            "v=0", "o=- 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0", "m=audio 5000 RTP/AVP 0",
            "a=rtpmap:0 PCMU/8000", "a=sendonly", "a=rtcp-mux",
        ]
        let plain = try SessionDescription(parsing: lines.joined(separator: "\r\n"))
        #expect(plain.media[0].direction == .sendonly)
        #expect(
            try SessionDescription(parsing: lines.map { $0 == "s=-" ? $0 : $0 + blanks }.joined(separator: "\r\n"))
                == plain)
        for colon in [":", blanks + ":", blanks + ":" + blanks] {
            let colons = lines.map { $0.hasPrefix("a=s") || $0.hasSuffix("mux") ? $0 + colon : $0 }
            #expect(try SessionDescription(parsing: colons.joined(separator: "\n")) == plain)
        }
    }

    @Test("Lines may end in LF or CR alone, and blank ones are passed over")
    func lineEnds() throws {
        let expected = try SessionDescription(parsing: Examples.softphone)
        for end in ["\n", "\r", "\r\n\r\n", "\n  \n"] {
            let text = Examples.softphone.split(whereSeparator: \.isNewline).joined(separator: end)
            #expect(try SessionDescription(parsing: text) == expected)
        }
    }

    @Test("Unknown letters are ignored, and missing s= and t= lines are put in")
    func leniency() throws {
        let text = "v=0\no=- 1 1 IN IP4 192.0.2.1\nX=what\nm=audio 5 RTP/AVP 0\ny=1\na=sendonly\n"
        let description = try SessionDescription(parsing: text)
        #expect(description.name == "-")
        #expect(description.times == ["0 0"])
        #expect(description.media[0].direction == .sendonly)
    }

    @Test(
        "Faults are reported with their line",
        arguments: [
            ("", 1, SDPError.Code.missingLine), ("o=- 1 1 IN IP4 192.0.2.1\n", 1, .missingLine),
            ("v=0\n", 1, .missingLine),
            ("v=1\n", 1, .malformedValue), ("v=0\r\no=- 1 1 IN IP4\r\n", 2, .malformedValue),
            ("v=0\no=\u{0} 1 1 IN IP4 192.0.2.1\n", 2, .malformedLine),
            ("v=0\nhello\n", 2, .malformedLine), ("v=0\na\n", 2, .malformedLine),
            ("v=0\n\no=- 1 1 IN IP4 192.0.2.1\nc=IN IP5 1\n", 4, .malformedValue),
            ("v=0\no=- 1 1 IN IP4 192.0.2.1\nm=audio 70000 RTP/AVP 0\n", 3, .malformedValue),
            ("v=0\no=- 1 1 IN IP4 192.0.2.1\nm=audio -1 RTP/AVP 0\n", 3, .malformedValue),
            ("v=0\no=- 1 1 IN IP4 192.0.2.1\nm=audio 5/x RTP/AVP 0\n", 3, .malformedValue),
            ("v=0\no=- 1 1 IN IP4 192.0.2.1\nm=audio 5\n", 3, .malformedValue),
            (String(repeating: "a", count: 65_537), 1, .tooLong),
        ])
    func faults(text: String, line: Int, code: SDPError.Code) {
        do {
            _ = try SessionDescription(parsing: text)
            Issue.record("read without an error")
        } catch {
            #expect(error.line == line)
            #expect(error.code == code)
        }
    }

    @Test("Attributes with a meaning are found in Chromium's offer")
    func chromiumAttributes() throws {
        let description = try SessionDescription(parsing: Examples.chromium)
        let audio = description.media[0]
        #expect(audio.mid == "0")
        #expect(audio.setup == "actpass")
        #expect(audio.iceUsernameFragment == "4ZcD")
        #expect(audio.candidates.count == 1)
        #expect(audio.fingerprints.first?.hasPrefix("sha-256 6B") == true)
        #expect(audio.offersRTCPMux)
        #expect(audio.sources.ssrcs == [1_399_488_325])
        #expect(audio.sources.canonicalName == "ix4nqy4rFMrCvZbN")
        #expect(audio.rtcpEndpoint?.port == 9)
        #expect(audio.rtcpEndpoint?.address?.address == "0.0.0.0")
        #expect(audio.formatParameters(111) == "minptime=10;useinbandfec=1")
    }

    @Test("A value cannot begin lines of its own")
    func injection() throws {
        let origin = SessionDescription.Origin(
            sessionID: "1", version: "1", address: ConnectionAddress(address: "192.0.2.1"))
        var description = SessionDescription(origin: origin, name: "x\r\na=evil")
        description.attributes = [SDPAttribute("tool", "y\nm=audio 9 RTP/AVP 0")]
        let read = try SessionDescription(parsing: description.serialized())
        #expect(read.attributes == [SDPAttribute("tool", "ym=audio 9 RTP/AVP 0")])
        #expect(read.media.isEmpty)
    }

    @Test("AUTH-12: A description that is printed, interpolated or dumped shows no key and no password")
    func noSecretsInText() throws {
        var texts: [String] = []
        for example in [Examples.softphone, Examples.chromium, Examples.firefoxLike] {
            let description = try SessionDescription(parsing: example)
            texts += ["\(description)", String(reflecting: description), "\(description.media)"]
            texts += ["\(description.media[0].attributes)", "\(description.media[0].cryptoAttributes)"]
            var dumped = ""
            dump(description, to: &dumped)
            dump(description.media, to: &dumped)
            dump(description.media[0].cryptoAttributes, to: &dumped)
            texts.append(dumped)
        }
        for text in texts {
            for secret in ["d0Rmdmcm", "NzB4d1BI", "2/1muCWo", "AQIDBAUG", "1, 2, 3, 4", "- 1\n"] {
                #expect(!text.contains(secret))
            }
        }
    }

    @Test("Descriptions cut at any length never trap", arguments: Examples.all)
    func truncation(text: String) {
        let bytes = Array(text.utf8)
        for length in 0..<bytes.count {
            if let description = try? SessionDescription(parsing: Array(bytes.prefix(length))) {
                #expect((try? SessionDescription(parsing: description.serialized())) != nil)
            }
        }
    }

    @Test("Randomly changed descriptions never trap, and what is read can be written and read again")
    func mutation() {
        var generator = SeededGenerator(seed: 2)
        let letters = Array("=: \r\n/|;,0123456789am-\u{0}".utf8)
        var read = 0
        for index in 0..<3_000 {
            var bytes = Array(Examples.all[index % Examples.all.count].utf8)
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                let position = Int.random(in: bytes.indices, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[position] = letters.randomElement(using: &generator) ?? 0
                case 1: bytes.remove(at: position)
                default: bytes.insert(.random(in: 0...255, using: &generator), at: position)
                }
            }
            guard let description = try? SessionDescription(parsing: bytes) else { continue }
            read += 1
            #expect((try? SessionDescription(parsing: description.serialized())) != nil)
            _ = description.media.map { section in
                (section.cryptoAttributes, section.sources.ssrcs.first, section.rtcpEndpoint?.port, section.direction)
            }
        }
        #expect(read > 500)
    }
}
