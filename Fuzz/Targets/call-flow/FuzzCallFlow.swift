import CallFlow
import Core
import FuzzInput

/// Called by libFuzzer with each input: a document of a call flow, through which a caller then goes, who presses keys.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzCallFlow(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    let document: FlowDocument
    do throws(FlowFaults) {
        document = try FlowDocument(parsing: bytes)
    } catch {
        require(!error.faults.isEmpty, "a document is refused with a reason")
        return
    }
    guard let first = try? FlowFileName("fuzz.xml") else { return require(false, "a plain name is a name") }
    let values = FlowValues(from: "../ann", to: "bob", callSid: "call-1")
    var trial = FlowTrial(first: first, values: values, keys: "1*#05", longest: .seconds(36_000))
    var documents = 0
    _ = trial.run(
        document: { name in
            documents += 1
            require(!name.text.hasPrefix("/"), "no name is absolute")
            require(!name.text.split(separator: "/").contains(".."), "no name leads out of the folder")
            return .success(document)
        },
        length: { _ in .success(.seconds(1)) },
        note: { time, _ in require(time <= .seconds(36_000), "a call is limited") })
    // Each of the keys begins the count again.
    require(documents <= 6 * FlowCourse.mostFetches, "documents without a key in between are limited")
}
