// FuzzInput: what every fuzz target needs: libFuzzer's bytes as a value, and a way to say what must hold.

/// Copies libFuzzer's input, so that reading past its end is reading past the end of an allocation, which the address
/// sanitizer sees.
///
/// - Returns: Zero, as libFuzzer expects.
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int, _ body: ([UInt8]) -> Void) -> CInt {
    body(unsafe [UInt8](UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Stops the run if what must hold does not.
public func require(_ condition: Bool, _ promise: StaticString) {
    if !condition { broken(promise) }
}

/// Stops the run, saying which promise was broken; optimised builds say nothing for a failed precondition.
public func broken(_ promise: StaticString) -> Never { fatalError("broken promise: \(promise)") }
