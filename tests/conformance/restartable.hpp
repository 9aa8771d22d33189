// A ground on a server, or on several as one, that are killed, stopped and started again.
#pragma once
#include <string>
#include <utility>

#include "harness.hpp"

namespace suite {

/// `Server`: one of the lab's, or what does the same to several.
template <class Server>
class Restartable : public Harness {
public:
    bool restartable() const override { return true; }
    bool kill_server() override {
        machine().kill();
        return !machine().alive();
    }
    bool restart_server(lab::Data data) override {
        machine().restart(data);
        return true;
    }
    bool pause_server() override {
        machine().pause();
        return true;
    }
    bool resume_server() override {
        machine().resume();
        return true;
    }
    bool durable() const override { return true; }

protected:
    explicit Restartable(std::string name) : Harness(std::move(name)) {}
    virtual Server& machine() = 0;
};

}  // namespace suite
