import Foundation
import Testing

/// What a run is made of, from the environment: `HANDSET_MODEL_STEPS`, `HANDSET_MODEL_SEED`, and `HANDSET_MODEL_TRACE` for
/// how many messages are told before a violation, since its cause may be minutes before it.
private enum Run {
    private static let environment = ProcessInfo.processInfo.environment

    static let steps = environment["HANDSET_MODEL_STEPS"].flatMap { Int($0) } ?? 4_000
    static let traced = environment["HANDSET_MODEL_TRACE"].flatMap { Int($0) } ?? 60
    static let seeds: [UInt64] = environment["HANDSET_MODEL_SEED"].flatMap { UInt64($0) }.map { [$0] } ?? [1, 2, 3]
}

@Suite(.serialized) struct AttackersModelTests {
    @Test(
        "For any requests of attackers in any order, no user sees another's data, and correct clients are served",
        arguments: Run.seeds)
    func attack(seed: UInt64) async throws {
        let model = try AttackersModel(seed: seed, signed: try SignedPool(), traced: Run.traced)
        do {
            try model.run(Run.steps)
        } catch {
            Issue.record(
                "HANDSET_MODEL_SEED=\(seed) HANDSET_MODEL_STEPS=\(Run.steps) SWIFT_DETERMINISTIC_HASHING=1: \(error)")
        }
        let counts = model.oracle.counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        print("seed \(seed): \(model.steps) steps; \(counts.joined(separator: ", "))")
        #expect(model.oracle.counts["resumed", default: 0] > 0)
        #expect(model.oracle.counts.contains { $0.key.hasPrefix("done: ") && $0.value > 0 })
    }
}
