//! A queue of letters with a bound.
const std = @import("std");
const Allocator = std.mem.Allocator;

pub const max_letters: usize = 64;
var total_sent: u64 = 0;

pub const QueueError = error{ Full, Empty };

const Handle = opaque {};

pub const Priority = enum(u8) {
    low,
    high,

    pub fn weight(self: Priority) u8 {
        return switch (self) {
            .low => 1,
            .high => 2,
        };
    }
};

pub const Letter = struct {
    id: u64,
    body: []const u8,

    const Self = @This();
    pub const empty = Letter{ .id = 0, .body = "" };

    pub fn init(id: u64, body: []const u8) Letter {
        const copy = body;
        return .{ .id = id, .body = copy };
    }

    fn size(self: *const Letter) usize {
        return self.body.len;
    }
};

const Payload = union(enum) {
    letter: Letter,
    none,
};

pub fn Queue(comptime T: type) type {
    return struct {
        items: []T,
        len: usize = 0,

        const Inner = struct {
            next: ?*Inner = null,
        };

        pub fn push(self: *@This(), item: T) QueueError!void {
            if (self.len == self.items.len) return QueueError.Full;
            self.items[self.len] = item;
            self.len += 1;
        }
    };
}

extern fn external_send(ptr: *anyopaque) callconv(.C) c_int;

export fn send(letter: *Letter) void {
    var attempts: u32 = 0;
    const limit = 3;
    while (attempts < limit) : (attempts += 1) {
        total_sent += 1;
    }
    _ = letter;
}

comptime {
    _ = Handle;
}

test "a queue is empty at first" {
    const letter = Letter.init(1, "x");
    try std.testing.expect(letter.size() == 1);
}
