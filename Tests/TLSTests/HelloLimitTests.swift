import Testing

@testable import TLS

@Suite("The longest hello")
struct HelloLimitTests {
    private static func record(_ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
        [kind, 3, 1, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
    }

    /// The head of a hello that says this length.
    private static func hello(_ length: Int) -> [UInt8] {
        [1, UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255)]
    }

    private static func server() throws -> TestEnd {
        TestEnd(try TLSSession(of: try .server(try TestAuthority().identity(), protocols: [])))
    }

    private static func isAdmitted(_ bytes: [UInt8], cutAt cut: Int? = nil) -> Bool {
        var limit = HelloLimit()
        let (first, second) = (Array(bytes[..<(cut ?? 0)]), Array(bytes[(cut ?? 0)...]))
        return limit.admits(first.span) && limit.admits(second.span)
    }

    @Test("A server refuses a hello of more than 4 KiB at its first bytes")
    func refused() throws {
        for length in [HelloLimit.bytes + 1, 131_000, 0xFF_FFFF] {
            let server = try Self.server()
            let error = #expect(throws: TLSError.self) { try server.receive(Self.record(22, Self.hello(length))) }
            #expect(error?.code == .broken && error?.description.contains("\(HelloLimit.bytes)") == true)
        }
        let server = try Self.server()
        try server.receive(Self.record(22, Self.hello(HelloLimit.bytes)))
        #expect(!server.isOpen)
    }

    @Test("However a long hello is cut into records and pieces, it is found, also as the second message")
    func pieces() {
        let long = Self.hello(20_000)
        let short = Self.hello(300) + [UInt8](repeating: 7, count: 300)
        let streams: [[UInt8]] = [
            Self.record(22, long), long.flatMap { Self.record(22, [$0]) },
            Self.record(22, short) + Self.record(20, [1]) + Self.record(22, long + [1, 2, 3]),
            Self.record(22, Array(short[..<100])) + Self.record(22, []) + Self.record(22, Array(short[100...]) + long),
        ]
        for stream in streams {
            #expect(!Self.isAdmitted(stream))
            for cut in 0..<stream.count { #expect(!Self.isAdmitted(stream, cutAt: cut)) }
        }
    }

    @Test("A hello of the limit's length, other messages and encrypted records pass, however they are cut")
    func passed() {
        let body = [UInt8](repeating: 255, count: 300)
        var stream = Self.record(22, Self.hello(300) + body)
        stream += Self.record(20, [1])
        stream += Self.record(22, [11, 1, 0, 0] + body)
        stream += Self.record(23, [1, 255, 255, 255] + body)
        #expect(Self.isAdmitted(stream) && Self.isAdmitted(Self.record(22, Self.hello(HelloLimit.bytes) + body)))
        for cut in 0..<stream.count { #expect(Self.isAdmitted(stream, cutAt: cut)) }
    }
}
