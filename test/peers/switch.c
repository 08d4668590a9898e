/*
 * A switch on libcli that keeps its users: `switch FOLDER` asks for user name and password, under inetd; `switch FOLDER
 * system`, as the command of an SSH session, takes the system's own user, and changes that user's password only. `configure
 * terminal` knows `username NAME secret WORD` and `enable secret WORD`; `write memory` keeps what is configured.
 */
#include <libcli.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static char running[512], startup[512];
static int is_system;

/* Lines of `running`: NAME WORD; the enable secret has the name `enable`. */
static int find(const char *name, char *word)
{
  char line[256], key[128];
  FILE *file = fopen(running, "r");
  int found = 0;
  if (!file) return 0;
  while (!found && fgets(line, sizeof line, file)) {
    if (sscanf(line, "%127s %127s", key, word) == 2 && !strcmp(key, name)) found = 1;
  }
  fclose(file);
  return found;
}

static int copy(const char *from, const char *to, const char *name, const char *word)
{
  char line[256], key[128], part[600];
  FILE *in = fopen(from, "r"), *out;
  snprintf(part, sizeof part, "%s.part", to);
  out = fopen(part, "w");
  if (!in || !out) return 0;
  while (fgets(line, sizeof line, in)) {
    if (name && sscanf(line, "%127s", key) == 1 && !strcmp(key, name)) continue;
    fputs(line, out);
  }
  if (name) fprintf(out, "%s %s\n", name, word);
  fclose(in);
  fclose(out);
  return rename(part, to) == 0;
}

static int authenticate(const char *user, const char *password)
{
  char word[128];
  return find(user, word) && !strcmp(password, word) ? CLI_OK : CLI_ERROR;
}

static int may_enable(const char *password)
{
  char word[128];
  return find("enable", word) && !strcmp(password, word);
}

static int set_system(struct cli_def *cli, const char *name, const char *word)
{
  struct passwd *self = getpwuid(getuid());
  FILE *chpasswd;
  if (!self || strcmp(self->pw_name, name) || strchr(word, '\n')) {
    cli_print(cli, "%% Authorization failed");
    return CLI_ERROR;
  }
  if (setuid(0) || !(chpasswd = popen("/usr/sbin/chpasswd", "w"))) return CLI_ERROR;
  fprintf(chpasswd, "%s:%s\n", name, word);
  return pclose(chpasswd) == 0 ? CLI_OK : CLI_ERROR;
}

static int username(struct cli_def *cli, const char *command, char *argv[], int argc)
{
  if (argc != 3 || strcmp(argv[1], "secret")) {
    cli_print(cli, "%% Incomplete command");
    return CLI_ERROR;
  }
  if (strlen(argv[2]) < 8) {
    cli_print(cli, "%% Password length must be at least 8");
    return CLI_ERROR;
  }
  if (is_system) return set_system(cli, argv[0], argv[2]);
  return copy(running, running, argv[0], argv[2]) ? CLI_OK : CLI_ERROR;
}

static int enable_secret(struct cli_def *cli, const char *command, char *argv[], int argc)
{
  if (argc != 1) {
    cli_print(cli, "%% Incomplete command");
    return CLI_ERROR;
  }
  return copy(running, running, "enable", argv[0]) ? CLI_OK : CLI_ERROR;
}

static int end(struct cli_def *cli, const char *command, char *argv[], int argc)
{
  cli_set_configmode(cli, MODE_EXEC, NULL);
  return CLI_OK;
}

static int write_memory(struct cli_def *cli, const char *command, char *argv[], int argc)
{
  cli_print(cli, "Building configuration...");
  cli_print(cli, copy(running, startup, NULL, NULL) ? "[OK]" : "%% Error writing startup-config");
  return CLI_OK;
}

static void make_raw(void)
{
  struct termios mode;
  if (tcgetattr(0, &mode)) return;
  cfmakeraw(&mode);
  tcsetattr(0, TCSANOW, &mode);
}

int main(int argc, char *argv[])
{
  struct cli_command *word;
  struct cli_def *cli = cli_init();
  snprintf(running, sizeof running, "%s/running", argc > 1 ? argv[1] : ".");
  snprintf(startup, sizeof startup, "%s/startup", argc > 1 ? argv[1] : ".");
  is_system = argc > 2;
  cli_set_hostname(cli, "edge-sw1");
  cli_set_banner(cli, "\r\nUser Access Verification\r\n");
  cli_set_enable_callback(cli, may_enable);
  if (is_system) make_raw();
  else {
    cli_set_auth_callback(cli, authenticate);
    cli_telnet_protocol(cli, 1);
  }
  cli_register_command(cli, NULL, "username", username, PRIVILEGE_PRIVILEGED, MODE_CONFIG, NULL);
  word = cli_register_command(cli, NULL, "enable", NULL, PRIVILEGE_PRIVILEGED, MODE_CONFIG, NULL);
  cli_register_command(cli, word, "secret", enable_secret, PRIVILEGE_PRIVILEGED, MODE_CONFIG, NULL);
  cli_register_command(cli, NULL, "end", end, PRIVILEGE_PRIVILEGED, MODE_CONFIG, NULL);
  word = cli_register_command(cli, NULL, "write", NULL, PRIVILEGE_PRIVILEGED, MODE_EXEC, NULL);
  cli_register_command(cli, word, "memory", write_memory, PRIVILEGE_PRIVILEGED, MODE_EXEC, NULL);
  cli_loop(cli, 0);
  cli_done(cli);
  return 0;
}
