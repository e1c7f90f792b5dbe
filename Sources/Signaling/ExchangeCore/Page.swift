import SignalWire

/// As much of a list as fits into one message; the rest is asked for with ``next``.
///
/// One entry is always in it, however long it is, or a client would never come to the next.
struct Page<Entry, Cursor> {
    private(set) var entries: [Entry] = []
    /// Cursor of the last entry, if more entries follow.
    private(set) var next: Cursor?
    private var last: Cursor?
    private var left = SignalLimits.pageBytes

    /// Takes entries of a list in their order, each with its cursor.
    ///
    /// - Parameter bytes: How long an entry is as JSON text.
    init(_ list: some Sequence<(Cursor, Entry)>, bytes: (Entry) -> Int) {
        for (cursor, entry) in list {
            // A comma separates two entries.
            left -= bytes(entry) + 1
            if left < 0, let last {
                next = last
                return
            }
            entries.append(entry)
            last = cursor
        }
    }
}

extension Page where Entry: Encodable {
    /// Takes entries that are written when the page is.
    init(_ list: some Sequence<(Cursor, Entry)>) {
        // What came in as JSON goes out as JSON.
        self.init(list) { (try? SignalCoding.encode($0).count) ?? SignalLimits.pageBytes }
    }
}
