import Core
import ICE
import TestSupport
import Testing

@Suite("STUN messages")
struct STUNMessageTests {
    private static let id = TransactionID(high: 1, low: 2)
    private static let key = STUNKey(shortTerm: "secret")

    @Test("A message cut short anywhere is refused, and so is one with bytes to spare")
    func truncation() {
        for length in 0..<Vectors.request.count {
            #expect(throws: STUNParseError.self) { try STUNMessage(parsing: Array(Vectors.request.prefix(length))) }
        }
        #expect(throws: STUNParseError.self) { try STUNMessage(parsing: Vectors.request + [0, 0, 0, 0]) }
    }

    @Test("A message cut short with its length made to fit never passes for the whole")
    func truncationWithRightLength() {
        for length in stride(from: 20, to: Vectors.request.count, by: 4) {
            var bytes = Array(Vectors.request.prefix(length))
            bytes[2] = UInt8((length - 20) >> 8)
            bytes[3] = UInt8((length - 20) & 0xFF)
            guard let message = try? STUNMessage(parsing: bytes) else { continue }
            let isWhole = length == Vectors.request.count - 8  // All but the fingerprint is covered by itself.
            #expect((message.integrity(STUNKey(shortTerm: Vectors.password)) == .valid) == isWhole)
            #expect(message.fingerprint == .absent)
        }
    }

    @Test("Any bytes with a right header are read without harm")
    func randomBytes() {
        var generator = SeededGenerator(seed: 5)
        var read = 0
        for _ in 0..<20_000 {
            var bytes = [UInt8](repeating: 0, count: 20 + 4 * Int.random(in: 0...40, using: &generator))
            for index in bytes.indices { bytes[index] = .random(in: 0...255, using: &generator) }
            bytes.replaceSubrange(4..<8, with: [0x21, 0x12, 0xA4, 0x42])
            bytes[0] &= 0x3F
            bytes[2] = 0
            bytes[3] = UInt8(bytes.count - 20)
            // Mostly short attributes, so that the walk goes far.
            for index in stride(from: 22, to: bytes.count - 1, by: 8) where index % 3 != 0 { bytes[index] = 0 }
            guard let message = try? STUNMessage(parsing: bytes) else { continue }
            read += 1
            for type in [STUNAttributeType.xorMappedAddress, .mappedAddress, .xorPeerAddress] {
                _ = message.address(type)
                _ = message.addresses(type)
            }
            _ = (message.failure?.code, message.passwordAlgorithms(), message.unknownRequiredAttributes)
            #expect(message.integrity(Self.key) != .valid)
        }
        #expect(read > 100)
    }

    @Test("A flipped bit anywhere breaks the integrity, the fingerprint or the message")
    func flippedBits() {
        for bit in 0..<(Vectors.request.count * 8) {
            var bytes = Vectors.request
            bytes[bit / 8] ^= 1 << (bit % 8)
            guard let message = try? STUNMessage(parsing: bytes) else { continue }
            let isIntact =
                message.integrity(STUNKey(shortTerm: Vectors.password)) == .valid && message.fingerprint == .valid
            #expect(!isIntact, "bit \(bit)")
        }
    }

    @Test("What is written is read back: addresses of both families, numbers, text", arguments: 0..<50)
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let four = (0..<4).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let sixteen = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let peers = [four, sixteen].compactMap {
            SocketAddress(addressBytes: $0, port: .random(in: 0...65_535, using: &generator))
        }
        let method = STUNMethod(rawValue: .random(in: 0...0xFFF, using: &generator))
        for messageClass in [STUNClass.request, .indication, .success, .failure] {
            var builder = STUNBuilder(messageClass, method, TransactionID(using: &generator))
            for peer in peers { builder.append(.xorPeerAddress, peer) }
            builder.append(.mappedAddress, peers[1])
            builder.append(.lifetime, 600 as UInt32)
            builder.append(.reservationToken, 0x0102_0304_0506_0708 as UInt64)
            builder.append(.realm, "øre")
            let message = try STUNMessage(parsing: builder.finish(key: Self.key, integrity: .sha256, fingerprint: true))
            #expect(message.messageClass == messageClass)
            #expect(message.method == method)
            #expect(message.addresses(.xorPeerAddress) == peers)
            #expect(message.address(.mappedAddress) == peers[1])
            #expect(message.uint32(.lifetime) == 600)
            #expect(message.uint64(.reservationToken) == 0x0102_0304_0506_0708)
            #expect(message.text(.realm) == "øre")
            #expect(message.integrity(Self.key) == .valid)
            #expect(message.integrity(STUNKey(shortTerm: "other")) == .invalid)
            #expect(message.fingerprint == .valid)
        }
    }

    @Test("Unknown attributes that must be understood are listed in a 420")
    func unknownAttributes() throws {
        var builder = STUNBuilder(.request, .binding, Self.id)
        builder.append(STUNAttributeType(rawValue: 0x7FF0), [1, 2, 3])
        builder.append(STUNAttributeType(rawValue: 0xFFF0), [1, 2, 3])
        let request = try STUNMessage(parsing: builder.finish())
        #expect(request.unknownRequiredAttributes.map(\.rawValue) == [0x7FF0])
        let answer = try STUNMessage(parsing: STUNBuilder(refusing: request, .unknownAttribute).finish())
        #expect(answer.failure?.code == .unknownAttribute)
        #expect(answer.value(.unknownAttributes).map(Array.init) == [0x7F, 0xF0])
        #expect(answer.transactionID == Self.id)
    }

    @Test("What follows the integrity attribute is not believed")
    func afterIntegrity() throws {
        var builder = STUNBuilder(.request, .binding, Self.id)
        builder.append(.username, "a:b")
        var bytes = builder.finish(key: Self.key)
        bytes += [0x00, 0x25, 0x00, 0x00]  // USE-CANDIDATE
        bytes[3] += 4
        let message = try STUNMessage(parsing: bytes)
        #expect(!message.contains(.useCandidate))
        #expect(message.integrity(Self.key) == .valid)
    }

    @Test("A message without protection is distinguished from one with a wrong one")
    func absentIntegrity() throws {
        let message = try STUNMessage(parsing: STUNBuilder(.request, .binding, Self.id).finish())
        #expect(message.integrity(Self.key) == .absent)
        #expect(message.fingerprint == .absent)
    }

    @Test("A key of SHA-256 is the digest of name, realm and password")
    func keyOfSHA256() throws {
        let key = STUNKey(longTerm: "user", realm: "realm", password: "pass", algorithm: .sha256)
        let other = STUNKey(longTerm: "user", realm: "realm", password: "pass", algorithm: .md5)
        let message = try STUNMessage(
            parsing: STUNBuilder(.request, .allocate, Self.id).finish(key: key, integrity: .sha256))
        #expect(message.integrity(key) == .valid)
        #expect(message.integrity(other) == .invalid)
    }

    @Test("An attribute that does not fit is left out and reported")
    func overflow() throws {
        var builder = STUNBuilder(.indication, .send, Self.id)
        builder.append(.data, [UInt8](repeating: 0, count: 40_000))
        #expect(!builder.overflowed)
        builder.append(.data, [UInt8](repeating: 0, count: 40_000))
        #expect(builder.overflowed)
        #expect(try STUNMessage(parsing: builder.finish(key: Self.key, fingerprint: true)).bytes.count == 40_056)
    }
}
