/// Whether a program reads what the caller says.
struct InputProgress {
    private var isFed = false
    /// It has read something.
    private(set) var isReading = false

    /// Notes bytes that were written for it; nil: it takes none any more.
    mutating func wrote(_ count: Int?) { if let count, count > 0 { isFed = true } }

    /// Looks at how many of the bytes it has not read.
    ///
    /// Nothing was read of what could not be written: a process that has ended, or has closed its input, hears nothing.
    mutating func note(unread: Int) { if isFed, unread == 0 { isReading = true } }
}
