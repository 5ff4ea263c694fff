#pragma once
namespace ui {
class Window {
public:
    void show() { visible_ = true; }
    bool visible_ = false;
};
}
