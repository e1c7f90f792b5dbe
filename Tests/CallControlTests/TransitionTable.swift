import Testing
import Core

/// A core in one of its states, under a name.
struct NamedState<Core: Sendable>: Sendable {
    let name: String
    let core: Core

    init(_ name: String, _ core: Core) {
        self.name = name
        self.core = core
    }
}

/// Feeds every input to every state and compares with a table of outcomes.
///
/// An outcome reads "state: outputs", cases by name. A pair that the table leaves out must change nothing and put
/// nothing out.
struct TransitionTable<Core: ProtocolCore & Sendable> {
    let states: [NamedState<Core>]
    let inputs: [(name: String, input: Core.Input)]
    let stateName: (Core) -> String
    let outputName: (Core.Output) -> String
    let expected: [String: [String: String]]

    func check(at now: Instant) {
        for state in expected.keys { #expect(states.contains { $0.name == state }, "no state \(state)") }
        for row in expected.values {
            for input in row.keys { #expect(inputs.contains { $0.name == input }, "no input \(input)") }
        }
        for state in states {
            #expect(stateName(state.core) == state.name)
            for (name, input) in inputs {
                let outcome = outcome(of: input, in: state, at: now)
                let wanted = expected[state.name]?[name] ?? "nothing"
                #expect(outcome == wanted, "\(state.name) × \(name)")
            }
        }
    }

    private func outcome(of input: Core.Input, in state: NamedState<Core>, at now: Instant) -> String {
        var core = state.core
        var outbox: [Core.Output] = []
        core.handle(input, at: now, into: &outbox)
        let name = stateName(core)
        if outbox.isEmpty { return name == state.name ? "nothing" : name }
        return "\(name): " + outbox.map(outputName).joined(separator: " ")
    }
}

/// The name of an enum's case, without what it carries.
func caseName(_ value: Any) -> String { Mirror(reflecting: value).children.first?.label ?? "\(value)" }

extension ProtocolCore {
    /// This core after some inputs, all at one time.
    func after(_ inputs: Input..., at now: Instant = .zero) -> Self {
        var copy = self
        var outbox: [Output] = []
        for input in inputs { copy.handle(input, at: now, into: &outbox) }
        return copy
    }
}
