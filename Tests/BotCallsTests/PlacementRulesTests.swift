import BotWire
import ConfigReader
import Testing
import Timekeeping

@testable import BotCalls

@Suite("Calls that a bot's server may place")
struct PlacementRulesTests {
    private func placed(_ fields: String) throws -> BotRequest.PlacedCall {
        let request = ServiceRequest(
            method: "POST", target: "/2010-04-01/Accounts/AC1/Calls.json",
            contentType: "application/x-www-form-urlencoded", body: Array(fields.utf8))
        guard case .place(let placed) = try BotRequest(request).order() else {
            throw ServiceFault(.badRequest, .twilio, "it places no call")
        }
        return placed
    }

    private func rules(_ callees: [String], perMinute: Int = 600) -> PlacementRules {
        var calls = BotPlan.PlacedCalls(key: "SK1", password: Secret("secret"))
        calls.callees = callees
        calls.perMinute = perMinute
        return PlacementRules(calls)
    }

    private let hosts = HostGuard(own: ["bot.example"], allowed: ["other.example"])

    /// The kind and Twilio's code of the refusal; nil if the call may be made.
    private func refusal(
        _ fields: String, _ rules: inout PlacementRules, at now: Instant = .zero
    ) throws -> (ServiceFault.Kind, Int64?)? {
        let placed = try placed(fields)
        do throws(ServiceFault) {
            try rules.check(placed, hosts, at: now)
            return nil
        } catch {
            return (error.kind, error.twilioCode)
        }
    }

    private func isAllowed(_ callee: String, _ callees: [String]) throws -> Bool {
        var rules = rules(callees)
        let refusal = try refusal("To=\(callee)&From=a&Url=http://bot.example/", &rules)
        if let refusal { #expect(refusal == (.forbidden, 21_216)) }
        return refusal == nil
    }

    @Test("Nobody may be called unless the list has the name, or its beginning with an asterisk, byte by byte")
    func callees() throws {
        #expect(try !isAllowed("anna", []))
        #expect(try isAllowed("anna", ["ben", "anna"]) && !isAllowed("Anna", ["anna"]) && !isAllowed("ann", ["anna"]))
        #expect(try isAllowed("%2B4930", ["+49*"]) && isAllowed("%2B49", ["+49*"]) && !isAllowed("%2B43", ["+49*"]))
        #expect(try isAllowed("anybody", ["*"]) && !isAllowed("anna*", ["anna"]) && !isAllowed("annabel", ["anna"]))
        // What the asterisk stands for leads to no other host.
        #expect(try !isAllowed("team-x%40192.0.2.1:5070", ["team-*"]) && !isAllowed("anna%40example.org", ["*"]))
        #expect(try isAllowed("anna%40example.org", ["anna@example.org"]))
        // An e with its accent, in one character and in two.
        #expect(try !isAllowed("e%CC%81", ["\u{E9}"]) && isAllowed("%C3%A9", ["\u{E9}"]))
    }

    @Test("As many calls as a minute allows may come at once; refused ones count, too")
    func rate() throws {
        var rules = rules(["anna"], perMinute: 6)
        let (good, bad) = ("To=anna&From=a&Url=http://bot.example/", "To=ben&From=a&Url=http://bot.example/")
        for _ in 0..<3 { #expect(try refusal(good, &rules) == nil) }
        for _ in 0..<3 { #expect(try refusal(bad, &rules)?.0 == .forbidden) }
        #expect(try refusal(good, &rules)?.0 == .tooMany && refusal(bad, &rules)?.0 == .tooMany)
        #expect(try refusal(good, &rules, at: Instant.zero.advanced(by: .seconds(9)))?.0 == .tooMany)
        #expect(try refusal(good, &rules, at: Instant.zero.advanced(by: .seconds(10))) == nil)
    }

    @Test("Every host that a request names must be allowed")
    func guarded() throws {
        var rules = rules(["*"])
        let form = "To=a&From=a&"
        func twiml(_ text: String) -> String {
            "Twiml=" + text.replacing("&", with: "%26").replacing("=", with: "%3D")
        }
        let good = [
            "Url=https://other.example/x", "Url=http://bot.example/&StatusCallback=http://other.example/",
            twiml("<Response><Connect><Stream url=\"wss://other.example/\"/></Connect></Response>"),
        ]
        for fields in good { #expect(try refusal(form + fields, &rules) == nil, "\(fields)") }
        let bad: [(String, Int64)] = [
            ("Url=http://169.254.169.254/latest", 21_205),
            ("Url=http://bot.example/&StatusCallback=http://127.0.0.1/", 21_609),
            (twiml("<Response><Connect><Stream url=\"ws://localhost/\"/></Connect></Response>"), 12_100),
            (
                twiml(
                    "<Response><Connect action=\"http://10.0.0.1/\"><Stream url=\"ws://bot.example/\"/></Connect></Response>"
                ), 12_100
            ),
            (
                twiml(
                    "<Response><Connect><Stream url=\"ws://bot.example/\" statusCallback=\"http://10.0.0.1/\"/></Connect></Response>"
                ), 12_100
            ),
            (twiml("<Response><Pause/><Redirect>http://[::1]/</Redirect></Response>"), 12_100),
        ]
        for (fields, code) in bad {
            let refusal = try #require(try refusal(form + fields, &rules), "\(fields)")
            #expect(refusal == (.badRequest, code), "\(fields)")
        }
    }
}
