import CallAgent
import Glibc

// Two users of an exchange on this machine. Bob greets, and says back what he hears; Alice calls him twice, and listens.
let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count == 3 else {
    print("usage: TakingPart SERVER TOKEN-OF-ALICE TOKEN-OF-BOB")
    exit(2)
}
let alice = try await TakingPart.logIn(arguments[0], Secret(arguments[1]))
let bob = try await TakingPart.logIn(arguments[0], Secret(arguments[2]))

/// 400 Hz, at 16 kHz.
func tone(milliseconds: Int) -> [Int16] { (0..<16 * milliseconds).map { $0 / 20 % 2 == 0 ? 4_000 : -4_000 } }

await TakingPart.answer(bob, with: tone(milliseconds: 200))
var isHeard = true
for _ in 1...2 {
    let samples = try await TakingPart.speak(alice, tone(milliseconds: 1_000))
    print("heard \(samples / 16) ms")
    // At least Alice's own words; the greeting may have been before she listened.
    isHeard = isHeard && (900...1_500).contains(samples / 16)
}
await alice.shutDown()
await bob.shutDown()
exit(isHeard ? 0 : 1)
