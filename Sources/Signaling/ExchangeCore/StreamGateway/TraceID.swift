internal import Core

/// Names one HTTP exchange in the response, in the log and in error messages.
package struct TraceID: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// A fresh one, 16 hexadecimal digits.
    package init() { self.init(.random(in: 0...(.max))) }

    /// The name of the request with this number.
    package init(_ number: UInt64) { description = Hexadecimal.text(of: number) }
}
