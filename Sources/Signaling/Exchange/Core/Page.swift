import SignalWire

/// As much of a list as fits into one message; the rest is asked for with ``next``.
///
/// One entry is always in it, however long it is, or a client would never come to the next.
struct Page<Entry: Encodable, Cursor> {
    private(set) var entries: [Entry] = []
    /// Where the last entry stands, if there are more behind it.
    private(set) var next: Cursor?
    private var last: Cursor?
    private var left = SignalLimits.pageBytes

    /// Takes entries of a list in their order, each with where it stands.
    init(_ list: some Sequence<(Cursor, Entry)>) {
        for (cursor, entry) in list {
            // What came in as JSON goes out as JSON; a comma stands between two.
            left -= ((try? SignalCoding.encode(entry).count) ?? SignalLimits.pageBytes) + 1
            if left < 0, let last {
                next = last
                return
            }
            entries.append(entry)
            last = cursor
        }
    }
}
