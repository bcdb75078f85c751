#include "egress/login_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "egress/https_post.h"

namespace cofferdam::egress {
namespace {

constexpr auto kLockLimit = std::chrono::seconds(60);
// A token with this much left is still better than none when the endpoint cannot be reached.
constexpr std::int64_t kLastResortMs = 30'000;

// Interrupts flock(2) once a second, so that its caller can look at the clock. The broker has no other use
// for the signal.
class LockAlarm {
 public:
  LockAlarm() {
    struct sigaction act {};
    act.sa_handler = [](int) {};  // without SA_RESTART
    ::sigaction(SIGALRM, &act, &before_);
    const itimerval every{{1, 0}, {1, 0}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
  LockAlarm(const LockAlarm&) = delete;
  LockAlarm& operator=(const LockAlarm&) = delete;
  ~LockAlarm() {
    const itimerval off{};
    ::setitimer(ITIMER_REAL, &off, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

// The file itself is replaced by every refresh, so the lock is on one beside it that stays.
Result<UniqueFd> take_lock(const std::string& path) {
  auto file = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file) {
    Error error = std::move(file).error();
    error.code = Code::denied;
    error.hint = "the login's folder must be writable: a refreshed login is written back";
    return error;
  }
  const auto end = std::chrono::steady_clock::now() + kLockLimit;
  const LockAlarm alarm;
  while (::flock(file->get(), LOCK_EX) != 0) {
    if (errno != EINTR) return sys_error("cannot lock " + path, errno);
    if (std::chrono::steady_clock::now() >= end) {
      return make_error(Code::timeout, "another process has held the lock of the login for a minute",
                        "see who has " + path + " open");
    }
  }
  return file;
}

// The new file beside the old one, with its mode and owner, made before the endpoint is asked: a refresh
// token that works once must not be spent when its successor cannot be kept.
class Replacement {
 public:
  static Result<Replacement> create(const std::string& path) {
    struct stat old {};
    if (::stat(path.c_str(), &old) != 0) return sys_error("cannot look at the login", errno);
    Replacement out(path, path + ".cofferdam-" + random_hex(6));
    auto file = open_file(out.temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!file) {
      out.temporary_.clear();
      return std::move(file).error();
    }
    out.file_ = *std::move(file);
    const bool other = old.st_uid != ::geteuid() || old.st_gid != ::getegid();
    if (other && ::fchown(out.file_.get(), old.st_uid, old.st_gid) != 0) {
      return sys_error("cannot keep the owner of the login", errno);
    }
    if (::fchmod(out.file_.get(), old.st_mode & 07777U) != 0) {
      return sys_error("cannot keep the mode of the login", errno);
    }
    return out;
  }
  Replacement(Replacement&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        file_(std::move(other.file_)) {}
  Replacement& operator=(Replacement&&) = delete;
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  Status put(const Secret& bytes) {
    TRY_VOID(write_all(file_.get(), bytes.view()));
    if (::fsync(file_.get()) != 0) return sys_error("fsync of the login", errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return sys_error("cannot replace the login", errno);
    temporary_.clear();
    return {};
  }

 private:
  Replacement(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  std::string path_;
  std::string temporary_;  // empty: nothing to remove
  UniqueFd file_;
};

}  // namespace

Error LoginFile::expired(const std::string& why) const {
  const char* cli = shape_ == LoginShape::claude ? "claude" : "codex login";
  return make_error(Code::denied, fmt::format("login expired: {} ({})", path_, why),
                    fmt::format("log in again with `{}`, then start the attempt again", cli));
}

Result<Login> LoginFile::read(std::string* bytes) const {
  auto file = read_file(path_, kMaxLoginBytes);
  if (!file) {
    return make_error(Code::denied, "cannot read the login: " + file.error().what,
                      "log in with the vendor's CLI, or name the file in credential_file");
  }
  auto login = parse_login(shape_, *file);
  if (login && bytes != nullptr) bytes->swap(*file);
  wipe_string(&*file);
  if (!login) return std::move(login).error().with(path_);
  return login;
}

bool LoginFile::good(const Login& login, std::string_view rejected) const {
  if (!rejected.empty() && login.access.view() == rejected) return false;
  return login.expires_at_ms == 0 || login.expires_at_ms - now().ms > kRefreshAheadMs;
}

Result<Login> LoginFile::obtain(std::string_view rejected) {
  TRY(path_, real_path(path_));  // a link stays one: its target is replaced
  TRY(Login login, read(nullptr));
  if (good(login, rejected)) return login;
  const bool usable = login.access.view() != rejected && login.expires_at_ms - now().ms > kLastResortMs;
  auto renewed = refresh(rejected);
  if (!renewed && usable) return login;
  return renewed;
}

Result<Login> LoginFile::refresh(std::string_view rejected) {
  TRY(UniqueFd lock, take_lock(path_ + ".cofferdam.lock"));
  std::string bytes;
  TRY(Login login, read(&bytes));
  if (good(login, rejected)) {
    wipe_string(&bytes);
    return login;
  }
  if (login.refresh.empty()) {
    wipe_string(&bytes);
    return expired("and there is no refresh token in it");
  }
  auto renewed = ask_endpoint(login, bytes);
  wipe_string(&bytes);
  if (renewed) return renewed;
  // The user's own CLI may have been faster: then the token that we sent was used up, and the file is new.
  auto again = read(nullptr);
  if (again && again->access.view() != login.access.view() && good(*again, rejected)) return again;
  return renewed;
}

Result<Login> LoginFile::ask_endpoint(const Login& old, const std::string& bytes) {
  auto replacement = Replacement::create(path_);
  if (!replacement) return expired("and it cannot be written back: " + replacement.error().what);
  auto answer = https_post(token_url_, way_, renewal_request_body(shape_, old.refresh));
  if (!answer) return expired("and its endpoint cannot be asked: " + answer.error().what);
  if (answer->status != 200) {
    const std::string word = renewal_error(answer->body.view());
    return expired(
        fmt::format("and its refresh was refused: {}{}{}", answer->status, word.empty() ? "" : " ", word));
  }
  const Timestamp at = now();
  auto renewal = parse_renewal(shape_, answer->body.view(), at);
  if (!renewal) return expired("and its refresh gave no token");
  auto file = renewed_file(shape_, bytes, *renewal, at);
  if (!file) return expired("and its file changed its form");
  // Written before it is used: the old refresh token is worth nothing any more.
  if (Status put = replacement->put(*file); !put)
    return expired("and it cannot be written back: " + put.error().what);
  return parse_login(shape_, file->view());
}

}  // namespace cofferdam::egress
