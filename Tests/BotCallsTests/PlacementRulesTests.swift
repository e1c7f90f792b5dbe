import BotWire
import CallWebhooks
import ConfigReader
import Testing
import Core

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

    private func rules(perMinute: Int = 600) -> PlacementRules {
        var calls = BotPlan.PlacedCalls(key: "SK1", password: Secret("secret"))
        calls.perMinute = perMinute
        return PlacementRules(calls)
    }

    private let hosts = HostGuard(own: ["bot.example"], allowed: ["other.example"], section: "behaviour.bot")

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

    @Test("As many calls as a minute allows may come at once; refused ones count, too")
    func rate() throws {
        var rules = rules(perMinute: 6)
        let (good, bad) = ("To=anna&From=a&Url=http://bot.example/", "To=anna&From=a&Url=http://192.0.2.1/")
        for _ in 0..<3 { #expect(try refusal(good, &rules) == nil) }
        for _ in 0..<3 { #expect(try refusal(bad, &rules)?.0 == .badRequest) }
        #expect(try refusal(good, &rules)?.0 == .tooMany && refusal(bad, &rules)?.0 == .tooMany)
        #expect(try refusal(good, &rules, at: Instant.zero.advanced(by: .seconds(9)))?.0 == .tooMany)
        #expect(try refusal(good, &rules, at: Instant.zero.advanced(by: .seconds(10))) == nil)
    }

    @Test("Every host that a request names must be allowed")
    func guarded() throws {
        var rules = rules()
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
