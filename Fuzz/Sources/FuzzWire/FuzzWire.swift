// FuzzWire: what the targets of all bots' wires have in common.

public import BotWire
internal import FuzzInput
internal import Core

/// Has a wire take an input as what a bot sends, cut into messages, with what happens in a call between them.
///
/// Each message begins with a byte that says what happens before it and how much time passes, and ends with a line break.
public func fuzz(_ wire: some VoiceWire, _ bytes: [UInt8]) {
    var wire = wire
    var state = WireCheck()
    let call = WireCall(
        call: "call", stream: "40325ec2-5efd-4bd3-805f-53576e581d13", account: "account", from: "\"a\n", to: "ä",
        parameters: ["name": "value"])
    state.give(.connected(call), to: &wire)
    let isText = wire.transport == .webSocket
    for piece in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
        guard let control = piece.first else { continue }
        state.now = state.now.advanced(byNanoseconds: Int64(control >> 4) * 50_000_000)
        switch control & 7 {
        case 0: state.give(.sound([1, 2, 3, 4]), to: &wire)
        case 1: state.give(.digit("5", heldMilliseconds: 100), to: &wire)
        case 2: state.reportMark(isPlayed: true, to: &wire)
        case 3: state.reportMark(isPlayed: false, to: &wire)
        case 4:
            state.give(.played(samples: contents(of: piece).count * 7), to: &wire)
            state.give(.cleared, to: &wire)
        case 5: state.give(.missed(samples: 160), to: &wire)
        default: break
        }
        let message = contents(of: piece)
        state.give(.message(isText && control & 8 == 0 ? .text(message) : .binary(message)), to: &wire)
    }
    state.give(.ended(.callOver), to: &wire)
    state.finish(wire)
}

private func contents(of piece: ArraySlice<UInt8>) -> [UInt8] { Array(piece.dropFirst()) }

/// What must hold of a wire, whatever a bot sends.
private struct WireCheck {
    var now = Instant.zero
    private var marks: [String] = []
    private var soundBytes = 0
    private var faults = 0
    private var isOver = false

    mutating func reportMark(isPlayed: Bool, to wire: inout some VoiceWire) {
        guard !marks.isEmpty else { return }
        let name = marks.removeFirst()
        give(isPlayed ? .markPlayed(name) : .markDiscarded(name), to: &wire)
    }

    mutating func give(_ input: WireInput, to wire: inout some VoiceWire) {
        var outbox: [WireOutput] = []
        wire.handle(input, at: now, into: &outbox)
        for output in outbox {
            require(!isOver, "after its end nothing comes out of a wire")
            check(output)
        }
    }

    private mutating func check(_ output: WireOutput) {
        switch output {
        case .send(let message): require(!message.bytes.isEmpty, "no message is empty")
        case .play(let bytes, let format):
            require(!bytes.isEmpty && bytes.count.isMultiple(of: format.sampleBytes), "sound is of whole samples")
            require(bytes.count <= WireLimits.payloadBytes, "sound is bounded")
            soundBytes += bytes.count
        case .setMark(let name):
            require((1...WireLimits.markBytes).contains(name.utf8.count), "the name of a mark is bounded")
            marks.append(name)
            require(marks.count <= WireLimits.marks, "marks that wait are bounded")
        case .press(let keys): require((1...WireLimits.keys).contains(keys.utf8.count), "keys are bounded")
        case .clear: break
        case .fault(let fault):
            require(!fault.description.isEmpty, "a fault has words")
            faults += 1
        case .failed, .hangUp, .close: isOver = true
        }
    }

    func finish(_ wire: some VoiceWire) {
        require(isOver, "the end of a call ends a wire")
        require(wire.counts.soundBytes == soundBytes, "sound is counted")
        let counted = wire.counts.faults.reduce(0) { $1.key == .flood ? $0 : $0 + $1.value }
        require(counted == faults, "faults are counted")
    }
}
