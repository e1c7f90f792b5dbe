import CallBridging
import CallParticipation
import Testing

@Suite("Calls that are joined in pairs")
struct CallBridgesTests {
    private let ann = CallID(number: 1)
    private let bob = CallID(number: 2)
    private let cem = CallID(number: 3)

    private func feed(_ bridges: inout CallBridges, _ input: CallBridges.Input) -> [CallBridges.Output] {
        var outbox: [CallBridges.Output] = []
        bridges.handle(input, into: &outbox)
        return outbox
    }

    @Test("Two calls are connected, and keys of each are pressed in the other")
    func joins() {
        var bridges = CallBridges()
        #expect(feed(&bridges, .key("1", of: ann)).isEmpty)
        #expect(feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .hangUp)) == [.connect(ann, bob)])
        #expect(bridges.partner(of: ann) == bob && bridges.partner(of: bob) == ann)
        #expect(feed(&bridges, .key("1", of: ann)) == [.press("1", on: bob)])
        #expect(feed(&bridges, .key("#", of: bob)) == [.press("#", on: ann)])
    }

    @Test("A call is joined to one other at a time, and never to itself")
    func oneAtATime() {
        var bridges = CallBridges()
        #expect(feed(&bridges, .join(ann, ann, then: .hangUp, otherThen: .hangUp)).isEmpty)
        _ = feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .hangUp))
        #expect(feed(&bridges, .join(cem, bob, then: .hangUp, otherThen: .hangUp)).isEmpty)
        #expect(bridges.partner(of: cem) == nil && bridges.partner(of: bob) == ann)
    }

    @Test("When one ends, the other is hung up or goes back, as was said of it; then neither is joined")
    func ends() {
        var bridges = CallBridges()
        _ = feed(&bridges, .join(ann, bob, then: .goBack, otherThen: .hangUp))
        #expect(feed(&bridges, .ended(bob)) == [.disconnect(ann)])
        #expect(feed(&bridges, .ended(ann)).isEmpty)
        _ = feed(&bridges, .join(ann, bob, then: .goBack, otherThen: .hangUp))
        #expect(feed(&bridges, .ended(ann)) == [.hangUp(bob)])
        #expect(feed(&bridges, .ended(bob)).isEmpty && bridges.partner(of: bob) == nil)
    }

    @Test("Parted calls both go back, and can be joined again")
    func parts() {
        var bridges = CallBridges()
        #expect(feed(&bridges, .part(ann)).isEmpty)
        _ = feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .hangUp))
        #expect(feed(&bridges, .part(bob)) == [.disconnect(bob), .disconnect(ann)])
        #expect(feed(&bridges, .join(ann, cem, then: .hangUp, otherThen: .hangUp)) == [.connect(ann, cem)])
    }

    @Test("While one is on hold the other hears music, until it is back, or parted")
    func held() {
        var bridges = CallBridges()
        #expect(feed(&bridges, .held(ann, true)).isEmpty && feed(&bridges, .held(ann, false)).isEmpty)
        _ = feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .goBack))
        #expect(feed(&bridges, .held(ann, true)) == [.playMusic(bob)] && feed(&bridges, .held(ann, true)).isEmpty)
        #expect(feed(&bridges, .held(ann, false)) == [.stopMusic(bob)])
        _ = feed(&bridges, .held(ann, true))
        #expect(feed(&bridges, .ended(ann)) == [.stopMusic(bob), .disconnect(bob)])
        _ = feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .goBack))
        _ = feed(&bridges, .held(bob, true))
        #expect(feed(&bridges, .part(ann)) == [.stopMusic(ann), .disconnect(ann), .disconnect(bob)])
    }

    @Test(
        "A call that replaces a joined one is connected in its place once its media runs, and ends as that would have")
    func replaced() {
        var bridges = CallBridges()
        #expect(feed(&bridges, .replaced(ann, by: cem)).isEmpty)
        _ = feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .goBack))
        #expect(feed(&bridges, .replaced(ann, by: cem)).isEmpty)
        #expect(bridges.partner(of: cem) == bob && bridges.partner(of: bob) == cem && bridges.partner(of: ann) == nil)
        // The former call is nothing to the other one any more.
        #expect(feed(&bridges, .ended(ann)).isEmpty)
        #expect(feed(&bridges, .established(cem)) == [.connect(cem, bob)])
        #expect(feed(&bridges, .established(cem)).isEmpty)
        #expect(feed(&bridges, .key("4", of: cem)) == [.press("4", on: bob)])
        #expect(feed(&bridges, .ended(cem)) == [.disconnect(bob)])
    }

    @Test("A call that replaces another one is hung up when the other side ends: it has nothing to go back to")
    func replacedHasNothing() {
        var bridges = CallBridges()
        _ = feed(&bridges, .join(ann, bob, then: .goBack, otherThen: .goBack))
        _ = feed(&bridges, .replaced(ann, by: cem))
        #expect(feed(&bridges, .ended(bob)) == [.hangUp(cem)])
    }

    @Test("A call that is on hold already when it is joined has the other one hear music")
    func heldBefore() {
        var bridges = CallBridges()
        #expect(feed(&bridges, .held(bob, true)).isEmpty)
        #expect(
            feed(&bridges, .join(ann, bob, then: .hangUp, otherThen: .hangUp)) == [.connect(ann, bob), .playMusic(ann)])
        #expect(feed(&bridges, .held(bob, false)) == [.stopMusic(ann)])
        #expect(feed(&bridges, .ended(bob)) == [.hangUp(ann)])
    }
}
