import Foundation

// class Commented {}
public protocol Container {
    associatedtype Item
    var count: Int { get }
    func append(_ item: Item)
}

let defaultLimit = 10
typealias Handler = (Int) -> Void

public struct Stack<Element>: Container {
    private var items: [Element] = []
    public var count: Int { return items.count }
    public var isEmpty: Bool {
        items.isEmpty
    }

    public init(items: [Element] = []) {
        self.items = items
    }

    public mutating func append(_ item: Element) {
        items.append(item)
    }

    enum Failure: Error {
        case empty
        func describe() -> String { "empty" }
    }
}

extension Stack where Element: Equatable {
    func contains(_ element: Element) -> Bool {
        return items.contains { $0 == element }
    }
}

final class Node {
    weak var parent: Node?
    deinit { print("gone") }
    static func make() -> Node {
        func inner() -> Node { Node() }
        return inner()
    }
}

actor Counter {
    func next() async -> Int { 1 }
}

func free(_ n: Int) -> Int { n * 2 }
