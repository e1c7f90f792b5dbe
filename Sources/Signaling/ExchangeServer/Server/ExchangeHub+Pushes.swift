import ExchangeCore
import NIOCore

extension ExchangeHub {
    /// Makes one attempt at a push, beside everything else.
    func post(_ push: StoredPush) {
        guard let pushSender else { return }
        let (now, loop, hub) = (now, loop, NIOLoopBound(self, eventLoop: loop))
        Task {
            let answer = await pushSender.send(push, at: now)
            loop.execute { hub.value.handle(.pushAnswered(push.id, attempt: push.attempts, answer)) }
        }
    }
}
