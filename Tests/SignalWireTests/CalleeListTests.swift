import SignalWire
import Testing

@Suite("Who may be called on a stranger's word")
struct CalleeListTests {
    private func admits(_ callee: String, _ patterns: String..., ownHost: String? = "sip.test") throws -> Bool {
        let list = try patterns.map { try #require(CalleePattern($0), "\($0)") }
        return CalleeList(list, ownHost: ownHost).admits(Callee(callee))
    }

    @Test("Only users whose name, or its beginning with an asterisk, is listed are admitted, byte by byte")
    func names() throws {
        #expect(!CalleeList().admits(Callee("anna")) && CalleeList().isEmpty)
        #expect(try admits("anna", "ben", "anna") && !admits("Anna", "anna") && !admits("ann", "anna"))
        #expect(try admits("team-x", "team-*") && !admits("tea", "team-*") && !admits("annabel", "anna"))
        #expect(try admits("anybody", "*") && admits("+4930", "*") && !admits("anna*", "anna"))
        // An e with its accent, in one character and in two.
        #expect(try !admits("e\u{301}", "\u{E9}") && admits("\u{E9}", "\u{E9}"))
    }

    @Test("The part that an asterisk matches has no host, no parameters, and no order to a network")
    func asterisk() throws {
        for rest in ["x@192.0.2.1:5070", "x;maddr=192.0.2.1", "x:y", "x?y", "x/y", "%40x", "*72", "#21", "x\r\ny"] {
            #expect(try !admits("team-\(rest)", "team-*"), "\(rest)")
        }
        #expect(try !admits("*72", "*") && !admits("anna@example.org", "*"))
    }

    @Test("A pattern of digits admits telephone numbers alone, as the routes of a trunk do")
    func numbers() throws {
        #expect(try admits("+4930123", "+4930*") && !admits("+4930", "+4930*") && !admits("+4940123", "+4930*"))
        #expect(try admits("200", "2??") && !admits("2000", "2??") && admits("112", "112"))
        for trick in ["900!123!456", "0900123456x", "p900123456", "9-00123456", "*72", "900123456;x=y", "900,123"] {
            #expect(try !admits(trick, "9*", "0900*", "+49*"), "\(trick)")
        }
    }

    @Test("A callee at another host needs that host in the pattern; hosts have one form")
    func hosts() throws {
        #expect(try admits("anna@example.org", "anna@example.org") && admits("anna@EXAMPLE.org.", "anna@example.org"))
        #expect(try admits("anna@example.org", "*@Example.ORG.") && !admits("anna@example.net", "*@example.org"))
        #expect(try !admits("anna", "anna@example.org") && !admits("anna@example.org:5070", "anna@example.org"))
        #expect(try admits("anna@example.org:5070", "anna@example.org:5070"))
        // The account's own host may be named, and need not.
        #expect(try admits("anna@SIP.test.", "anna") && admits("anna", "anna@sip.test"))
        #expect(try !admits("anna@sip.test", "anna", ownHost: nil))
        // An address has one form in brackets; without them its last group may be a port.
        #expect(try admits("anna@[2001:DB8:0::1]", "anna@[2001:db8::1]"))
        #expect(try !admits("anna@[2001:db8::2]", "anna@[2001:db8::1]"))
        #expect(try admits("anna@[2001:db8:0::1]:5070", "anna@[2001:db8::1]:5070"))
        #expect(try !admits("anna@[2001:db8::1]:5070", "anna@[2001:db8::1]") && !admits("anna@[::1]", "anna@::1"))
        #expect(try !admits("anna@[::ffff:192.0.2.1]", "anna@192.0.2.1"))
        #expect(try !admits("anna@[2001:db8::1]x", "anna@[2001:db8::1]"))
    }

    @Test(
        "What is no pattern is none",
        arguments: ["", "a*b", "**", "team-?", "sip:anna@example.org", "tel:+4930", "a:b@c", "anna@", "anna@*", "@x*"])
    func faulty(text: String) { #expect(CalleePattern(text) == nil) }
}
