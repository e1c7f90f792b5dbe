/// Elements in the order of their coming. What is taken out holds no memory of its own any more.
struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { head == elements.count }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    /// Puts the elements of another behind these.
    mutating func append(contentsOf other: FIFO) {
        if isEmpty { self = other } else { elements += other.elements[other.head...] }
    }

    /// Takes out the oldest.
    ///
    /// - Complexity: O(1), amortized.
    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let first = elements[head]
        elements[head] = nil
        head += 1
        if head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }
}
