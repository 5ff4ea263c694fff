// class Commented { void not_there(); };
#pragma once
#include <vector>
#define SHAPE_MAX 16
#define AREA(w, h) ((w) * (h))

namespace geo {
namespace detail {
template <typename T, class U = int>
struct Pair {
    T first;
    U second;
    Pair() : first{}, second(0) {}
    Pair(T a, U b) noexcept;
};

template <typename T, class U>
Pair<T, U>::Pair(T a, U b) noexcept : first{a}, second{b} {
    const char* text = "} not the end {";
    (void)text;
}
}  // namespace detail

enum class Color : unsigned char { Red, Green };
using Points = std::vector<detail::Pair<int>>;
typedef unsigned long ulong_t;

class Shape {
public:
    explicit Shape(int sides) : sides_(sides) {}
    virtual ~Shape() = default;
    virtual double area() const = 0;
    int sides() const { return sides_; }
    bool operator==(const Shape& other) const { return sides_ == other.sides_; }
    static Shape* make(int sides);

    class Builder {
    public:
        Builder& with(int n) & {
            n_ = n;
            return *this;
        }

    private:
        int n_ = 0;
    };

private:
    int sides_;
};

Shape* Shape::make(int sides) {
#if SHAPE_MAX > 8
    if (sides > SHAPE_MAX) {
        return nullptr;
    }
#else
    if (sides > 8) {
        return nullptr;
    }
#endif
    struct Local {
        int value;
        int get() const { return value; }
    };
    auto twice = [](int n) { return 2 * n; };
    return new Square(twice(Local{sides}.get()));
}
}  // namespace geo

double geo::Shape::Builder::area() const { return 1'000.0; }

extern "C" {
struct geo_handle *geo_open(const char *path) {
    return open_handle(path);
}
}

template <typename F>
auto apply(F&& f) -> decltype(f()) {
    return f();
}

union Word {
    int i;
    float f;
};
