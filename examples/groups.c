/*
 * Tells latlab adapt which devices this program needs, until it ends:
 *
 *	cc -O2 -o groups examples/groups.c && ./groups AUDIO,NETWORK
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Sends a line and reads the answer. Returns 0 if the daemon answers ok. */
static int ask(const char *line, char *answer, size_t size)
{
	struct sockaddr_un address = { AF_UNIX, "/run/latlab/adapt.sock" };
	int daemon = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t length = 0;
	ssize_t n = 0;

	answer[0] = 0;
	if (connect(daemon, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    send(daemon, line, strlen(line), MSG_NOSIGNAL) > 0) {
		while (length + 1 < size && !strchr(answer, '\n') &&
		       (n = read(daemon, answer + length, size - length - 1)) > 0)
			answer[length += n] = 0;
	}
	close(daemon);
	return strncmp(answer, "ok", 2) ? -1 : 0;
}

int main(int argc, char **argv)
{
	char line[256], answer[256];

	snprintf(line, sizeof(line), "groups %s\n", argc > 1 ? argv[1] : "");
	int failed = ask(line, answer, sizeof(answer));
	printf("%s", *answer ? answer : "no latlab adapts this machine\n");
	if (failed)
		return 1;
	/* The program does its work here. */
	ask("release\n", answer, sizeof(answer));
	printf("%s", answer);
	return 0;
}
