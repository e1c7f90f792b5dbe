import Core
import Testing

@testable import VoiceActivity

@Suite("The network that detects speech")
struct SpeechNetworkTests {
    private static func sound() throws -> [Float] {
        let bytes = try #require(Base64.bytes(of: SpeechNetworkReference.sound.utf8))
        return stride(from: 0, to: bytes.count, by: 2).map { at in
            Float(Int16(bitPattern: UInt16(bytes[at]) | UInt16(bytes[at + 1]) << 8)) / 32_768
        }
    }

    private func chances(of sound: [Float], from network: inout SpeechNetwork) -> [Float] {
        sound.compactMap { network.take($0) ? sigmoid(network.odds) : nil }
    }

    @Test("It says of a sentence what onnxruntime says with the whole weights, to a hundredth on average")
    func reference() throws {
        var network = SpeechNetwork()
        let found = chances(of: try Self.sound(), from: &network)
        #expect(found.count == SpeechNetworkReference.chances.count)
        let differences = zip(found, SpeechNetworkReference.chances).map { abs($0 - $1) }
        #expect(differences.reduce(0, +) / Float(differences.count) < 0.01, "\(differences)")
        #expect((differences.max() ?? 1) < 0.1, "\(differences)")
    }

    @Test("Two calls share the weights and nothing else")
    func twoCalls() throws {
        let sound = try Self.sound()
        var first = SpeechNetwork()
        let expected = chances(of: sound, from: &first)
        var second = SpeechNetwork()
        var third = SpeechNetwork()
        var found: [Float] = []
        for sample in sound {
            _ = third.take(-sample * 20)
            if second.take(sample) { found.append(sigmoid(second.odds)) }
        }
        #expect(found == expected)
    }

    @Test("Silence and full scale leave it finite, and it still finds speech")
    func finite() throws {
        var network = SpeechNetwork()
        for level in [0, 1, -1, 0] as [Float] {
            for index in 0..<2_560 { _ = network.take(index % 2 == 0 ? level : -level) }
            let odds = network.odds
            #expect(odds.isFinite)
        }
        let found = chances(of: try Self.sound(), from: &network)
        #expect(found.contains { $0 > 0.9 })
    }

    @Test("Exponentials and roots are right to a hundred thousandth")
    func approximations() {
        for index in -2_000...2_000 {
            let x = Float(index) / 50
            let exact = 1 / (1 + exponential(-Double(x)))
            #expect(abs(Double(sigmoid(x)) - exact) < 1e-5)
            let tangent = 2 / (1 + exponential(-2 * Double(x))) - 1
            #expect(abs(Double(hyperbolicTangent(x)) - tangent) < 1e-5)
        }
        for value in [0, 1e-20, 0.3, 1, 7, 1e20] as [Float] {
            #expect(abs(squareRoot(of: value) - value.squareRoot()) <= 1e-5 * value.squareRoot() + 1e-15)
        }
    }

    /// e to the power of `x`, by its series, so that no C library is imported.
    private func exponential(_ x: Double) -> Double {
        guard x >= 0 else { return 1 / exponential(-x) }
        let part = x / 64
        var (sum, term) = (1.0, 1.0)
        for index in 1..<20 {
            term *= part / Double(index)
            sum += term
        }
        return (0..<6).reduce(sum) { result, _ in result * result }
    }
}
