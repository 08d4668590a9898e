/* Network gear with libcli: user name and password, then a second password for `enable`. Runs on fd 0, under inetd. */
#include <libcli.h>
#include <string.h>
#include <unistd.h>

static int show_version(struct cli_def *cli, const char *command, char *argv[], int argc)
{
  cli_print(cli, "Lab switch OS 1.0");
  return CLI_OK;
}

static int authenticate(const char *user, const char *password)
{
  return !strcmp(user, "admin") && !strcmp(password, "Sw-Pass1") ? CLI_OK : CLI_ERROR;
}

static int enable(const char *password)
{
  return !strcmp(password, "Sw-Enable1");
}

int main(void)
{
  struct cli_def *cli = cli_init();
  cli_set_hostname(cli, "sw1");
  cli_set_banner(cli, "\r\nUser Access Verification\r\n");
  cli_set_auth_callback(cli, authenticate);
  cli_set_enable_callback(cli, enable);
  cli_telnet_protocol(cli, 1);
  struct cli_command *show =
      cli_register_command(cli, NULL, "show", NULL, PRIVILEGE_UNPRIVILEGED, MODE_EXEC, NULL);
  cli_register_command(cli, show, "version", show_version, PRIVILEGE_UNPRIVILEGED, MODE_EXEC, "version");
  cli_loop(cli, 0);
  cli_done(cli);
  return 0;
}
