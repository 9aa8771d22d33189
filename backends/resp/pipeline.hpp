// An open connection of the engine: commands go out one after the other, and are answered in that
// order.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "errors.hpp"
#include "link.hpp"

namespace holdfast::resp {

/// Engine thread only.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
public:
    /// Keeps account of what was asked. Hears nothing of a pipeline that is closed, except
    /// settled().
    class Asker {
    public:
        virtual ~Asker() = default;
        /// The server has sent something.
        virtual void heard() {}
        /// The next reply. False: nobody has asked for it, or it does not fit, so that no reply can
        /// be believed any more.
        virtual bool take(Reply&) = 0;
        /// All replies that have arrived are taken. A caller that waited for one may go on from
        /// here, and ask again or close the pipeline.
        virtual void settled() {}
        /// The connection broke, and is closed.
        virtual void broke(Error) = 0;
    };
    /// `link` is open.
    Pipeline(std::shared_ptr<Link> link, std::shared_ptr<Asker>);

    /// Begins to read. Once.
    void start() { read(); }
    /// Commands to send: append to it, then call send().
    std::string& out() noexcept { return out_; }
    /// Without memory it throws. Then close: what was to be sent may be lost.
    void send();
    void close() noexcept;

private:
    void write();
    void read();
    void take(std::size_t bytes);
    void fail(Error);

    std::shared_ptr<Link> link_;
    std::shared_ptr<Asker> asker_;  // null: closed
    std::string out_;
    std::array<char, 16384> in_{};
    bool writing_ = false;
};

}  // namespace holdfast::resp
