/* A loop of 10 ms that stays SCHED_OTHER asks another process, the motor, and reads its answer. In each fifth
 * cycle that takes two periods. The argument says how they are connected: "pty", "tcp", "unix" or "pipe". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 10 * 1000 * 1000, CYCLES = 60 };

/* What the loop and the motor read from and write to. */
static int in, out, motor_in, motor_out;

static void connect_by_pty(void)
{
	struct termios raw;

	in = out = posix_openpt(O_RDWR | O_NOCTTY);
	grantpt(in);
	unlockpt(in);
	motor_in = motor_out = open(ptsname(in), O_RDWR | O_NOCTTY);
	tcgetattr(motor_in, &raw);
	cfmakeraw(&raw);
	tcsetattr(motor_in, TCSANOW, &raw);
}

static void connect_by_tcp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(listening, (void *)&address, sizeof(address));
	listen(listening, 1);
	getsockname(listening, (void *)&address, &length);
	in = out = socket(AF_INET, SOCK_STREAM, 0);
	connect(in, (void *)&address, sizeof(address));
	motor_in = motor_out = accept(listening, 0, 0);
	close(listening);
}

static void connect_by_unix(void)
{
	int ends[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	in = out = ends[0];
	motor_in = motor_out = ends[1];
}

static void connect_by_pipe(void)
{
	int question[2], answer[2];

	if (pipe(question) || pipe(answer))
		exit(1);
	motor_in = question[0];
	out = question[1];
	in = answer[0];
	motor_out = answer[1];
}

static void motor(void)
{
	struct timespec late = { .tv_nsec = 2 * PERIOD };
	char question;

	prctl(PR_SET_NAME, "motor");
	close(in);
	close(out);
	for (int i = 1; read(motor_in, &question, 1) == 1; i++) {
		if (i % 5 == 0)
			nanosleep(&late, 0);
		if (write(motor_out, "a", 1) != 1)
			break;
	}
	_exit(0);
}

static void __attribute__((noinline)) ask(void)
{
	char answer;

	if (write(out, "q", 1) != 1 || read(in, &answer, 1) != 1) /* mark: ask */
		exit(1);
}

int main(int count, char **words)
{
	struct timespec next;

	if (!strcmp(words[1], "pty"))
		connect_by_pty();
	else if (!strcmp(words[1], "tcp"))
		connect_by_tcp();
	else if (!strcmp(words[1], "unix"))
		connect_by_unix();
	else
		connect_by_pipe();
	if (!fork())
		motor();
	close(motor_in);
	close(motor_out);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < CYCLES; i++) {
		next.tv_nsec += PERIOD;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		ask();
	}
	close(in);
	close(out);
	wait(0);
	return count != 2;
}
