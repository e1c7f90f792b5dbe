import Testing

@testable import Tracing

/// The fields of a message in protobuf's binary form, read by the wire format alone.
private struct Message {
    enum Value: Equatable {
        case number(UInt64)
        case bytes([UInt8])
    }

    private(set) var fields: [(number: UInt64, value: Value)] = []

    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let tag = Self.varint(&rest) else { return nil }
            switch tag & 7 {
            case 0:
                guard let number = Self.varint(&rest) else { return nil }
                fields.append((tag >> 3, .number(number)))
            case 1, 5:
                let count = tag & 7 == 1 ? 8 : 4
                guard rest.count >= count else { return nil }
                let number = rest.prefix(count).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                rest = rest.dropFirst(count)
                fields.append((tag >> 3, .number(number)))
            case 2:
                guard let count = Self.varint(&rest), rest.count >= Int(count) else { return nil }
                fields.append((tag >> 3, .bytes(Array(rest.prefix(Int(count))))))
                rest = rest.dropFirst(Int(count))
            default: return nil
            }
        }
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var (number, shift) = (UInt64(0), UInt64(0))
        while let byte = rest.popFirst() {
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
        return nil
    }

    func number(_ field: UInt64) -> UInt64? {
        for case (field, .number(let number)) in fields { return number }
        return nil
    }

    func text(_ field: UInt64) -> String? { bytes(field).first.map { String(decoding: $0, as: UTF8.self) } }
    func messages(_ field: UInt64) -> [Message] { bytes(field).compactMap(Message.init) }

    func bytes(_ field: UInt64) -> [[UInt8]] {
        fields.compactMap { entry in
            if entry.number == field, case .bytes(let bytes) = entry.value { bytes } else { nil }
        }
    }
}

@Suite("Traces in OpenTelemetry's form")
struct TraceEncodingTests {
    private static func trace() throws -> Trace {
        let id = try #require(TraceID(high: 1, low: 2))
        var call = TraceSpan(try #require(SpanID(3)), "call", from: 1_000, to: 5_000)
        call.kind = .server
        call.parent = .remote(try #require(SpanID(9)))
        call.attributes = [
            .init("a", .text("")), .init("b", .whole(-1)), .init("c", .real(0.5)), .init("d", .whole(0)),
        ]
        call.events = [TraceSpan.Event("ringing", at: 2_000, [.init("e", .text("f"))])]
        call.links = [
            TraceContext(trace: try #require(TraceID(high: 0, low: 7)), span: try #require(SpanID(8)), isSampled: true)
        ]
        call.failure = "lost"
        var ice = TraceSpan(try #require(SpanID(4)), "ice", from: 3_000, to: 2_000)
        ice.parent = .own(call.id)
        return Trace(id, [call, ice])
    }

    @Test("A request has resource, scope, and spans with all that is known of them")
    func request() throws {
        let encoding = TraceEncoding(service: "desk", version: "1.2", instance: "i")
        let spans = TraceEncoding.spans(of: try Self.trace())
        let process = try #require(Message(encoding.request([spans, spans]))?.messages(1).first)
        let resource = try #require(process.messages(1).first).messages(1)
        #expect(resource.map { $0.text(1) } == ["service.name", "service.version", "service.instance.id"])
        #expect(resource.map { $0.messages(2).first?.text(1) } == ["desk", "1.2", "i"])
        let scope = try #require(process.messages(2).first)
        #expect(scope.messages(1).first?.text(1) == "handset" && scope.messages(2).count == 4)
        let (call, ice) = (scope.messages(2)[0], scope.messages(2)[1])
        #expect(call.bytes(1) == [[UInt8](repeating: 0, count: 7) + [1] + [UInt8](repeating: 0, count: 7) + [2]])
        #expect(call.bytes(2) == [[0, 0, 0, 0, 0, 0, 0, 3]] && call.bytes(4) == [[0, 0, 0, 0, 0, 0, 0, 9]])
        #expect(call.text(5) == "call" && call.number(6) == 2 && call.number(7) == 1_000 && call.number(8) == 5_000)
        #expect(call.number(16) == 0x301 && ice.number(16) == 0x101 && ice.bytes(4) == call.bytes(2))
        #expect(ice.number(6) == 1 && ice.number(7) == 3_000 && ice.number(8) == 3_000, "no end before the start")
        let values = call.messages(9).compactMap { $0.messages(2).first }
        #expect(values.count == 4 && values[0].text(1) == "" && values[1].number(3) == UInt64.max)
        #expect(values[2].number(4) == (0.5).bitPattern && values[3].number(3) == 0)
        let event = try #require(call.messages(11).first)
        #expect(event.number(1) == 2_000 && event.text(2) == "ringing" && event.messages(3).count == 1)
        let link = try #require(call.messages(13).first)
        #expect(link.bytes(2) == [[0, 0, 0, 0, 0, 0, 0, 8]] && link.number(6) == 0x301)
        #expect(call.messages(15).first?.text(2) == "lost" && call.messages(15).first?.number(3) == 2)
        #expect(ice.messages(15).isEmpty)
    }

    @Test("Lengths of several bytes are written as protobuf has them")
    func longText() throws {
        var span = TraceSpan(try #require(SpanID(1)), String(repeating: "n", count: 300), from: 0, to: 0)
        span.attributes = [.init("key", .text(String(repeating: "v", count: 20_000)))]
        let trace = Trace(try #require(TraceID(high: 0, low: 1)), [span])
        let read = try #require(Message(TraceEncoding.spans(of: trace))?.messages(2).first)
        #expect(read.text(5)?.count == 300 && read.messages(9).first?.messages(2).first?.text(1)?.count == 20_000)
        #expect(read.number(7) == nil, "0 is not written")
    }
}
