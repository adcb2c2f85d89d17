// The command lines for other hosts, and what ssh's refusals mean, by table.
#include <fedrun/launcher/remote_shell.h>
#include <fedrun/launcher/run_commands.h>
#include <fedrun/launcher/shell_words.h>
#include <fedrun/launcher/ssh_failure.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace fedrun::launcher {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Host node2 = {"node2", 1};

TEST(ShellWords, SurviveAShell) {
  const std::vector<std::string> words = {"printf", "<%s>", "a b", "$(touch x)", "`x`", "a'b\"c", ";", "", "~", "a\nb"};
  const CommandResult result = run_commands({{{"sh", "-s"}, shell_line(words)}}, std::chrono::seconds(20))[0];
  EXPECT_EQ(result.output, "<a b><$(touch x)><`x`><a'b\"c><;><><~><a\nb>");
  EXPECT_EQ(shell_quote("/usr/bin/a-b_c.d:e,f=g@h%i+j"), "/usr/bin/a-b_c.d:e,f=g@h%i+j");
}

TEST(RemoteShell, SshAsksNothingAndGivesUp) {
  EXPECT_THAT(RemoteShell{}.command(node2, "sh -s"),
              ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "node2", "sh -s"));
  const RemoteShell shell{.port = 2222, .identity_file = "/k e/y'", .connect_limit = std::chrono::seconds(3)};
  EXPECT_THAT(shell.command(node2, "sh -s"), ElementsAre("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3", "-p",
                                                         "2222", "-i", "/k e/y'", "node2", "sh -s"));
}

TEST(RemoteShell, AnotherAgentGetsNoOptionsOfSsh) {
  EXPECT_THAT((RemoteShell{.agent = "rsh -n", .port = 5}.command(node2, "sh -s")),
              ElementsAre("rsh", "-n", "node2", "sh -s"));
  EXPECT_THAT((RemoteShell{.agent = "/usr/bin/ssh -x"}.command(node2, "true")),
              ElementsAre("/usr/bin/ssh", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "node2", "true"));
  EXPECT_THAT(usage_error_of([] { RemoteShell{.agent = " "}.words(); }), HasSubstr("OMPI_MCA_plm_rsh_agent"));
}

TEST(RemoteShell, AHostIsNoOption) {
  for (const char* name : {"-oProxyCommand=touch x", "-", ""}) {
    EXPECT_THAT(usage_error_of([&] { RemoteShell{}.command({name, 1}, "true"); }), HasSubstr("is no host name"));
  }
}

TEST(RemoteShell, LinesToTryByHand) {
  const RemoteShell shell{.port = 2222, .identity_file = "my key"};
  EXPECT_EQ(shell.by_hand(node2, "true"), "ssh -p 2222 -i 'my key' node2 true");
  EXPECT_EQ(shell.by_hand(node2, "mkdir -p 'a b'"), R"(ssh -p 2222 -i 'my key' node2 'mkdir -p '\''a b'\''')");
  EXPECT_EQ(shell.copy_key(node2), "ssh-copy-id -p 2222 -i 'my key' node2");
}

TEST(RemoteShell, TellsOpenMpiThePortAndTheKey) {
  using Parameter = std::pair<std::string, std::string>;
  EXPECT_THAT(RemoteShell{}.open_mpi_parameters(), ElementsAre(Parameter("plm_rsh_args", "-o BatchMode=yes")));
  EXPECT_THAT((RemoteShell{.port = 2222, .identity_file = "k"}.open_mpi_parameters()),
              ElementsAre(Parameter("plm_rsh_args", "-p 2222 -i k -o BatchMode=yes")));
  EXPECT_THAT((RemoteShell{.agent = "rsh", .port = 2222}.open_mpi_parameters()), testing::IsEmpty());
  EXPECT_THAT(usage_error_of([] { RemoteShell{.identity_file = "my key"}.open_mpi_parameters(); }),
              HasSubstr("--ssh-identity-file 'my key'"));
}

TEST(RemoteShell, ChoosesAnAgentLikeOpenMpi) {
  EXPECT_EQ(choose_agent("", "/bin"), "ssh");
  EXPECT_EQ(choose_agent("no_such_agent : sh -x : rsh", "/bin"), "sh -x");
  EXPECT_EQ(choose_agent("no_such_agent -q:nor_this", "/bin"), "no_such_agent -q");
}

TEST(SshFailure, ByTable) {
  const RemoteShell at_2222{.port = 2222};
  const struct {
    const char* errors;
    int exit_code;
    const RemoteShell& shell;
    const char* what;
    const char* remedy;
  } cases[] = {
      {"ssh: Could not resolve hostname node2: Name or service not known\n",
       255,
       {},
       "the name is not known here",
       "try: getent hosts node2"},
      {"ssh: connect to host node2 port 2222: Connection refused\n", 255, at_2222,
       "no ssh server listens there at port 2222", "--ssh-port; try: ssh -p 2222 node2 true"},
      {"ssh: connect to host node2 port 22: Connection timed out\n",
       255,
       {},
       "no answer within 15 s",
       "try: ssh node2 true"},
      {"Connection timed out during banner exchange\n", 255, {}, "no answer within 15 s", "try: ssh node2 true"},
      {"ssh: connect to host node2 port 22: No route to host\n", 255, {}, "No route to host", "try: ssh node2 true"},
      {"No ED25519 host key is known for node2 and you have requested strict checking.\nHost key verification "
       "failed.\n",
       255,
       {},
       "ssh does not know its host key yet",
       "accept the key once by: ssh node2 true"},
      {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n", 255, at_2222,
       "its host key has changed", "ssh-keygen -R '[node2]:2222', then accept the new key by: ssh -p 2222 node2 true"},
      {"root@node2: Permission denied (publickey).\n",
       255,
       {},
       "it does not accept our key",
       "bring the key there by: ssh-copy-id node2; try: ssh node2 true"},
      {"root@node2: Permission denied (publickey,password).\n", 255, at_2222, "it wants a password",
       "ssh-copy-id -p 2222 node2"},
      {"bash: line 1: sh: command not found\n", 127, {}, "finds no sh", "POSIX sh"},
      {"", 0, {}, "did not run to its end", "try: ssh node2 echo hello"},
      {"kex_exchange_identification: read: Connection reset by peer\n",
       255,
       {},
       "ssh failed: kex_exchange_identification: read: Connection reset by peer",
       "try: ssh node2 true"},
      {"", 255, {}, "ssh failed with code 255", "try: ssh node2 true"},
  };
  for (const auto& example : cases) {
    CommandResult result;
    result.errors = example.errors;
    result.exit_code = example.exit_code;
    const Explanation explanation = explain_ssh_failure(result, node2, example.shell, std::chrono::seconds(15));
    EXPECT_THAT(explanation.what, HasSubstr(example.what));
    EXPECT_THAT(explanation.remedy, HasSubstr(example.remedy));
  }
}

TEST(SshFailure, LateOrNotInstalled) {
  CommandResult late;
  late.late = true;
  late.exit_code = 137;
  EXPECT_EQ(explain_ssh_failure(late, node2, {}, std::chrono::seconds(7)).what, "no answer within 7 s");
  CommandResult absent;
  absent.start_error = ENOENT;
  const Explanation explanation = explain_ssh_failure(absent, node2, {}, std::chrono::seconds(7));
  EXPECT_EQ(explanation.what, "ssh cannot be started here: No such file or directory");
  EXPECT_THAT(explanation.remedy, HasSubstr("openssh-client"));
}

}  // namespace
}  // namespace fedrun::launcher
