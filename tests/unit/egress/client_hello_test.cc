// What a tunnel reads of TLS: OpenSSL's own first message, and every way to bend it.
#include "egress/client_hello.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>

namespace cofferdam::egress {
namespace {

using State = ClientHello::State;

std::string openssl_hello(const char* name) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(::SSL_CTX_new(::TLS_client_method()),
                                                            &SSL_CTX_free);
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(::SSL_new(context.get()), &SSL_free);
  BIO* out = ::BIO_new(::BIO_s_mem());
  ::SSL_set_bio(ssl.get(), ::BIO_new(::BIO_s_mem()), out);
  std::string copy = name == nullptr ? "" : name;
  if (name != nullptr) {
    ::SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, copy.data());
  }
  (void)::SSL_connect(ssl.get());
  std::string bytes(8192, '\0');
  bytes.resize(static_cast<std::size_t>(::BIO_read(out, bytes.data(), 8192)));
  return bytes;
}

std::string counted(std::size_t width, const std::string& bytes) {
  std::string out;
  for (std::size_t i = width; i > 0; --i) out += static_cast<char>(bytes.size() >> (8 * (i - 1)) & 0xFFU);
  return out + bytes;
}

std::string extension(unsigned type, const std::string& data) {
  std::string out;
  out += static_cast<char>(type >> 8U);
  out += static_cast<char>(type & 0xFFU);
  return out + counted(2, data);
}

std::string name_list(const std::string& name, char type = 0) {
  return counted(2, std::string(1, type) + counted(2, name));
}

std::string record(const std::string& fragment, char type = 22) {
  return std::string(1, type) + "\x03\x01" + counted(2, fragment);
}

std::string message(const std::string& extensions) {
  std::string body = "\x03\x03" + std::string(32, 'r') + counted(1, "") + counted(2, "\x13\x01") +
                     counted(1, std::string(1, '\0')) + counted(2, extensions);
  return "\x01" + counted(3, body);
}

TEST(ClientHelloTest, ReadsOpenSslsOwn) {
  ClientHello hello = read_client_hello(openssl_hello("registry.test"));
  EXPECT_EQ(hello.state, State::done);
  EXPECT_EQ(hello.server_name, "registry.test");
  EXPECT_FALSE(hello.encrypted);
  EXPECT_FALSE(read_client_hello(openssl_hello(nullptr)).server_name.has_value());
}

TEST(ClientHelloTest, EveryBeginningIsWaitedFor) {
  const std::string bytes = openssl_hello("registry.test");
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(read_client_hello(bytes.substr(0, n)).state, State::more) << n;
  }
}

TEST(ClientHelloTest, MayBeSpreadOverRecords) {
  const std::string whole = message(extension(0, name_list("a.test")));
  std::string spread;
  for (char c : whole) spread += record(std::string(1, c));
  EXPECT_EQ(read_client_hello(spread).server_name, "a.test");
  EXPECT_EQ(read_client_hello(record(whole) + "anything").state, State::done);
}

TEST(ClientHelloTest, SeesHiddenNames) {
  for (unsigned type : {0xFE0DU, 0xFFCEU, 0xFD00U}) {
    ClientHello hello =
        read_client_hello(record(message(extension(0, name_list("a.test")) + extension(type, "x"))));
    EXPECT_EQ(hello.state, State::done);
    EXPECT_TRUE(hello.encrypted) << type;
  }
}

TEST(ClientHelloTest, WhatTwoParsersCouldReadDifferentlyIsBad) {
  const std::string sni = extension(0, name_list("a.test"));
  const std::string two =
      counted(2, std::string(1, '\0') + counted(2, "a.test") + std::string(1, '\0') + counted(2, "b.test"));
  const std::vector<std::string> cases = {
      "GET / HTTP/1.1\r\n\r\n",
      "SSH-2.0-x\r\n",
      record(message(sni + sni)),                                // the same extension twice
      record(message(extension(0, two))),                        // two names
      record(message(extension(0, name_list("a.test", 1)))),     // a name of another kind
      record(message(extension(0, name_list("")))),              // no name
      record(message(extension(0, name_list("a.test") + "x"))),  // more than a list
      record(message(sni).substr(0, 60) + std::string(40, '\xFF')),
      record(message(sni) + "x"),         // more than the message
      record(message(sni), 23),           // not a handshake
      record("\x02" + counted(3, "xx")),  // another message
      record(""),
      std::string("\x16\x03\x01\xFF\xFF", 5),
      "\x80\x2e\x01\x03\x01",  // SSL 2
  };
  for (const std::string& bytes : cases) EXPECT_EQ(read_client_hello(bytes).state, State::bad) << bytes;
  EXPECT_EQ(read_client_hello(record(message(sni))).state, State::done);  // the control
}

TEST(ClientHelloTest, IsBounded) {
  EXPECT_EQ(read_client_hello(record("\x01" + std::string("\xFF\xFF\xFF", 3))).state, State::bad);
  std::string endless = record("\x01" + std::string("\x00\x40\x00", 3));
  for (int i = 0; i < 40; ++i) endless += record(std::string(300, 'x'));
  EXPECT_EQ(read_client_hello(endless).state, State::more);
  for (int i = 0; i < 40; ++i) endless += record(std::string(300, 'x'));
  EXPECT_EQ(read_client_hello(endless).state, State::bad);
}

}  // namespace
}  // namespace cofferdam::egress
