import CallAgent
import Glibc

// Two users of an exchange on this machine, with a folder for each that must exist.
let arguments = CommandLine.arguments.dropFirst()
guard arguments.count == 4, let server = arguments.first, let folder = arguments.last else {
    print("usage: FirstSteps SERVER TOKEN-OF-ALICE TOKEN-OF-BOB FOLDER    (FOLDER/alice and FOLDER/bob exist)")
    exit(2)
}
let tokens = arguments.dropFirst().prefix(2).map { Secret($0) }
let alice = try await FirstSteps.logIn(server, tokens[0], folder + "/alice")
let bob = try await FirstSteps.logIn(server, tokens[1], folder + "/bob")
try await FirstSteps.invite(alice, bob)
try await FirstSteps.call(alice)
try await FirstSteps.speak(alice, bob)
try await FirstSteps.leave(alice, bob)
