import Foundation
import JSON
import Testing

@testable import ControlWire

/// What the interfaces of exchange and trunk have in common: they are tables of routes.
@Suite("The interfaces of exchange and trunk")
struct InterfaceTests {
    private func names(_ value: JSONValue?) -> Set<String> {
        guard case .object(let members)? = value else { return [] }
        return Set(members.keys)
    }

    @Test(
        "The description has every route, with its variables, answers and problems, and references that lead somewhere",
        arguments: [
            (ExchangeDescription.document, ExchangeRoute.all as [any InterfaceRoute]),
            (TrunkDescription.document, TrunkRoute.all as [any InterfaceRoute]),
        ])
    func description(_ document: JSONValue, _ routes: [any InterfaceRoute]) throws {
        #expect(document["openapi"] == "3.1.0")
        for route in routes {
            let operation = try #require(document["paths"]?[route.path]?[route.method.rawValue.lowercased()])
            #expect(operation["operationId"] == .string(route.name))
            #expect(names(operation["responses"]).contains { $0.hasPrefix("2") })
            let text = String(decoding: ControlCoding.line(operation), as: UTF8.self)
            for code in ["unauthorized", "token_in_url", "foreign_host", "foreign_origin", "not_found"] {
                #expect(text.contains("\"\(code)\""), "\(route.path) \(code)")
            }
            for part in route.parts where part.hasPrefix("{") {
                #expect(text.contains(#""in":"path","name":"\#(part.dropFirst().dropLast())""#), "\(route.path)")
            }
            #expect((operation["requestBody"] != nil) == (route.method == .post))
        }
        let text = String(decoding: ControlCoding.line(document), as: UTF8.self)
        for part in text.components(separatedBy: "#/components/schemas/").dropFirst() {
            #expect(document["components"]?["schemas"]?[String(part.prefix { $0 != "\"" })] != nil)
        }
        #expect(Set(routes.map(\.name)).count == routes.count)
    }

    @Test("A trunk's schemas have the members that are written")
    func trunkSchemas() throws {
        let schemas = try #require(TrunkDescription.document["components"]?["schemas"])
        func expect(_ value: some Encodable, is name: String) throws {
            let written = try JSONDecoder().decode(JSONValue.self, from: Data(ControlCoding.line(value)))
            #expect(names(schemas[name]?["properties"]) == names(written), "\(name)")
        }
        let account = TrunkWire.Account(side: "network", connection: "connected", user: "u", server: "s", callCount: 1)
        try expect(account, is: "Account")
        var call = TrunkWire.Call(call: 1, side: "network", from: "a", dialled: "200", to: "bob")
        (call.name, call.talk, call.exchangeCall, call.networkCall) = ("Ann", 1, 2, 1)
        try expect(call, is: "Call")
        try expect(
            TrunkWire.Status(
                version: "1", pid: 1, uptime: 1, draining: false, callCount: 1, mostCalls: 10, obstacles: [],
                accounts: [account], counters: [:], events: ControlEventsState(cursor: "c", clients: 0, dropped: 0)),
            is: "Status")
    }
}

@Suite("Requests to a trunk over HTTP")
struct TrunkOperationTests {
    private func work(
        _ method: String, _ target: String, body: String = ""
    ) throws(ControlProblem) -> TrunkOperation.Work {
        try TrunkOperation(
            ControlHTTPRequest(method, target, contentType: "application/json", body: Array(body.utf8))
        ).work
    }

    private func code(_ method: String, _ target: String, body: String = "") -> String? {
        do throws(ControlProblem) {
            _ = try work(method, target, body: body)
            return nil
        } catch {
            return "\(error.status) \(error.fault.code.rawValue)"
        }
    }

    @Test(
        "Methods and paths are requests",
        arguments: [
            ("GET", "/v1/status", .status), ("HEAD", "/v1/status", .status), ("GET", "/v1/accounts", .accounts),
            ("GET", "/v1/calls", .calls(after: 0, limit: TrunkRequest.mostEntries)),
            ("GET", "/v1/calls?after=7&limit=2", .calls(after: 7, limit: 2)), ("GET", "/v1/calls/3", .call(3)),
            ("POST", "/v1/calls/3/hangup", .hangUp(3)), ("POST", "/v1/drain", .drain(true)),
            ("POST", "/v1/undrain", .drain(false)),
        ] as [(String, String, TrunkRequest)])
    func requests(_ method: String, _ target: String, _ request: TrunkRequest) throws {
        guard case .request(let found) = try work(method, target) else {
            Issue.record("\(target) is no request")
            return
        }
        #expect(found == request)
    }

    @Test(
        "What is no request is a problem with its code",
        arguments: [
            ("GET", "/v1/users", "404 not_found"), ("GET", "v1/status", "404 not_found"), ("GET", "", "404 not_found"),
            ("GET", "/v1/calls/0", "404 not_found"), ("GET", "/v1/calls/x", "404 not_found"),
            ("GET", "/v1/calls/99999999999999999999", "404 not_found"),
            ("POST", "/v1/status", "405 method_not_allowed"), ("HEAD", "/v1/events", "405 method_not_allowed"),
            ("GET", "/v1/calls/1/hangup", "405 method_not_allowed"),
            ("GET", "/v1/calls?limit=0", "422 wrong_value"), ("GET", "/v1/calls?limit=101", "422 wrong_value"),
            ("GET", "/v1/calls?account=a", "422 wrong_value"), ("GET", "/v1/events?after=x", "422 wrong_value"),
            ("GET", "/v1/status?token=abc", "400 token_in_url"),
        ])
    func problems(_ method: String, _ target: String, _ expected: String) {
        #expect(code(method, target) == expected)
    }

    @Test("A body has no members, is JSON, and is short")
    func bodies() {
        #expect(code("POST", "/v1/drain", body: "{}") == nil)
        #expect(code("POST", "/v1/drain", body: #"{"now":true}"#) == "422 wrong_value")
        #expect(code("POST", "/v1/drain", body: "[]") == "400 malformed")
        #expect(code("POST", "/v1/drain", body: String(repeating: "x", count: 9_000)) == "413 too_long")
    }

    @Test("An event is one line with its name and time, and no member that it does not have")
    func event() {
        var happening = TrunkHappening(.callEnded)
        (happening.call, happening.side, happening.reason) = (3, "network", "completed")
        (happening.endedBy, happening.talk) = ("operator", 1_500)
        #expect(
            String(decoding: happening.line(atMilliseconds: 7), as: UTF8.self)
                == #"{"at_ms":7,"call":3,"ended_by":"operator","event":"call_ended","reason":"completed","side":"network","#
                + "\"talk_ms\":1500}\n")
    }
}
