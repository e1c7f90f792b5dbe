import BotWire
import FuzzInput

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzExec(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let command = try? ExecCommand(line: bytes) else { return }
    switch command {
    case .mark(let name):
        require((1...ExecCommand.nameBytes).contains(name.utf8.count), "a mark's name is bounded")
        let line = ExecEvent.mark(name, played: 1).line
        require(line.last == 0x0A && !line.dropLast().contains(0x0A), "an event is one line, whatever a mark is called")
    case .press(let keys): require(keys.utf8.count <= ExecCommand.mostKeys, "keys are bounded")
    case .transfer(let target):
        require((1...ExecCommand.targetBytes).contains(target.utf8.count), "whom a call is transferred to is bounded")
    case .handover(let asked):
        require((1...ExecCommand.targetBytes).contains(asked.target.utf8.count), "the person's name is bounded")
        require(asked.whisper == nil || asked.whisperFile == nil, "there is one whisper")
    case .clear, .cancelHandover, .hangUp: break
    }
}
