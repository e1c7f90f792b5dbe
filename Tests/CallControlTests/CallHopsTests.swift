import Testing

@testable import CallControl

@Suite("How many calls led to a call")
struct CallHopsTests {
    @Test("Each call that is placed because of another counts one more, and behind the fifth none is placed")
    func next() {
        var hops = CallHops()
        for count in 1...CallHops.most {
            hops = hops.next ?? CallHops(-1)
            #expect(hops.count == count && !hops.areTooMany)
        }
        #expect(hops.next == nil && hops.obstacle?.contains("5 calls led") == true)
        #expect(CallHops(6).areTooMany && CallHops(6).next == nil)
    }

    @Test("What a peer says counts up to the limit, and never below none")
    func told() {
        #expect(CallHops(-7) == CallHops() && CallHops(.min).next?.count == 1)
        #expect(CallHops(.max) == CallHops(CallHops.most + 1))
        #expect(CallHops(0, forwards: .max).forwards == 70 && CallHops(0, forwards: -1).forwards == 0)
    }

    @Test("RFC 7332 §4: Max-Forwards shrinks by one, and at 0 no call is placed")
    func forwards() {
        #expect(CallHops(1, forwards: 12).next == CallHops(2, forwards: 11))
        #expect(CallHops(1, forwards: 1).next == CallHops(2, forwards: 0))
        #expect(
            CallHops(1, forwards: 0).next == nil && CallHops(1, forwards: 0).obstacle?.contains("Max-Forwards") == true)
        #expect(CallHops(1).next?.forwards == nil)
    }
}
