#include "pipeline.hpp"

#include <exception>
#include <utility>

namespace holdfast::resp {

Pipeline::Pipeline(std::shared_ptr<Link> link, std::shared_ptr<Asker> asker)
    : link_(std::move(link)), asker_(std::move(asker)) {}

void Pipeline::close() noexcept {
    link_->close();
    asker_.reset();
    out_.clear();
}

void Pipeline::fail(Error why) {
    const auto asker = asker_;
    close();
    if (asker) asker->broke(why);
}

void Pipeline::send() {
    if (!writing_) write();
}

void Pipeline::write() {
    writing_ = true;
    // The bytes belong to the write: it may outlive this pipeline's user by a moment.
    const auto bytes = std::make_shared<std::string>();
    bytes->swap(out_);
    link_->write(asio::buffer(*bytes),
                 [self = shared_from_this(), bytes](error_code ec, std::size_t) {
                     if (!self->asker_) return;
                     if (ec) return self->fail(Error::closed);
                     self->writing_ = false;
                     if (self->out_.empty()) return;
                     try {
                         self->write();
                     } catch (const std::exception&) {
                         self->fail(Error::closed);
                     }
                 });
}

void Pipeline::read() {
    link_->read_some(asio::buffer(in_), [self = shared_from_this()](error_code ec, std::size_t n) {
        if (!self->asker_) return;
        if (ec) return self->fail(Error::closed);
        self->take(n);
    });
}

void Pipeline::take(std::size_t bytes) {
    const auto asker = asker_;
    asker->heard();
    Codec& codec = link_->codec();
    bool valid = codec.feed({in_.data(), bytes});
    while (valid && asker_) {
        const auto next = codec.next();
        if (next == Codec::Next::more) break;
        valid = next == Codec::Next::reply && asker->take(codec.reply());
    }
    if (!valid) fail(Error::protocol);
    if (asker_) read();
    asker->settled();
}

}  // namespace holdfast::resp
