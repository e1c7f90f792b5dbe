import CallScript
import ConfigReader
import FuzzInput

/// Called by libFuzzer with each input: a script of a call, which a caller then follows for some seconds.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzCallScript(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let lines = text.count { $0.isNewline } + 1
    let script: CallScript
    do throws(ConfigError) {
        script = try CallScript(reading: text, file: "fuzz")
    } catch {
        require(!error.problems.isEmpty, "a script is refused with a reason")
        for problem in error.problems { require(problem.line <= lines, "a problem is on a line of the text") }
        return
    }
    var caller = ScriptedCaller(script)
    // Half a second of sound, half a second of silence, and so on.
    for frame in 0..<200 {
        let level: Int16 = frame / 25 % 2 == 0 ? 8_000 : 0
        let step = caller.exchange((0..<960).map { $0 % 48 < 24 ? level : -level })
        require(step.samples.count == 960, "as much is sent as was heard")
        if step.isOver { break }
    }
    caller.end("the callee hung up", isByCallee: true)
    require(caller.results.count == script.statements.count, "each statement has a result")
}
